/** The audit log: rows are inserted by the audited transactions and read at `_admin/audit:list`. */
import { z } from "zod";
import { paginationOpts, type PaginationResult } from "../../../functions/api/service.ts";
import { opsLimits } from "../../limits.ts";
import type { AdminCall } from "../../../functions/system_module.ts";
import { type AdminDoc, type AdminMutationCtx, adminQuery, systemMutation } from "../tables.ts";

type AuditRow = AdminDoc<"_audit">;
type AuditValue = AuditRow["args"][string];

/** Lists entries, newest first. */
export const list = adminQuery({
  args: {
    paginationOpts,
    adminId: z.string().optional(),
    /** Prefix of the action, such as `_admin/users:`. */
    action: z.string().optional(),
    /** Text in the entry, such as the ID of a document. */
    text: z.string().max(opsLimits.auditTextCharsMax).optional(),
  },
  handler: async (ctx, { paginationOpts, adminId, action, text }): Promise<PaginationResult<AuditRow>> => {
    const rows = ctx.db.query("_audit");
    const byAdmin = adminId === undefined ? rows : rows.withIndex("by_admin", (q) => q.eq("admin", adminId));
    const newestFirst = byAdmin.order("desc");
    if (action === undefined && text === undefined) return await newestFirst.paginate(paginationOpts);
    return await newestFirst
      .filter((row) => row.action.startsWith(action ?? "") && (text === undefined || contains(row, text)))
      .paginate({
        ...paginationOpts,
        maximumRowsRead: opsLimits.adminRowsReadMax,
        maximumCharsRead: opsLimits.adminPageCharsMax,
      });
  },
});

/** Returns whether a value of the entry contains the text, ignoring case. */
function contains({ email, address, action, args, changes }: AuditRow, text: string): boolean {
  const sought = text.toLowerCase();
  const isMatch = (value: unknown): boolean =>
    value !== null && value !== undefined &&
    (typeof value === "object"
      ? Object.values(value).some(isMatch)
      : String(value).toLowerCase().includes(sought));
  return isMatch([email, address, action, args, changes]);
}

export async function recordMutation(ctx: AdminMutationCtx, { udfPath, args }: AdminCall): Promise<void> {
  // How they show tables changes nothing for others.
  if (udfPath.startsWith("_admin/views:")) return;
  const [admin, session] = [ctx.auth.adminId(), ctx.auth.sessionId()];
  await insertAudit(ctx, {
    admin: admin ?? "",
    session,
    action: udfPath,
    args: { ...summarizeArgs(args), ...await subjectOf(ctx, { udfPath, args }) },
    outcome: "ok",
  });
}

/**
 * Returns details that the arguments lack: the table of a changed document, the IDs of documents that are inserted again, and
 * the name and kind of a revoked key.
 */
async function subjectOf(
  ctx: AdminMutationCtx,
  { udfPath, args }: AdminCall,
): Promise<
  { readonly table?: string; readonly ids?: string; readonly name?: string; readonly deploy?: boolean }
> {
  const { db } = ctx as unknown as AccountsReader;
  if (udfPath === "_admin/apiKeys:revoke") {
    const key = await findAccount(db, "_api_keys", String(args["keyId"]));
    return key === null ? {} : { name: String(key["name"]), ...(key["deploy"] === true && { deploy: true }) };
  }
  if (udfPath === "_admin/data:insert") return idsOf(args["documents"]);
  if (!udfPath.startsWith("_admin/data:") || "table" in args) return {};
  const [first] = ["ids", "changes"].map((name) => args[name]).find(Array.isArray) ?? [args["id"]];
  const id = String((first as { readonly id?: unknown } | undefined)?.id ?? first);
  const table = ctx.inspector.tables().find(({ name }) => db.normalizeId(name, id) !== null);
  return table === undefined ? {} : { table: table.name };
}

function idsOf(documents: unknown): { readonly ids?: string } {
  const ids = (Array.isArray(documents) ? documents : []).map((document) => document?._id);
  return ids.every((id) => typeof id === "string") ? { ids: summarizeList(ids) } : {};
}

/** Records an administrator's action or request. */
export const note = systemMutation({
  args: {
    admin: z.string(),
    session: z.string().nullable(),
    action: z.string(),
    args: z.record(z.string(), z.unknown()),
    outcome: z.string(),
    /** Client address of the request; by default the session's. */
    address: z.string().optional(),
    changes: z.array(z.strictObject({ setting: z.string(), before: z.unknown(), after: z.unknown() }))
      .optional(),
  },
  handler: async (ctx, { args, ...row }): Promise<null> => {
    await insertAudit(ctx, { ...row, args: summarizeArgs(args) });
    return null;
  },
});

/** Deletes a batch of rows older than a time, at least 90 days ago. Returns whether there may be more. */
export const clean = systemMutation({
  args: { before: z.number() },
  handler: async (ctx, { before }): Promise<boolean> => {
    const rows = opsLimits.auditRowsCleanedMax;
    const end = Math.min(before, Date.now() - AUDIT_KEPT_MS_MIN);
    const old = await ctx.db.query("_audit").withIndex("by_creation_time", (q) => q.lt("_creationTime", end))
      .take(rows);
    for (const { _id } of old) await ctx.db.delete(_id);
    return old.length === rows;
  },
});

/** Minimum age of deletable rows. */
const AUDIT_KEPT_MS_MIN = 90 * 86_400_000;

interface NewRow extends Pick<AuditRow, "admin" | "action" | "args" | "outcome" | "changes"> {
  readonly session: string | null;
  readonly address?: string | undefined;
}

/** Adds email, address and user agent from the accounts' tables. */
export async function insertAudit(
  ctx: AdminMutationCtx,
  { session, address, changes, ...row }: NewRow,
): Promise<void> {
  const { db } = ctx as unknown as AccountsReader;
  const admin = await findAccount(db, "_admins", row.admin);
  const found = session === null ? null : await findAccount(db, "_sessions", session);
  const from = address ?? text(found?.["address"]);
  const userAgent = text(found?.["userAgent"]);
  await ctx.db.insert("_audit", {
    ...row,
    email: text(admin?.["email"]) ?? "",
    ...(from !== undefined && { address: from }),
    ...(userAgent !== undefined && { userAgent }),
    ...(changes !== undefined && { changes }),
  });
}

/** Returns the email address of the calling administrator. */
export async function adminEmail(
  ctx: { readonly auth: { adminId(): string | null }; readonly db: unknown },
): Promise<string> {
  const { db } = ctx as unknown as AccountsReader;
  const admin = await findAccount(db, "_admins", ctx.auth.adminId() ?? "");
  return text(admin?.["email"]) ?? "";
}

interface AccountsReader {
  readonly db: {
    normalizeId(table: string, id: string): string | null;
    get(id: string): Promise<Record<string, unknown> | null>;
  };
}

/** Returns a row of the accounts' tables, or `null`. */
export async function findAccount(
  reader: unknown,
  table: string,
  id: string,
): Promise<Record<string, unknown> | null> {
  const db = reader as AccountsReader["db"];
  const own = db.normalizeId(table, id);
  return own === null ? null : await db.get(own);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Argument names whose values are never recorded, except ids, such as `keyId`. */
const SECRET = /password|secret|token|key|code|url$/i;

/** Summarizes arguments, large ones by size only, so that deleted contents do not survive in the audit log. */
function summarizeArgs(args: Readonly<Record<string, unknown>>): Record<string, AuditValue> {
  const noted: Record<string, AuditValue> = {};
  for (const [name, value] of Object.entries(args).slice(0, opsLimits.auditArgsMax)) {
    noted[name] = SECRET.test(name) && !name.endsWith("Id") ? "(hidden)" : summarizeValue(value);
  }
  return noted;
}

function summarizeValue(value: unknown): AuditValue {
  switch (typeof value) {
    case "string":
      return value.slice(0, opsLimits.auditTextCharsMax);
    case "number":
    case "boolean":
      return value;
    case "object":
      if (value === null) return null;
      return Array.isArray(value) ? summarizeList(value) : `(${Object.keys(value).slice(0, 20).join(", ")})`;
    default:
      return null;
  }
}

/** Records IDs if there are few. */
function summarizeList(values: readonly unknown[]): string {
  const few = values.length <= 5 && values.every((value) => typeof value === "string" && value.length <= 40);
  return few ? values.join(", ") : `(${values.length})`;
}
