/** Administrators' functions on the app's documents, at `_admin/data:<name>`. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import {
  type AnyDataModel,
  type Inspector,
  paginationOpts,
  type PaginationResult,
  type SystemMutationCtx,
  type TableFacts,
  type Unchecked,
} from "../../../functions/api/service.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { opsLimits } from "../../limits.ts";
import { adminMutation, adminQuery, systemQuery } from "../tables.ts";
import { type AppCtx, checkReadable, checkWritable, exposeErrors, queryOf, scans } from "./where.ts";
import { valueOf, type Where, whereArgs } from "../where_args.ts";

type Fields = Record<string, unknown>;
const fields: z.ZodRecord<z.ZodString, z.ZodUnknown> = z.record(z.string(), z.unknown());

/** A table with its document count. */
export interface TableOverview extends TableFacts {
  readonly count: number;
  /** Whether there are more documents than `count`; `_admin/data:sizes` returns the exact number. */
  readonly more: boolean;
  /** Whether the live version's schema lacks the table. Its documents can be read and exported only. */
  readonly orphaned: boolean;
}

/**
 * Lists tables with schemas and indexes: the app's, then those with documents that the schema lacks, then the service's.
 * Documents are counted up to a limit.
 */
export const tables = adminQuery({
  args: {},
  handler: (ctx): TableOverview[] => {
    const counted = (table: TableFacts, orphaned: boolean): TableOverview => {
      const count = ctx.inspector.count(table.name, opsLimits.adminCountMax + 1);
      const more = count > opsLimits.adminCountMax;
      return { ...table, count: more ? opsLimits.adminCountMax : count, more, orphaned };
    };
    const all = ctx.inspector.tables();
    return [
      ...all.filter(({ ofService }) => !ofService).map((table) => counted(table, false)),
      ...ctx.inspector.orphanedTables().map((table) => counted(table, true)).filter(({ count }) => count > 0),
      ...all.filter(({ name }) => readableSystemTables.has(name)).map((table) => counted(table, false)),
    ];
  },
});

/**
 * Returns a page of documents selected by an index range or a search, and conditions; newest first by default. With
 * conditions a page ends after a bounded number of documents read and may be empty. Pages of large documents end early, also
 * before an `endCursor`.
 */
export const documents = adminQuery({
  args: { ...whereArgs, paginationOpts },
  handler: async (ctx, { paginationOpts, ...where }): Promise<PaginationResult<Unchecked>> => {
    checkReadable(where.table);
    return await exposeErrors(async () =>
      await queryOf(ctx as unknown as AppCtx, where).paginate({
        ...paginationOpts,
        maximumCharsRead: opsLimits.adminPageCharsMax,
        ...(scans(where) && { maximumRowsRead: opsLimits.adminRowsReadMax }),
      })
    );
  },
});

/** Counts selected documents up to a limit by reading the whole range: call it once, do not subscribe. */
export const count = adminQuery({
  args: whereArgs,
  handler: async (ctx, where): Promise<{ count: number; more: boolean }> =>
    await exposeErrors(() => {
      const count = ctx.inspector.countRows(positionedQuery(ctx, where), opsLimits.adminPositionMax + 1);
      const more = count > opsLimits.adminPositionMax;
      return Promise.resolve({ count: more ? opsLimits.adminPositionMax : count, more });
    }),
});

/** Returns the cursor after `behind` documents, or that many before the cursor `before`. Reads them. `null` if there are fewer. */
export const position = adminQuery({
  args: {
    ...whereArgs,
    behind: z.number().int().min(1).max(opsLimits.adminPositionMax),
    before: z.string().optional(),
  },
  handler: async (ctx, { behind, before, ...where }): Promise<{ cursor: string | null }> =>
    await exposeErrors(() => {
      const query = positionedQuery(ctx, where);
      const cursor = before === undefined
        ? ctx.inspector.cursorBehind(query, behind)
        : ctx.inspector.cursorBefore(query, before, behind);
      return Promise.resolve({ cursor });
    }),
});

/** Returns a document of any readable table, or `null`. */
export const get = adminQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<{ table: string; document: Unchecked } | null> => {
    const { db } = ctx as unknown as AppCtx;
    const table = ctx.inspector.tables().map(({ name }) => name)
      .find((name) => db.normalizeId(name, id) !== null);
    if (table === undefined) return await orphanedDocument(ctx, id);
    checkReadable(table);
    const document = await db.get(id as never);
    return document === null ? null : { table, document };
  },
});

/** Returns the table that an ID belongs to, whether the document exists or not; `null` if it is not an ID. */
export const tableOf = adminQuery({
  args: { id: z.string() },
  handler: (ctx, { id }): string | null => {
    const { db } = ctx as unknown as AppCtx;
    const names = ctx.inspector.tables().map(({ name }) => name);
    return names.find((name) => db.normalizeId(name, id) !== null) ?? null;
  },
});

/** Throws for IDs of tables that administrators cannot read, whether the document exists or not. */
export const checkReadableId = systemQuery({
  args: { id: z.string() },
  handler: (ctx, { id }): null => {
    const { db } = ctx as unknown as AppCtx;
    const table = ctx.inspector.tables().map(({ name }) => name)
      .find((name) => db.normalizeId(name, id) !== null);
    if (table === undefined) throw new UserError("document_not_found", "Document not found", { id });
    checkReadable(table);
    return null;
  },
});

/** Finds a document in the tables that the schema lacks. */
async function orphanedDocument(
  ctx: { readonly inspector: Inspector },
  id: string,
): Promise<{ table: string; document: Unchecked } | null> {
  const { db } = ctx as unknown as AppCtx;
  for (const { name: table } of ctx.inspector.orphanedTables()) {
    const document = await db.query(table).withIndex("by_id", (q: Unchecked) => q.eq("_id", id)).unique();
    if (document !== null) return { table, document };
  }
  return null;
}

/** Time of the earlier state that is stored again, for the audit log. Milliseconds since the epoch. */
const restored = z.int().min(0).max(8.64e15).optional();

/** Inserts documents atomically, with their IDs and times if they have some. Throws `invalid_document`. */
export const insert = adminMutation({
  args: { table: z.string(), documents: z.array(fields).min(1).max(opsLimits.adminDocumentsMax), restored },
  handler: async (ctx, { table, documents }): Promise<{ ids: string[] }> => {
    const { db, importer, inspector } = appCtx(ctx);
    checkWritable(table);
    return await exposeErrors(async () => {
      const ids: string[] = [];
      for (const [position, { _id, _creationTime, ...own }] of documents.entries()) {
        rejectInvalid(inspector.issues(table, own), position);
        if (_id === undefined) ids.push(await db.insert(table, own));
        else {
          importer.store(
            table,
            { ...own, _id, ...(_creationTime !== undefined && { _creationTime }) },
            "insert",
          );
          ids.push(String(_id));
        }
      }
      return { ids };
    });
  },
});

const patchArgs = {
  id: z.string(),
  set: fields.default({}),
  unset: z.array(z.string()).default([]),
  seen: fields.optional(),
};
const patchSchema = z.strictObject(patchArgs);

/**
 * Sets and unsets fields. Throws `document_changed` if a value in `seen` (shown to the editor) has changed;
 * `{ "$missing": true }` there means that the field was absent.
 */
export const patch = adminMutation({
  args: patchArgs,
  handler: async (ctx, change): Promise<null> => {
    await patchOne(appCtx(ctx), change);
    return null;
  },
});

/** Patches several documents atomically. Returns their previous versions in the same order. */
export const patchMany = adminMutation({
  args: { changes: z.array(patchSchema).min(1).max(opsLimits.adminDocumentsMax) },
  handler: async (ctx, { changes }): Promise<{ before: Unchecked[] }> => {
    const before: Unchecked[] = [];
    for (const [position, change] of changes.entries()) {
      before.push(await patchOne(appCtx(ctx), change, position));
    }
    return { before };
  },
});

async function patchOne(
  ctx: WritingCtx,
  { id, set, unset, seen }: z.output<typeof patchSchema>,
  position = 0,
): Promise<Unchecked> {
  const { stored, table } = await writable(ctx, id);
  rejectChanged(stored, seen);
  const { _id, _creationTime, ...own } = { ...stored, ...set };
  for (const field of unset) delete own[field];
  await store(ctx, { id, table, own, position });
  return stored;
}

/** Replaces all fields of a document. With `seen`, also rejects fields that were added since. */
export const replace = adminMutation({
  args: { id: z.string(), document: fields, seen: fields.optional(), restored },
  handler: async (ctx, { id, document, seen }): Promise<null> => {
    const { stored, table } = await writable(appCtx(ctx), id);
    rejectChanged(stored, seen);
    rejectAdded(stored, seen);
    const { _id, _creationTime, ...own } = document;
    await store(appCtx(ctx), { id, table, own });
    return null;
  },
});

/**
 * Deletes documents of one table atomically and returns them; `insert` restores them. Throws `document_changed` if one differs
 * from the version in `seen`, by ID.
 */
export const remove = adminMutation({
  args: {
    ids: z.array(z.string()).min(1).max(opsLimits.adminDocumentsMax),
    seen: z.record(z.string(), fields).default({}),
  },
  handler: async (ctx, { ids, seen }): Promise<{ documents: Unchecked[] }> => {
    const documents: Unchecked[] = [];
    for (const id of new Set(ids)) {
      const { stored } = await writable(appCtx(ctx), id);
      rejectChanged(stored, seen[id]);
      rejectAdded(stored, seen[id]);
      documents.push(stored);
      await appCtx(ctx).db.delete(id as never);
    }
    return { documents };
  },
});

function positionedQuery(ctx: unknown, where: Where): ReturnType<typeof queryOf> {
  checkReadable(where.table);
  if (where.search !== undefined || scans(where)) {
    throw new UserError("bad_request", "Searches and conditions do not support positions");
  }
  return queryOf(ctx as AppCtx, where);
}

type WritingCtx = SystemMutationCtx<AnyDataModel>;

function appCtx(ctx: unknown): WritingCtx {
  return ctx as WritingCtx;
}

async function writable(ctx: WritingCtx, id: string): Promise<{ stored: Unchecked; table: string }> {
  const table = ctx.inspector.tables().map(({ name }) => name)
    .find((name) => ctx.db.normalizeId(name, id) !== null);
  if (table !== undefined) checkWritable(table);
  const stored = table === undefined ? null : await ctx.db.get(id as never);
  if (table === undefined || stored === null) {
    throw new UserError("document_not_found", "Document not found", { id });
  }
  return { stored, table };
}

async function store(
  ctx: WritingCtx,
  { id, table, own, position = 0 }: {
    readonly id: string;
    readonly table: string;
    readonly own: Fields;
    /** Index of the document in the call. */
    readonly position?: number;
  },
): Promise<void> {
  rejectInvalid(ctx.inspector.issues(table, own), position);
  await exposeErrors(async () => await ctx.db.replace(id as never, own));
}

function rejectInvalid(issues: ReturnType<WritingCtx["inspector"]["issues"]>, position: number): void {
  const [first] = issues;
  if (first === undefined) return;
  const at = first.path.length === 0 ? "" : `${first.path.join(".")}: `;
  throw new UserError(
    "invalid_document",
    `The document does not match its table's schema: ${at}${first.message}`,
    {
      position,
      issues,
    },
  );
}

/** Rejects conflicting edits. */
function rejectChanged(stored: Fields, seen: Fields | undefined): void {
  for (const [field, value] of Object.entries(seen ?? {})) {
    if (sameJson(stored[field], valueOf(value))) continue;
    throw new UserError("document_changed", `Someone else changed "${field}" while you were editing`, {
      field,
      document: stored,
    });
  }
}

/** Rejects a replacement that would drop fields the editor was not shown. */
function rejectAdded(stored: Fields, seen: Fields | undefined): void {
  if (seen === undefined) return;
  const { _id, _creationTime, ...own } = stored;
  const field = Object.keys(own).find((name) => !Object.hasOwn(seen, name));
  if (field === undefined) return;
  throw new UserError("document_changed", `Someone else added "${field}" while you were editing`, {
    field,
    document: stored,
  });
}

/** Compares objects regardless of the order of their fields. */
function sameJson(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return a === b;
  const keys = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson((a as Fields)[key], (b as Fields)[key]));
}
