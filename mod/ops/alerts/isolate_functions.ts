/** Issues that were reported, acknowledged or muted. Rows of issues that ended are deleted by the main process. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import {
  createSystemFunctions,
  type DataModelOf,
  defineTable,
  type DocumentOf,
  type Schema,
  type SystemMutationCtx,
} from "../../functions/api/service.ts";
import { adminEmail } from "../admin/isolate_functions/audit.ts";
import { alertLimits } from "../limits.ts";

export const tables = {
  _alerts: defineTable({
    /** Key of the issue; unique. */
    key: z.string(),
    text: z.string(),
    /** When an alert was sent. */
    reportedAt: z.number().optional(),
    /** Email address of an administrator. */
    acknowledgedBy: z.string().optional(),
    mutedUntil: z.number().optional(),
  }).index("by_key", ["key"]),
};

type AlertsModel = DataModelOf<Schema<typeof tables>>;
type AlertsMutationCtx = SystemMutationCtx<AlertsModel>;
export type AlertRow = DocumentOf<AlertsModel, "_alerts">;

const { adminQuery, adminMutation, systemQuery, systemMutation } = createSystemFunctions(
  { tables } satisfies Schema<typeof tables>,
);

/** The state of an issue besides its condition. */
export interface IssueNote {
  readonly key: string;
  readonly reportedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly mutedUntil: number | null;
}

export const notes = adminQuery({
  args: {},
  handler: async (ctx): Promise<IssueNote[]> =>
    (await ctx.db.query("_alerts").collect()).map(({ key, reportedAt, acknowledgedBy, mutedUntil }) => ({
      key,
      reportedAt: reportedAt ?? null,
      acknowledgedBy: acknowledgedBy ?? null,
      mutedUntil: mutedUntil ?? null,
    })),
});

const issueArgs = {
  issue: z.string().max(alertLimits.keyCharsMax),
  text: z.string().max(alertLimits.textCharsMax),
};

/** Marks an issue as known until it ends: no alert is sent for it. */
export const acknowledge = adminMutation({
  args: issueArgs,
  handler: async (ctx, { issue, text }): Promise<null> => {
    await update(ctx, { key: issue, text, acknowledgedBy: await adminEmail(ctx) });
    return null;
  },
});

/** Sends no alerts for an issue for a while, even if it ends and begins again. */
export const mute = adminMutation({
  args: { ...issueArgs, forMs: z.number().min(1).max(alertLimits.mutedMsMax) },
  handler: async (ctx, { issue, text, forMs }): Promise<null> => {
    await update(ctx, { key: issue, text, mutedUntil: Date.now() + forMs });
    return null;
  },
});

/** Undoes `acknowledge` and `mute`. */
export const resume = adminMutation({
  args: { issue: z.string() },
  handler: async (ctx, { issue }): Promise<null> => {
    const row = await find(ctx, issue);
    if (row === null) return null;
    const { key, text, reportedAt } = row;
    if (reportedAt === undefined) await ctx.db.delete(row._id);
    else await ctx.db.replace(row._id, { key, text, reportedAt });
    return null;
  },
});

async function find(ctx: AlertsMutationCtx, key: string): Promise<AlertRow | null> {
  return await ctx.db.query("_alerts").withIndex("by_key", (q) => q.eq("key", key)).unique();
}

async function update(
  ctx: AlertsMutationCtx,
  row:
    & Pick<AlertRow, "key" | "text">
    & Partial<Pick<AlertRow, "reportedAt" | "acknowledgedBy" | "mutedUntil">>,
): Promise<void> {
  const stored = await find(ctx, row.key);
  if (stored !== null) return await ctx.db.patch(stored._id, row);
  if ((await ctx.db.query("_alerts").take(alertLimits.rowsMax)).length === alertLimits.rowsMax) {
    throw new UserError("too_many_issues", "Too many issues are acknowledged or muted");
  }
  await ctx.db.insert("_alerts", row);
}

export const rows = systemQuery({
  args: {},
  handler: async (ctx): Promise<AlertRow[]> => await ctx.db.query("_alerts").collect(),
});

/** Records the reported issues, and that others ended: their rows are deleted, muted ones when that expires. */
export const record = systemMutation({
  args: {
    reported: z.array(z.strictObject({ key: z.string(), text: z.string() })),
    ended: z.array(z.string()),
  },
  handler: async (ctx, { reported, ended }): Promise<null> => {
    const now = Date.now();
    for (const row of reported) await update(ctx, { ...row, reportedAt: now });
    for (const name of ended) {
      const row = await find(ctx, name);
      if (row === null) continue;
      const { key, text, mutedUntil = 0 } = row;
      if (mutedUntil > now) await ctx.db.replace(row._id, { key, text, mutedUntil });
      else await ctx.db.delete(row._id);
    }
    return null;
  },
});

/** Called by the server only, at `_system/alerts:<name>`. */
export const alertSystemFunctions = { record, rows };

/** Called by administrators, at `_admin/alerts:<name>`. */
export const alertFunctions = { acknowledge, mute, notes, resume };
