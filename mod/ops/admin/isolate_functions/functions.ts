/** Functions about the app's code, at `_admin/functions:<name>` and `_admin/schema:get`, and system functions for admin actions. */
import { z } from "zod";
import type { TableSize } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import type {
  AnyDataModel,
  FunctionFacts,
  JsonSchema,
  SystemQueryCtx,
  TableFacts,
} from "../../../functions/api/service.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { isCtxPath } from "../../../functions/system_module.ts";
import { adminQuery, systemQuery } from "../tables.ts";

export const accountExists = systemQuery({
  args: { kind: z.enum(["user", "admin"]), id: z.string() },
  handler: async (ctx, { kind, id }): Promise<boolean> => {
    const { db } = ctx as unknown as {
      readonly db: {
        normalizeId(table: string, id: string): string | null;
        get(id: string): Promise<unknown>;
      };
    };
    const own = db.normalizeId(kind === "user" ? "_users" : "_admins", id);
    return own !== null && await db.get(own) !== null;
  },
});

/** Lists the callable functions with the JSON Schemas of their arguments, without actions of the main process. */
export const list = adminQuery({
  args: {},
  handler: (ctx): FunctionFacts[] =>
    ctx.inspector.functions().filter(({ ofService, visibility, path }) =>
      !ofService || (visibility !== "internal" && !isCtxPath(path))
    ),
});

/** Runs a query of the app, even an internal one, as the administrator. Subscribe to it for live results. */
export const watch = adminQuery({
  args: { path: z.string(), args: z.record(z.string(), z.unknown()) },
  handler: async (ctx, { path, args }): Promise<unknown> => {
    const found = ctx.inspector.functions().find((known) => known.path === path);
    if (found === undefined || found.ofService || found.kind !== "query") {
      throw new UserError("unknown_function", `Query "${path}" not found`);
    }
    return await (ctx as unknown as SystemQueryCtx<AnyDataModel>).runQuery(path as never, args as never);
  },
});

/** Returns the tables with the JSON Schemas of their documents, and their indexes. */
export const schema = adminQuery({
  args: {},
  handler: (ctx): TableFacts[] =>
    ctx.inspector.tables().filter(({ name, ofService }) => !ofService || readableSystemTables.has(name)),
});

/** Returns the JSON Schemas of arguments by the path of the app's functions, without functions that accept any. */
export const argsSchemas = systemQuery({
  args: {},
  handler: (ctx): Record<string, JsonSchema> =>
    Object.fromEntries(
      ctx.inspector.functions().flatMap(({ path, ofService, args }) =>
        ofService || args === null ? [] : [[path, args]]
      ),
    ),
});

export const sizes = systemQuery({
  args: {},
  handler: (ctx): TableSize[] => ctx.inspector.sizes(),
});

/** Maps the key spaces of a read set to tables and indexes. */
export const spaces = systemQuery({
  args: {},
  handler: (ctx): Record<string, { table: string; index: string }> => ctx.inspector.spaces(),
});
