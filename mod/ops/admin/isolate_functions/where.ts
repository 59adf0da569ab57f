/** Which documents of a table are meant, as administrators say it: a range of an index or a search, and conditions. */
import type {
  AnyDataModel,
  OrderedQuery,
  SystemMutationCtx,
  SystemQueryCtx,
  Unchecked,
} from "../../../functions/api/service.ts";
import { UserError } from "../../../errors.ts";
import { passes } from "../conditions.ts";
import { type Range, type Search, valueOf, type Where } from "../where_args.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";

/** A context whose tables are the app's, of which nothing is known here. */
export type AppCtx = SystemQueryCtx<AnyDataModel> | SystemMutationCtx<AnyDataModel>;

/** The query that a `where` means. */
export function queryOf(ctx: AppCtx, where: Where): OrderedQuery<Unchecked> {
  const { table, index, range, search, conditions, order } = where;
  const rows = ctx.db.query(table);
  let query: OrderedQuery<Unchecked>;
  if (search !== undefined) {
    if (index !== undefined || range !== undefined || order !== undefined) {
      throw new UserError("bad_request", "A search has its own index and its own order");
    }
    query = searched(ctx, { table, search });
  } else {
    const name = index ?? "by_creation_time";
    const ranged = range === undefined
      ? rows.withIndex(name)
      : rows.withIndex(name, (q) => bounded(q, fieldsOf(ctx, table, name), range));
    query = ranged.order(order ?? (index === undefined ? "desc" : "asc"));
  }
  if (conditions.length > 0) query = query.filter((doc) => passes(doc, conditions));
  return query;
}

/** Whether documents are read that are not wanted: then a page ends after a bounded number of them. */
export function scans({ conditions }: Where): boolean {
  return conditions.length > 0;
}

/** Checks that administrators may read a table: those of the app, and those of the service that hold no secrets. */
export function checkReadable(table: string): void {
  if (!table.startsWith("_") || readableSystemTables.has(table)) return;
  throw new UserError("unknown_table", `Table "${table}" belongs to the service`);
}

/** Checks that administrators may write to a table: those of the app. */
export function checkWritable(table: string): void {
  if (!table.startsWith("_")) return;
  throw new UserError(
    "unknown_table",
    `Table "${table}" belongs to the service: its own functions change it`,
  );
}

function searched(
  ctx: AppCtx,
  { table, search }: { readonly table: string; readonly search: Search },
): OrderedQuery<Unchecked> {
  const field = ctx.inspector.tables().find(({ name }) => name === table)
    ?.searchIndexes.find(({ name }) => name === search.index)?.searchField ?? "";
  return ctx.db.query(table).withSearchIndex(search.index, (q: Unchecked) => {
    let filter = q.search(field, search.text);
    for (const [name, value] of Object.entries(search.eq)) filter = filter.eq(name, valueOf(value));
    return filter;
  });
}

function fieldsOf(ctx: AppCtx, table: string, index: string): readonly string[] {
  if (index === "by_id") return ["_id"];
  const found = ctx.inspector.tables().find(({ name }) => name === table)
    ?.indexes.find(({ name }) => name === index);
  return [...found?.fields ?? [], "_creationTime"];
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
