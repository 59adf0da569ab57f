/** What administrators see of the app's code, at `_admin/functions:list` and `_admin/schema:get`, and what main asks for them. */
import type { TableSize } from "../../../engine/mod.ts";
import type { FunctionFacts, TableFacts } from "../../../functions/api/service.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { isCtxPath } from "../../../functions/system_functions.ts";
import { adminQuery, systemQuery } from "../tables.ts";

/**
 * The functions of the app, and those of the service that clients and administrators call, with the JSON Schemas of their
 * arguments. Actions that main runs are not among them.
 */
export const list = adminQuery({
  args: {},
  handler: (ctx): FunctionFacts[] =>
    ctx.inspector.functions().filter(({ ofService, visibility, path }) =>
      !ofService || (visibility !== "internal" && !isCtxPath(path))
    ),
});

/** The tables with the JSON Schemas of their documents, and their indexes. */
export const schema = adminQuery({
  args: {},
  handler: (ctx): TableFacts[] =>
    ctx.inspector.tables().filter(({ name, ofService }) => !ofService || readableSystemTables.has(name)),
});

/** How large the tables are. */
export const sizes = systemQuery({
  args: {},
  handler: (ctx): TableSize[] => ctx.inspector.sizes(),
});

/** What the key spaces of a read set are about. */
export const spaces = systemQuery({
  args: {},
  handler: (ctx): Record<string, { table: string; index: string }> => ctx.inspector.spaces(),
});
