/**
 * `syncline/tanstack`: live queries as options for TanStack Query 5.66 or later, for any framework. It imports none of its packages.
 *
 * @module
 */
export {
  type LiveCache,
  type LiveCacheEntry,
  type LiveQueryOptions,
  liveQueryOptions,
} from "./live_query_options.ts";
export type { QueryArgs } from "../bindings/types.ts";
