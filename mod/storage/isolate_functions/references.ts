/** Finds references from documents to files by scanning all tables in bounded batches. */
import { z } from "zod";
import { storageLimits } from "../limits.ts";
import { systemQuery } from "../tables.ts";

export interface FileReference {
  readonly fileId: string;
  readonly table: string;
  readonly id: string;
  /** Path in the document, such as `attachments[0].file`. */
  readonly field: string;
}

export interface ScanPosition {
  readonly table: string;
  readonly after: string | null;
}

/** One batch of a scan; `next` is `null` at the end. */
export interface ScanBatch<Found> {
  readonly found: readonly Found[];
  readonly read: number;
  readonly next: ScanPosition | null;
}

const placeArgs = { place: z.strictObject({ table: z.string(), after: z.string().nullable() }).nullable() };

/** Returns the references in a batch of documents, to one file or to any. */
export const referencesBatch = systemQuery({
  args: { ...placeArgs, fileId: z.string().nullable() },
  handler: (ctx, { place, fileId }): ScanBatch<FileReference> => {
    const tables = ctx.inspector.tables().filter(({ ofService }) => !ofService).map(({ name }) => name);
    const table = place?.table ?? tables[0];
    if (table === undefined || !tables.includes(table)) return { found: [], read: 0, next: null };
    const { documents, next: after } = ctx.inspector.walk(table, {
      after: place?.after ?? null,
      rowsMax: storageLimits.documentsWalkedAtOnce,
      charsMax: storageLimits.charsWalkedAtOnce,
    });
    const found: FileReference[] = [];
    for (const doc of documents) {
      for (const { text, field } of texts(doc, "")) {
        const names = fileId === null ? ctx.db.normalizeId("_storage", text) !== null : text === fileId;
        if (names) found.push({ fileId: text, table, id: doc._id, field });
      }
    }
    const following = tables[tables.indexOf(table) + 1];
    const beyond = following === undefined ? null : { table: following, after: null };
    return { found, read: documents.length, next: after === null ? beyond : { table, after } };
  },
});

/** Returns a page of files created before `before`, by creation time. */
export const filesBatch = systemQuery({
  args: { cursor: z.string().nullable(), before: z.number() },
  handler: async (ctx, { cursor, before }): Promise<{ ids: string[]; cursor: string | null }> => {
    const { page, isDone, continueCursor } = await ctx.db.query("_storage")
      .withIndex("by_creation_time", (q) => q.lte("_creationTime", before))
      .paginate({ cursor, numItems: storageLimits.documentsWalkedAtOnce });
    return { ids: page.map(({ _id }) => _id), cursor: isDone ? null : continueCursor };
  },
});

/** Yields all strings in a value with their paths. */
function* texts(value: unknown, field: string): Generator<{ readonly text: string; readonly field: string }> {
  if (typeof value === "string") yield { text: value, field };
  else if (Array.isArray(value)) {
    for (const [i, element] of value.entries()) yield* texts(element, `${field}[${i}]`);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      if (field !== "" || !key.startsWith("_")) yield* texts(inner, field === "" ? key : `${field}.${key}`);
    }
  }
}
