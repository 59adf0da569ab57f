/** Types that the bindings share. */
import type { ArgsOf, FunctionName, PassedArgs, ResultOf } from "../../protocol/client_function_names.ts";
import type { FunctionReference } from "../../protocol/function_reference.ts";
import type { PageResult } from "./page_ranges.ts";

/** Arguments of a query, or `"skip"` to not run it. */
export type QueryArgs<Name> = Record<never, never> extends ArgsOf<Name> ? [args?: PassedArgs<Name> | "skip"]
  : [args: PassedArgs<Name> | "skip"];

/**
 * Arguments of a query, `"skip"` to not run it, or a function that returns either and is called again when they change; then
 * options.
 */
export type TrackedArgs<Name> = Record<never, never> extends ArgsOf<Name>
  ? [args?: Tracked<PassedArgs<Name>>, options?: LiveQueryOptions<ResultOf<Name>>]
  : [args: Tracked<PassedArgs<Name>>, options?: LiveQueryOptions<ResultOf<Name>>];

/** Options of a live query. */
export interface LiveQueryOptions<Result> {
  /** The result for the first arguments until there is a live one, such as that with which a server rendered the page. */
  readonly initial?: Result | undefined;
}

/** Arguments, `"skip"`, or a function that returns either. */
export type Tracked<Args> = Args | "skip" | (() => Args | "skip");

/** A query that takes `paginationOpts` and returns the result of `paginate`; or any path. */
export type PaginatedName =
  | Extract<FunctionName<"query">, string>
  | FunctionReference<"query", never, PageResult>;

/** Arguments of a paginated query without `paginationOpts`, which the binding provides. */
export type ListArgs<Name> = Omit<PassedArgs<Name>, "paginationOpts">;

/** Row type of a paginated query. */
export type RowOf<Name> = ResultOf<Name> extends { readonly page: readonly (infer Row)[] } ? Row : unknown;
