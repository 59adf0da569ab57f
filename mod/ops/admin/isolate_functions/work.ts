/** Administrators' background tasks as documents (`_admin/work:`). The main process runs them in steps. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import { type AnyDataModel, type Id, id, type SystemMutationCtx } from "../../../functions/api/service.ts";
import { opsLimits } from "../../limits.ts";
import {
  type AdminDoc,
  adminMutation,
  type AdminMutationCtx,
  adminQuery,
  systemMutation,
} from "../tables.ts";
import { checkWritable, exposeErrors, queryOf } from "./where.ts";
import { importModes } from "../../tables/mod.ts";
import { whereArgs } from "../where_args.ts";

/** Lists running tasks, then finished ones, newest first. */
export const list = adminQuery({
  args: {},
  handler: async (ctx): Promise<AdminDoc<"_admin_work">[]> =>
    await ctx.db.query("_admin_work").order("desc").take(opsLimits.adminWorksKept + opsLimits.adminWorksMax),
});

/** Returns one task, or `null`. */
export const get = adminQuery({
  args: { workId: z.string() },
  handler: async (ctx, { workId }): Promise<AdminDoc<"_admin_work"> | null> => {
    const id = ctx.db.normalizeId("_admin_work", workId);
    return id === null ? null : await ctx.db.get(id);
  },
});

/** Cancels a task after its current step. Completed steps are kept. */
export const cancel = adminMutation({
  args: { workId: z.string() },
  handler: async (ctx, { workId }): Promise<null> => {
    const id = ctx.db.normalizeId("_admin_work", workId);
    const work = id === null ? null : await ctx.db.get(id);
    if (work === null) throw new UserError("work_not_found", "Task not found");
    if (work.state === "running") await end(ctx, work._id, { state: "canceled" });
    return null;
  },
});

/** Deletes a finished task. A running one stays. */
export const forget = adminMutation({
  args: { workId: z.string() },
  handler: async (ctx, { workId }): Promise<null> => {
    const id = ctx.db.normalizeId("_admin_work", workId);
    const work = id === null ? null : await ctx.db.get(id);
    if (work !== null && work.state !== "running") await ctx.db.delete(work._id);
    return null;
  },
});

/** Starts a deletion of documents. Throws `too_much_work` if too many tasks are running. */
export const beginDelete = systemMutation({
  args: { table: z.string(), startedBy: z.string() },
  handler: async (ctx, { table, startedBy }): Promise<Id<"_admin_work">> => {
    checkWritable(table);
    if (!ctx.inspector.tables().some(({ name }) => name === table)) {
      throw new UserError("unknown_table", `Table "${table}" not found`);
    }
    // The import over HTTP, at most one, does not count towards the limit.
    const running = await ctx.db.query("_admin_work").withIndex("by_state", (q) => q.eq("state", "running"))
      .take(opsLimits.adminWorksMax + 1);
    if (running.filter(({ kind }) => kind === "deleteDocuments").length >= opsLimits.adminWorksMax) {
      throw new UserError(
        "too_much_work",
        `${opsLimits.adminWorksMax} tasks are running already. Wait or cancel one`,
      );
    }
    await deleteOld(ctx);
    return await ctx.db.insert("_admin_work", {
      kind: "deleteDocuments",
      table,
      startedBy,
      state: "running",
      changed: 0,
    });
  },
});

export interface DeleteStep {
  /** Cursor of the next step; `null` when done or canceled. */
  readonly cursor: string | null;
}

const NO_MATCH_IN_RANGE =
  `None of the ${opsLimits.adminRowsReadMax} best matches meets the conditions; there may be further matches`;

/** Deletes a batch of the selected documents and records the progress in the same transaction. */
export const deleteStep = systemMutation({
  args: {
    ...whereArgs,
    workId: id("_admin_work"),
    cursor: z.string().nullable(),
    /** Newer documents are kept. */
    until: z.number(),
  },
  handler: async (ctx, { workId, cursor, until, ...where }): Promise<DeleteStep> => {
    checkWritable(where.table);
    const work = await ctx.db.get(workId);
    if (work === null || work.state !== "running") return { cursor: null };
    return await exposeErrors(async () => {
      const app = ctx as unknown as SystemMutationCtx<AnyDataModel>;
      // Deleting search results shifts the remaining ones, so each step starts from the beginning.
      const { page, isDone, continueCursor } = await queryOf(app, where)
        .filter((doc) => doc._creationTime <= until).paginate({
          cursor: where.search === undefined ? cursor : null,
          numItems: opsLimits.adminDeletedAtOnce,
          maximumCharsRead: opsLimits.adminPageCharsMax,
          maximumRowsRead: opsLimits.adminRowsReadMax,
        });
      for (const { _id } of page) await app.db.delete(_id);
      const over = isDone || (where.search !== undefined && page.length === 0);
      const changed = work.changed + page.length;
      if (over && !isDone) await end(ctx, workId, { state: "failed", changed, error: NO_MATCH_IN_RANGE });
      else if (over) await end(ctx, workId, { state: "done", changed });
      else await ctx.db.patch(workId, { changed });
      return { cursor: over ? null : continueCursor };
    });
  },
});

/** Records a new import, before its rows are checked. */
export const beginImport = systemMutation({
  args: { table: z.string(), mode: z.enum(importModes), startedBy: z.string() },
  handler: async (ctx, args): Promise<Id<"_admin_work">> => {
    await deleteOld(ctx);
    return await ctx.db.insert("_admin_work", { ...args, kind: "importRows", state: "running", changed: 0 });
  },
});

/** Records an import's progress in the same transaction. Throws `import_ended` if it must not continue. */
export async function recordImport(
  ctx: AdminMutationCtx,
  workId: Id<"_admin_work">,
  now: Partial<Record<"changed" | "emptied", number>>,
): Promise<void> {
  const work = await ctx.db.get(workId);
  if (work?.state !== "running") {
    const canceled = work?.state === "canceled";
    throw new UserError(
      "import_ended",
      canceled ? "The import was canceled" : "The server that ran the import was replaced",
    );
  }
  const { changed = 0, emptied = 0 } = now;
  await ctx.db.patch(workId, {
    changed: work.changed + changed,
    ...(emptied > 0 && { emptied: (work.emptied ?? 0) + emptied }),
  });
}

/** Ends an import. One that failed without changes is deleted. */
export const endImport = systemMutation({
  args: { workId: id("_admin_work"), error: z.string().nullable() },
  handler: async (ctx, { workId, error }): Promise<null> => {
    const work = await ctx.db.get(workId);
    if (work?.state !== "running") return null;
    if (error === null) await end(ctx, workId, { state: "done" });
    else if (work.changed + (work.emptied ?? 0) === 0) await ctx.db.delete(workId);
    else await end(ctx, workId, { state: "failed", error });
    return null;
  },
});

/** Marks a task as failed. */
export const fail = systemMutation({
  args: { workId: id("_admin_work"), error: z.string() },
  handler: async (ctx, { workId, error }): Promise<null> => {
    if ((await ctx.db.get(workId))?.state === "running") await end(ctx, workId, { state: "failed", error });
    return null;
  },
});

/** Called at startup: marks tasks that ran when the server stopped as interrupted. */
export const interrupt = systemMutation({
  args: {},
  handler: async (ctx): Promise<null> => {
    const running = await ctx.db.query("_admin_work").withIndex("by_state", (q) => q.eq("state", "running"))
      .collect();
    for (const { _id } of running) await end(ctx, _id, { state: "interrupted" });
    return null;
  },
});

async function end(
  ctx: AdminMutationCtx,
  workId: Id<"_admin_work">,
  fields: Partial<Pick<AdminDoc<"_admin_work">, "state" | "changed" | "error">>,
): Promise<void> {
  await ctx.db.patch(workId, { ...fields, endedAt: Date.now() });
}

async function deleteOld(ctx: AdminMutationCtx): Promise<void> {
  const keptMax = opsLimits.adminWorksKept;
  const newest = await ctx.db.query("_admin_work").order("desc").take(keptMax + opsLimits.adminWorksMax + 1);
  for (const { _id, state } of newest.slice(keptMax)) if (state !== "running") await ctx.db.delete(_id);
}
