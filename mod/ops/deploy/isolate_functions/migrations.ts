/** Data migrations: an internal mutation runs for each document, in batches whose progress is in their transaction. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import { type AnyDataModel, type Id, id, type SystemMutationCtx } from "../../../functions/api/service.ts";
import { deployLimits } from "../../limits.ts";
import {
  adminMutation,
  adminQuery,
  type DeployDoc,
  type DeployMutationCtx,
  type DeployQueryCtx,
  DRY_RUN_DONE,
  systemMutation,
  systemQuery,
} from "../tables.ts";

/** Characters of documents read per step; the mutation reads them again. */
const STEP_CHARS = 512 * 1024;

export interface StartedMigration {
  readonly migrationId: Id<"_migrations">;
  /** Documents migrated so far; 0 for a new migration. */
  readonly documents: number;
  readonly resumed: boolean;
}

/** A migration as administrators see it. */
export interface MigrationInfo {
  readonly migrationId: Id<"_migrations">;
  /** Internal mutation that runs for each document. */
  readonly path: string;
  readonly table: string;
  readonly state: "running" | "done";
  /** Whether the server runs it. Otherwise it continues when stepped by a client or run again. */
  readonly onServer: boolean;
  /** Why the server stopped it, or `null`. */
  readonly error: string | null;
  /** Documents migrated so far. */
  readonly documents: number;
  readonly begunAt: number;
  readonly endedAt: number | null;
}

/** Lists running and recently finished migrations, newest first. */
export const list = adminQuery({
  args: {},
  handler: async (ctx): Promise<MigrationInfo[]> =>
    (await ctx.db.query("_migrations").order("desc").take(2 * deployLimits.migrationsKept)).map((
      { _id, _creationTime, path, table, state, onServer, error, documents, endedAt },
    ) => ({
      migrationId: _id,
      path,
      table,
      state,
      onServer: onServer === true,
      error: error ?? null,
      documents,
      begunAt: _creationTime,
      endedAt: endedAt ?? null,
    })),
});

/** Returns migrations that the server resumes at startup. */
export const resumable = systemQuery({
  args: {},
  handler: async (ctx): Promise<Id<"_migrations">[]> => (await onServer(ctx)).map(({ _id }) => _id),
});

/** Makes the server stop after the current step. The migration can be resumed. */
export const halt = adminMutation({
  args: { migrationId: z.string() },
  handler: async (ctx, { migrationId }): Promise<null> => {
    const id = ctx.db.normalizeId("_migrations", migrationId);
    if (id === null || await ctx.db.get(id) === null) throw notFound();
    await ctx.db.patch(id, { onServer: undefined });
    return null;
  },
});

/** Marks a migration that the server cannot continue. */
export const stop = systemMutation({
  args: { migrationId: id("_migrations"), error: z.string() },
  handler: async (ctx, { migrationId, error }): Promise<null> => {
    // It may have been restarted in the meantime.
    if (await ctx.db.get(migrationId) !== null) {
      await ctx.db.patch(migrationId, { onServer: undefined, error });
    }
    return null;
  },
});

/** Starts or resumes a migration. `fromStart` restarts it, `onServer` lets the server run it. Throws `too_much_work` if too many are running. */
export const begin = systemMutation({
  args: { path: z.string(), table: z.string(), fromStart: z.boolean(), onServer: z.boolean() },
  handler: async (ctx, { path, table, fromStart, onServer: byMain }): Promise<StartedMigration> => {
    checkRunnable(ctx, { path, table });
    if (byMain) await checkLimit(ctx, { path, table });
    const known = await ctx.db.query("_migrations")
      .withIndex("by_path", (q) => q.eq("path", path).eq("table", table)).collect();
    const left = known.find(({ state }) => state === "running");
    if (left !== undefined && !fromStart) {
      if (byMain) await ctx.db.patch(left._id, { onServer: true, error: undefined });
      return { migrationId: left._id, documents: left.documents, resumed: left.cursor !== undefined };
    }
    if (left !== undefined) await ctx.db.delete(left._id);
    const all = await ctx.db.query("_migrations").order("desc").collect();
    const ended = all.filter(({ state }) => state === "done");
    for (const { _id } of ended.slice(deployLimits.migrationsKept)) await ctx.db.delete(_id);
    const row = {
      path,
      table,
      until: await newest(ctx, table),
      documents: 0,
      state: "running" as const,
      ...(byMain && { onServer: true }),
    };
    return { migrationId: await ctx.db.insert("_migrations", row), documents: 0, resumed: false };
  },
});

function onServer(ctx: Pick<DeployQueryCtx, "db">): Promise<DeployDoc<"_migrations">[]> {
  return ctx.db.query("_migrations").withIndex("by_on_server", (q) => q.eq("onServer", true)).collect();
}

/** Checks the limit of running migrations; a resumed one counts as new unless it is running. */
async function checkLimit(
  ctx: DeployMutationCtx,
  { path, table }: { readonly path: string; readonly table: string },
): Promise<void> {
  const others = (await onServer(ctx)).filter((other) => other.path !== path || other.table !== table);
  if (others.length < deployLimits.migrationsAtOnce) return;
  throw new UserError(
    "too_much_work",
    `${deployLimits.migrationsAtOnce} migrations are running already. Wait or stop one`,
  );
}

function notFound(): UserError {
  return new UserError("migration_not_found", "The migration was restarted elsewhere");
}

/** Largest creation time in a table, which may be ahead of the clock. */
async function newest(ctx: DeployMutationCtx, table: string): Promise<number> {
  const app = ctx as unknown as SystemMutationCtx<AnyDataModel>;
  const [last] = await app.db.query(table).order("desc").take(1);
  return Math.max(Date.now(), last?._creationTime ?? 0);
}

export interface Step {
  /** Documents migrated so far. */
  readonly documents: number;
  readonly done: boolean;
  /** Whether nothing was done because the migration was stopped. */
  readonly halted: boolean;
}

/** Runs the mutation for the next documents. `onServer`: the server takes the step on its own. */
export const step = systemMutation({
  args: { migrationId: id("_migrations"), rows: z.int().min(1), onServer: z.boolean() },
  handler: async (ctx, { migrationId, rows, onServer: byMain }): Promise<Step> => {
    const migration = await ctx.db.get(migrationId);
    if (migration === null) {
      // Restarted elsewhere: nothing to report.
      if (byMain) return { documents: 0, done: false, halted: true };
      throw notFound();
    }
    const { path, table, until, cursor, documents, state } = migration;
    if (state === "done") return { documents, done: true, halted: false };
    if (byMain && migration.onServer !== true) return { documents, done: false, halted: true };
    checkRunnable(ctx, { path, table });
    const walk = ctx.inspector.walk(table, { after: cursor ?? null, rowsMax: rows, charsMax: STEP_CHARS });
    const meant = walk.documents.filter(({ _creationTime }) => _creationTime <= until);
    await runFor(ctx, { path, ids: meant.map(({ _id }) => _id) });
    const done = walk.next === null || meant.length < walk.documents.length;
    const after = documents + meant.length;
    await ctx.db.patch(migrationId, {
      documents: after,
      ...(walk.next !== null && { cursor: walk.next }),
      ...(done && { state: "done" as const, endedAt: Date.now(), onServer: undefined, error: undefined }),
    });
    return { documents: after, done, halted: false };
  },
});

/** Dry run on the first documents. Always throws: `migration_tried` on success, which rolls back all writes. */
export const tryOut = systemMutation({
  args: { path: z.string(), table: z.string(), rows: z.int().min(1) },
  handler: async (ctx, { path, table, rows }): Promise<null> => {
    checkRunnable(ctx, { path, table });
    const { documents } = ctx.inspector.walk(table, { after: null, rowsMax: rows, charsMax: STEP_CHARS });
    let changed = 0;
    const app = ctx as unknown as SystemMutationCtx<AnyDataModel>;
    for (const before of documents) {
      await runFor(ctx, { path, ids: [before._id] });
      if (JSON.stringify(await app.db.get(before._id as never)) !== JSON.stringify(before)) changed++;
    }
    throw new UserError(DRY_RUN_DONE, "Tried out", { documents: documents.length, changed });
  },
});

function checkRunnable(
  ctx: DeployMutationCtx,
  { path, table }: { readonly path: string; readonly table: string },
): void {
  const { inspector } = ctx;
  const found = inspector.functions().find((known) => known.path === path);
  if (
    found === undefined || found.ofService || found.kind !== "mutation" || found.visibility !== "internal"
  ) {
    throw new UserError(
      "unknown_function",
      `Internal mutation "${path}" not found in the served version. Declare it with ` +
        `internalMutation({ args: { id: id("${table}") }, handler }) and deploy it`,
    );
  }
  if (!inspector.tables().some(({ name, ofService }) => name === table && !ofService)) {
    throw new UserError("unknown_table", `Table "${table}" not found`);
  }
}

async function runFor(
  ctx: DeployMutationCtx,
  { path, ids }: { readonly path: string; readonly ids: readonly string[] },
): Promise<void> {
  const app = ctx as unknown as SystemMutationCtx<AnyDataModel>;
  for (const id of ids) {
    // An earlier call may have deleted it.
    if (await app.db.get(id as never) === null) continue;
    try {
      await app.runMutation(path as never, { id } as never);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new UserError("migration_failed", `${path} failed for document ${id}: ${reason}`, { id });
    }
  }
}
