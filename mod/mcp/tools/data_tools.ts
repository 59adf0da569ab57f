/** Tools for tables and documents. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { mcpLimits } from "../limits.ts";
import { readTool, type Tool } from "./tool.ts";

interface Table {
  readonly name: string;
  readonly schema: unknown;
  readonly count: number;
  readonly more: boolean;
  readonly ofService: boolean;
  readonly indexes: readonly { readonly name: string; readonly fields: readonly string[] }[];
}

/** A value to compare with. Clients know no better type for any JSON. */
const value = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const range = z.strictObject({
  eq: z.array(value).max(16).optional().describe("Values of the first fields of the index"),
  gt: value.optional(),
  gte: value.optional(),
  lt: value.optional(),
  lte: value.optional(),
}).describe("Limits of the field after those in eq");

const condition = z.strictObject({
  field: z.string().describe("A field, such as text or address.city"),
  op: z.enum(["eq", "neq", "gt", "gte", "lt", "lte", "contains", "missing", "present"]),
  value: value.optional().describe("Not with missing and present"),
});

export const dataTools: readonly Tool[] = [
  readTool({
    name: "list_tables",
    description: "List the tables with their indexes and the number of documents, counted up to a limit. " +
      "Names that begin with _ are tables of Syncline itself.",
    args: z.strictObject({}),
    async run(_, { call }) {
      const tables = await call("_admin/data:tables", {}) as readonly Table[];
      return tables.map(({ name, count, more, indexes }) => ({
        name,
        documents: more ? `more than ${count}` : count,
        indexes: Object.fromEntries(indexes.map(({ name, fields }) => [name, fields])),
      }));
    },
  }),
  readTool({
    name: "describe_table",
    description:
      "Get the JSON Schema of a table's documents and all its indexes: plain, search, vector and " +
      "aggregates.",
    args: z.strictObject({ table: z.string() }),
    noted: ["table"],
    async run({ table }, { call }) {
      const tables = await call("_admin/schema:get", {}) as readonly Table[];
      const found = tables.find(({ name }) => name === table);
      if (found === undefined) throw new UserError("unknown_table", `Table "${table}" not found`);
      return found;
    },
  }),
  readTool({
    name: "read_documents",
    description:
      "Read documents of a table, newest first, or by an index or a search index. Prefer an index " +
      "range over conditions: conditions are checked on each document read, and a page may be short or empty " +
      "although there are more. Continue with the returned cursor.",
    args: z.strictObject({
      table: z.string(),
      index: z.string().optional().describe("Default: by_creation_time"),
      range: range.optional(),
      search: z.strictObject({
        index: z.string(),
        text: z.string(),
        eq: z.record(z.string(), value).optional().describe("Values of the filter fields of the index"),
      }).optional().describe("Full-text search; not with index, range and order"),
      conditions: z.array(condition).max(20).optional(),
      order: z.enum(["asc", "desc"]).optional(),
      limit: z.int().min(1).max(mcpLimits.documentsMax).default(mcpLimits.documentsDefault),
      cursor: z.string().optional(),
    }),
    noted: ["table", "index", "limit"],
    async run({ limit, cursor = null, ...where }, { call }) {
      const page = await call("_admin/data:documents", {
        ...where,
        paginationOpts: { numItems: limit, cursor },
      }) as { readonly page: unknown[]; readonly isDone: boolean; readonly continueCursor: string };
      return { documents: page.page, cursor: page.isDone ? null : page.continueCursor };
    },
  }),
  readTool({
    name: "get_document",
    description: "Get a document and its table by its ID.",
    args: z.strictObject({ id: z.string() }),
    noted: ["id"],
    async run({ id }, { call }) {
      const found = await call("_admin/data:get", { id });
      if (found === null) throw new UserError("document_not_found", "Document not found");
      return found;
    },
  }),
];
