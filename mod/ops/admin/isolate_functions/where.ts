/** Turns document selections into queries: an index range or a search, and conditions. */
import { EngineError } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import type {
  AnyDataModel,
  OrderedQuery,
  SystemMutationCtx,
  SystemQueryCtx,
  TableFacts,
  Unchecked,
} from "../../../functions/api/service.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { matchesConditions, type Range, type Search, valueOf, type Where } from "../where_args.ts";

/** Runs `run` and converts errors caused by the request into user errors. */
export async function exposeErrors<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (error instanceof EngineError) throw new UserError(error.code, error.message);
    // Invalid use of ctx.db, such as an unknown index or an invalid range.
    if (error instanceof TypeError || error instanceof RangeError) {
      throw new UserError("bad_request", error.message);
    }
    throw error;
  }
}

/** A context for the app's tables, whose types are unknown here. */
export type AppCtx = SystemQueryCtx<AnyDataModel> | SystemMutationCtx<AnyDataModel>;

export function queryOf(ctx: AppCtx, where: Where): OrderedQuery<Unchecked> {
  const { table, index, range, search, conditions, order } = where;
  const rows = ctx.db.query(table);
  let query: OrderedQuery<Unchecked>;
  if (search !== undefined) {
    if (index !== undefined || range !== undefined || order !== undefined) {
      throw new UserError("bad_request", "A search cannot be combined with an index or an order");
    }
    query = searched(ctx, { table, search });
  } else {
    const name = index ?? "by_creation_time";
    const ranged = range === undefined
      ? rows.withIndex(name)
      : rows.withIndex(name, (q) => bounded(q, fieldsOf(ctx, table, name), range));
    query = ranged.order(order ?? (index === undefined ? "desc" : "asc"));
  }
  if (conditions.length > 0) query = query.filter((doc) => matchesConditions(doc, conditions));
  return query;
}

/** Whether the query reads documents that it filters out, in which case pages end after a bounded number of reads. */
export function scans({ conditions }: Where): boolean {
  return conditions.length > 0;
}

/** Whether administrators may read a table: the app's, and system tables without secrets. */
export function isReadable(table: string): boolean {
  return !table.startsWith("_") || readableSystemTables.has(table);
}

/** Checks that administrators may read a table. */
export function checkReadable(table: string): void {
  if (isReadable(table)) return;
  throw new UserError("unknown_table", `Table "${table}" is a system table`);
}

/** Checks that administrators may write to a table: only the app's. */
export function checkWritable(table: string): void {
  if (!table.startsWith("_")) return;
  throw new UserError(
    "unknown_table",
    `Table "${table}" is a system table and can be changed by its own functions only`,
  );
}

function searched(
  ctx: AppCtx,
  { table, search }: { readonly table: string; readonly search: Search },
): OrderedQuery<Unchecked> {
  const field = factsOf(ctx, table)?.searchIndexes.find(({ name }) => name === search.index)?.searchField ??
    "";
  return ctx.db.query(table).withSearchIndex(search.index, (q: Unchecked) => {
    let filter = q.search(field, search.text);
    for (const [name, value] of Object.entries(search.eq)) filter = filter.eq(name, valueOf(value));
    return filter;
  });
}

function fieldsOf(ctx: AppCtx, table: string, index: string): readonly string[] {
  if (index === "by_id") return ["_id"];
  const found = factsOf(ctx, table)?.indexes.find(({ name }) => name === index);
  return [...found?.fields ?? [], "_creationTime"];
}

function factsOf({ inspector }: AppCtx, table: string): TableFacts | undefined {
  return [...inspector.tables(), ...inspector.orphanedTables()].find(({ name }) => name === table);
}

function bounded(q: Unchecked, fields: readonly string[], { eq, gt, gte, lt, lte }: Range): Unchecked {
  let range = q;
  for (const [i, value] of eq.entries()) range = range.eq(fields[i] ?? "", valueOf(value));
  const next = fields[eq.length] ?? "";
  if (gt !== undefined) range = range.gt(next, valueOf(gt));
  if (gte !== undefined) range = range.gte(next, valueOf(gte));
  if (lt !== undefined) range = range.lt(next, valueOf(lt));
  if (lte !== undefined) range = range.lte(next, valueOf(lte));
  return range;
}
