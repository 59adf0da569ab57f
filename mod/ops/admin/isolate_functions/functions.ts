/** What administrators see of the app's code, at `_admin/functions:<name>` and `_admin/schema:get`, and what main asks for them. */
import { z } from "zod";
import type { TableSize } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import type {
  AnyDataModel,
  FunctionFacts,
  SystemQueryCtx,
  TableFacts,
} from "../../../functions/api/service.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { isCtxPath } from "../../../functions/system_paths.ts";
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

/** The result of a query of the app, internal ones too, as the administrator: subscribed to it is live. */
export const watch = adminQuery({
  args: { path: z.string(), args: z.record(z.string(), z.unknown()) },
  handler: async (ctx, { path, args }): Promise<unknown> => {
    const found = ctx.inspector.functions().find((known) => known.path === path);
    if (found === undefined || found.ofService || found.kind !== "query") {
      throw new UserError("unknown_function", `The app has no query "${path}"`);
    }
    return await (ctx as unknown as SystemQueryCtx<AnyDataModel>).runQuery(path as never, args as never);
  },
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
