/**
 * `syncline/react`: live queries, mutations, actions and sign-in as React hooks, typed by the references they are
 * called with. Plain modules without JSX; `react` (19 or later) is the page's own.
 *
 * @module
 */
"use client";

export { SynclineProvider, useSyncline } from "./provider.ts";
export { useQuery } from "./use_query.ts";
export { useSuspenseQuery } from "./use_suspense_query.ts";
export { type QueriesResults, type QueriesToAsk, useQueries } from "./use_queries.ts";
export { type Act, type Mutate, type OptimisticUpdateOf, useAction, useMutation } from "./use_call.ts";
export {
  type ListArgs,
  type PaginatedName,
  type PaginatedQuery,
  type RowOf,
  usePaginatedQuery,
} from "./use_paginated_query.ts";
export type { PageStatus } from "./page_list.ts";
export type { PageResult } from "./page_ranges.ts";
export { useConnectionState } from "./use_connection_state.ts";
export { Authenticated, AuthLoading, type AuthView, Unauthenticated, useAuth } from "./use_auth.ts";
export { type Preloaded, preloadQuery } from "./preload_query.ts";
export { usePreloadedQuery } from "./preloaded.ts";
export type { CallArgs } from "../../protocol/client_function_names.ts";
export type { QueryArgs } from "./types.ts";
