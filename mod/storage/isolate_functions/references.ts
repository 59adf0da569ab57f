/** Which documents name which files: found by going through the documents of all tables, a bounded number at a time. */
import { z } from "zod";
import { storageLimits } from "../limits.ts";
import { systemQuery } from "../tables.ts";

/** A document that names a file. */
export interface FileReference {
  readonly fileId: string;
  readonly table: string;
  readonly id: string;
  /** Where in the document, such as `attachments[0].file`. */
  readonly field: string;
}

/** Where a walk through all documents goes on. */
export interface WalkPlace {
  readonly table: string;
  readonly after: string | null;
}

/** A part of a walk; `next` is `null` when nothing is left. */
export interface WalkPart<Found> {
  readonly found: readonly Found[];
  readonly read: number;
  readonly next: WalkPlace | null;
}

const placeArgs = { place: z.strictObject({ table: z.string(), after: z.string().nullable() }).nullable() };

/** The references in some of the documents; to one file, or to any. */
export const referencesAmong = systemQuery({
  args: { ...placeArgs, fileId: z.string().nullable() },
  handler: (ctx, { place, fileId }): WalkPart<FileReference> => {
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

/** Some of the files, by creation: those that came until `before`. */
export const filesAmong = systemQuery({
  args: { cursor: z.string().nullable(), before: z.number() },
  handler: async (ctx, { cursor, before }): Promise<{ ids: string[]; cursor: string | null }> => {
    const { page, isDone, continueCursor } = await ctx.db.query("_storage")
      .withIndex("by_creation_time", (q) => q.lte("_creationTime", before))
      .paginate({ cursor, numItems: storageLimits.documentsWalkedAtOnce });
    return { ids: page.map(({ _id }) => _id), cursor: isDone ? null : continueCursor };
  },
});

/** The texts in a value, with their places. */
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
