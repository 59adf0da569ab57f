/** Documents that other documents refer to, by a label, at `_admin/data:labels` and `_admin/data:choices`. */
import { z } from "zod";
import type { Unchecked } from "../../../functions/api/service.ts";
import { opsLimits } from "../../limits.ts";
import { adminQuery } from "../tables.ts";
import { type AppCtx, checkReadable, exposeErrors, isReadable } from "./where.ts";

/** Fields that name a document, by precedence. */
const LABEL_FIELDS = [
  "name",
  "title",
  "label",
  "displayName",
  "fullName",
  "subject",
  "email",
  "slug",
  "code",
];

/** A document that a reference may name. */
export interface ReferenceChoice {
  readonly id: string;
  readonly label: string | null;
}

/** Returns the value of the first field that names a document; `null` if it has none. */
function labelOf(document: Readonly<Record<string, unknown>>): string | null {
  for (const field of LABEL_FIELDS) {
    const value = document[field];
    if (typeof value === "string" && value !== "") return value.slice(0, opsLimits.labelCharsMax);
  }
  return null;
}

/** Returns the labels of documents by ID: `null` for those without a label, nothing for those that do not exist. */
export const labels = adminQuery({
  args: { ids: z.array(z.string()).max(opsLimits.labelsMax) },
  handler: async (ctx, { ids }): Promise<Record<string, string | null>> => {
    const { db } = ctx as unknown as AppCtx;
    const tables = ctx.inspector.tables().map(({ name }) => name).filter(isReadable);
    const found: Record<string, string | null> = {};
    for (const id of new Set(ids)) {
      if (!tables.some((name) => db.normalizeId(name, id) !== null)) continue;
      const document = await db.get(id as never) as Unchecked;
      if (document !== null) found[id] = labelOf(document);
    }
    return found;
  },
});

/** Returns the document with an ID, or the newest documents whose label contains the text, among a bounded number of them. */
export const choices = adminQuery({
  args: { table: z.string(), text: z.string().max(opsLimits.adminSearchCharsMax) },
  handler: async (ctx, { table, text }): Promise<ReferenceChoice[]> => {
    checkReadable(table);
    const { db } = ctx as unknown as AppCtx;
    return await exposeErrors(async () => {
      const id = db.normalizeId(table, text);
      const named = id === null ? null : await db.get(id as never) as Unchecked;
      if (named !== null) return [{ id: String(id), label: labelOf(named) }];
      const wanted = text.toLowerCase();
      const { page } = await db.query(table).order("desc").filter((document: Unchecked) =>
        (labelOf(document) ?? "").toLowerCase().includes(wanted)
      ).paginate({
        cursor: null,
        numItems: opsLimits.choicesMax,
        maximumRowsRead: opsLimits.adminRowsReadMax,
        maximumCharsRead: opsLimits.adminPageCharsMax,
      });
      return page.map((document: Unchecked) => ({ id: String(document._id), label: labelOf(document) }));
    });
  },
});
