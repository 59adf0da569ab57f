/**
 * Migrations in the isolates: an internal mutation of the app is run for the documents of a table, some in each
 * transaction, and how far it came is noted in the same one. So each document is done once, whatever ends the server.
 */
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
  systemMutation,
  systemQuery,
} from "../tables.ts";
import { TRIED } from "../tried.ts";

/** Characters of documents that one step reads; the mutation reads them again. */
const STEP_CHARS = 512 * 1024;

export interface Begun {
  readonly migrationId: Id<"_migrations">;
  /** Documents that were done before; 0 for one that begins. */
  readonly documents: number;
  /** Whether it goes on where it was left. */
  readonly resumed: boolean;
}

/** A migration as administrators see it. */
export interface MigrationInfo {
  readonly migrationId: Id<"_migrations">;
  /** The internal mutation that is run for each document. */
  readonly path: string;
  readonly table: string;
  readonly state: "running" | "done";
  /** Whether the server goes on with it by itself; if not, it goes on when somebody steps it or has it run. */
  readonly onServer: boolean;
  /** Why the server stopped; `null` where it did not. */
  readonly error: string | null;
  /** Documents done so far. */
  readonly documents: number;
  readonly begunAt: number;
  readonly endedAt: number | null;
}

/** Migrations under way and those that ended last, the newest first. */
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

/** Those that the server goes on with after a start. */
export const underWay = systemQuery({
  args: {},
  handler: async (ctx): Promise<Id<"_migrations">[]> => (await onServer(ctx)).map(({ _id }) => _id),
});

/** Has the server stop behind the step under way: it goes on from there when it is told to. */
export const halt = adminMutation({
  args: { migrationId: z.string() },
  handler: async (ctx, { migrationId }): Promise<null> => {
    const id = ctx.db.normalizeId("_migrations", migrationId);
    if (id === null || await ctx.db.get(id) === null) throw notFound();
    await ctx.db.patch(id, { onServer: undefined });
    return null;
  },
});

/** The server cannot go on with it. */
export const stop = systemMutation({
  args: { migrationId: id("_migrations"), error: z.string() },
  handler: async (ctx, { migrationId, error }): Promise<null> => {
    // It may have been begun anew meanwhile.
    if (await ctx.db.get(migrationId) !== null) {
      await ctx.db.patch(migrationId, { onServer: undefined, error });
    }
    return null;
  },
});

/**
 * Begins a migration, or goes on with the one of this function and table that has not ended. `anew`: from the first
 * document. `onServer`: main runs it. Throws `too_much_work` while it runs enough others.
 */
export const begin = systemMutation({
  args: { path: z.string(), table: z.string(), anew: z.boolean(), onServer: z.boolean() },
  handler: async (ctx, { path, table, anew, onServer: byMain }): Promise<Begun> => {
    checkRunnable(ctx, { path, table });
    if (byMain) await checkRoom(ctx, { path, table });
    const known = await ctx.db.query("_migrations")
      .withIndex("by_path", (q) => q.eq("path", path).eq("table", table)).collect();
    const left = known.find(({ state }) => state === "running");
    if (left !== undefined && !anew) {
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

/** One that is gone on with counts as a new one does, unless it runs already. */
async function checkRoom(
  ctx: DeployMutationCtx,
  { path, table }: { readonly path: string; readonly table: string },
): Promise<void> {
  const others = (await onServer(ctx)).filter((other) => other.path !== path || other.table !== table);
  if (others.length < deployLimits.migrationsAtOnce) return;
  throw new UserError(
    "too_much_work",
    `${deployLimits.migrationsAtOnce} migrations run already: wait or stop one`,
  );
}

function notFound(): UserError {
  return new UserError("migration_not_found", "The migration was begun anew elsewhere");
}

/** Creation time behind which no document of a table is: the times of documents may run ahead of the clock. */
async function newest(ctx: DeployMutationCtx, table: string): Promise<number> {
  const app = ctx as unknown as SystemMutationCtx<AnyDataModel>;
  const [last] = await app.db.query(table).order("desc").take(1);
  return Math.max(Date.now(), last?._creationTime ?? 0);
}

export interface Step {
  /** Documents done so far. */
  readonly documents: number;
  readonly done: boolean;
  /** Whether nothing was done because the server was told to stop. */
  readonly halted: boolean;
}

/** Runs the mutation for some of the documents behind those that are done. `onServer`: main takes the step by itself. */
export const step = systemMutation({
  args: { migrationId: id("_migrations"), rows: z.int().min(1), onServer: z.boolean() },
  handler: async (ctx, { migrationId, rows, onServer: byMain }): Promise<Step> => {
    const migration = await ctx.db.get(migrationId);
    if (migration === null) {
      // Begun anew elsewhere: nothing that main has to tell of.
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

/** Runs the mutation for the first documents and takes back what it wrote: always throws `migration_tried` when all went well. */
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
    throw new UserError(TRIED, "Tried out", { documents: documents.length, changed });
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
      `There is no internal mutation "${path}": declare it with internalMutation({ args: { id: id("${table}") }, handler })`,
    );
  }
  if (!inspector.tables().some(({ name, ofService }) => name === table && !ofService)) {
    throw new UserError("unknown_table", `The app has no table "${table}"`);
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
