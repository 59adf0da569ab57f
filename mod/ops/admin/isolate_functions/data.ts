/** What administrators see and change of the app's documents, at `_admin/data:<name>`. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import {
  type AnyDataModel,
  paginationOpts,
  type PaginationResult,
  type SystemMutationCtx,
  type TableFacts,
  type Unchecked,
} from "../../../functions/api/service.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { opsLimits } from "../../limits.ts";
import { adminMutation, adminQuery } from "../tables.ts";
import { toldErrors } from "./told_errors.ts";
import { type Where, whereArgs } from "../where_args.ts";
import { type AppCtx, checkReadable, checkWritable, queryOf, scans } from "./where.ts";

type Fields = Record<string, unknown>;
const fields: z.ZodRecord<z.ZodString, z.ZodUnknown> = z.record(z.string(), z.unknown());

/** A table with the number of its documents. */
export interface TableOverview extends TableFacts {
  readonly count: number;
  /** Whether there are more than `count`: how many says `_admin/data:sizes`. */
  readonly more: boolean;
}

/** The tables, those of the app first, with their schemas and indexes; documents are counted up to a bound. */
export const tables = adminQuery({
  args: {},
  handler: (ctx): TableOverview[] =>
    ctx.inspector.tables().filter(({ name, ofService }) => !ofService || readableSystemTables.has(name))
      .map((table) => {
        const count = ctx.inspector.count(table.name, opsLimits.adminCountMax + 1);
        const more = count > opsLimits.adminCountMax;
        return { ...table, count: more ? opsLimits.adminCountMax : count, more };
      }),
});

/**
 * Documents of a table, page by page: a range of an index, or a search, and conditions. The newest first unless an index
 * or an order is given. With conditions a page ends after a bounded number of documents looked at, and may be empty.
 * A page of large documents ends early, also in front of an `endCursor`.
 */
export const documents = adminQuery({
  args: { ...whereArgs, paginationOpts },
  handler: async (ctx, { paginationOpts, ...where }): Promise<PaginationResult<Unchecked>> => {
    checkReadable(where.table);
    return await toldErrors(async () =>
      await queryOf(ctx as unknown as AppCtx, where).paginate({
        ...paginationOpts,
        maximumCharsRead: opsLimits.adminPageCharsMax,
        ...(scans(where) && { maximumRowsRead: opsLimits.adminRowsReadMax }),
      })
    );
  },
});

/**
 * How many documents are meant, counted up to a bound. Goes along an index: not for searches and conditions. It reads the
 * whole range, so it is asked for once rather than watched.
 */
export const count = adminQuery({
  args: whereArgs,
  handler: async (ctx, where): Promise<{ count: number; more: boolean }> =>
    await toldErrors(() => {
      const count = ctx.inspector.countRows(placedQuery(ctx, where), opsLimits.adminPositionMax + 1);
      const more = count > opsLimits.adminPositionMax;
      return Promise.resolve({ count: more ? opsLimits.adminPositionMax : count, more });
    }),
});

/**
 * The cursor of `documents` behind so many of those that are meant; `null` where there are fewer. As costly as `count`.
 * With a cursor in `before` it is the one so many rows before that, which costs as much as those rows.
 */
export const position = adminQuery({
  args: {
    ...whereArgs,
    behind: z.number().int().min(1).max(opsLimits.adminPositionMax),
    before: z.string().optional(),
  },
  handler: async (ctx, { behind, before, ...where }): Promise<{ cursor: string | null }> =>
    await toldErrors(() => {
      const query = placedQuery(ctx, where);
      const cursor = before === undefined
        ? ctx.inspector.cursorBehind(query, behind)
        : ctx.inspector.cursorBefore(query, before, behind);
      return Promise.resolve({ cursor });
    }),
});

/** One document of any table that may be read; `null` when there is none. */
export const get = adminQuery({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<{ table: string; document: Unchecked } | null> => {
    const { db } = ctx as unknown as AppCtx;
    const table = ctx.inspector.tables().map(({ name }) => name)
      .find((name) => db.normalizeId(name, id) !== null);
    if (table === undefined) return null;
    checkReadable(table);
    const document = await db.get(id as never);
    return document === null ? null : { table, document };
  },
});

/**
 * Stores new documents, all or none. Ids and creation times that they bring are kept, so that what was deleted can be put
 * back. Throws `invalid_document` with the issues of the first that does not fit.
 */
export const insert = adminMutation({
  args: { table: z.string(), documents: z.array(fields).min(1).max(opsLimits.adminDocumentsMax) },
  handler: async (ctx, { table, documents }): Promise<{ ids: string[] }> => {
    const { db, importer, inspector } = appCtx(ctx);
    checkWritable(table);
    return await toldErrors(async () => {
      const ids: string[] = [];
      for (const [position, { _id, _creationTime, ...own }] of documents.entries()) {
        refuseUnfit(inspector.issues(table, own), position);
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
 * Changes some fields of a document: those in `set` get new values, those in `unset` go. `seen` holds values that the
 * editor was shown: when one of them is another by now, nothing is changed (`document_changed`, with the document).
 */
export const patch = adminMutation({
  args: patchArgs,
  handler: async (ctx, change): Promise<null> => {
    await patchOne(appCtx(ctx), change);
    return null;
  },
});

/** The same for several documents, all or none. Gives what they were before, in the same order. */
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
  refuseChanged(stored, seen);
  const { _id, _creationTime, ...own } = { ...stored, ...set };
  for (const field of unset) delete own[field];
  await store(ctx, { id, table, own, position });
  return stored;
}

/** Replaces all fields of a document; `seen` as for `patch`, and fields that it does not have must not have come since. */
export const replace = adminMutation({
  args: { id: z.string(), document: fields, seen: fields.optional() },
  handler: async (ctx, { id, document, seen }): Promise<null> => {
    const { stored, table } = await writable(appCtx(ctx), id);
    refuseChanged(stored, seen);
    refuseAdded(stored, seen);
    const { _id, _creationTime, ...own } = document;
    await store(appCtx(ctx), { id, table, own });
    return null;
  },
});

/** Deletes documents of one table, all or none, and gives them back: `insert` puts them where they were. */
export const remove = adminMutation({
  args: { ids: z.array(z.string()).min(1).max(opsLimits.adminDocumentsMax) },
  handler: async (ctx, { ids }): Promise<{ documents: Unchecked[] }> => {
    const documents: Unchecked[] = [];
    for (const id of new Set(ids)) {
      const { stored } = await writable(appCtx(ctx), id);
      documents.push(stored);
      await appCtx(ctx).db.delete(id as never);
    }
    return { documents };
  },
});

/** A query whose documents stand at a place before they are read. */
function placedQuery(ctx: unknown, where: Where): ReturnType<typeof queryOf> {
  checkReadable(where.table);
  if (where.search !== undefined || scans(where)) {
    throw new UserError("bad_request", "Results of a search, and of conditions, have no position");
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
    throw new UserError("document_not_found", "There is no document with this id", { id });
  }
  return { stored, table };
}

async function store(
  ctx: WritingCtx,
  { id, table, own, position = 0 }: {
    readonly id: string;
    readonly table: string;
    readonly own: Fields;
    /** Which one it is of several. */
    readonly position?: number;
  },
): Promise<void> {
  refuseUnfit(ctx.inspector.issues(table, own), position);
  await toldErrors(async () => await ctx.db.replace(id as never, own));
}

function refuseUnfit(issues: ReturnType<WritingCtx["inspector"]["issues"]>, position: number): void {
  const [first] = issues;
  if (first === undefined) return;
  const at = first.path.length === 0 ? "" : `${first.path.join(".")}: `;
  throw new UserError("invalid_document", `The document does not fit its table: ${at}${first.message}`, {
    position,
    issues,
  });
}

/** Two who edit one document: the second is told. */
function refuseChanged(stored: Fields, seen: Fields | undefined): void {
  for (const [field, value] of Object.entries(seen ?? {})) {
    if (sameJson(stored[field], value)) continue;
    throw new UserError("document_changed", `Somebody else has changed "${field}" meanwhile`, {
      field,
      document: stored,
    });
  }
}

/** What the editor was not shown must not be lost with what it replaces. */
function refuseAdded(stored: Fields, seen: Fields | undefined): void {
  if (seen === undefined) return;
  const { _id, _creationTime, ...own } = stored;
  const field = Object.keys(own).find((name) => !Object.hasOwn(seen, name));
  if (field === undefined) return;
  throw new UserError("document_changed", `Somebody else has added "${field}" meanwhile`, {
    field,
    document: stored,
  });
}

/** Objects are equal whatever the order of their fields. */
function sameJson(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return a === b;
  const keys = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson((a as Fields)[key], (b as Fields)[key]));
}
