/**
 * `syncline/react`: live queries, mutations, actions and sign-in as React hooks, typed by the references they are
 * called with. Plain modules without JSX. The app installs `react`, 19 or later.
 *
 * @module
 */
"use client";

export { SynclineProvider, useSyncline } from "./provider.ts";
export { useQuery } from "./use_query.ts";
export { useSuspenseQuery } from "./use_suspense_query.ts";
export { type QueriesResults, type QueriesToAsk, useQueries } from "./use_queries.ts";
export { useAction, useMutation } from "./use_call.ts";
export type { Act, Mutate, OptimisticUpdateOf } from "../bindings/calls.ts";
export { type PaginatedQuery, usePaginatedQuery } from "./use_paginated_query.ts";
export type { PageStatus } from "../bindings/page_list.ts";
export type { PageResult } from "../bindings/page_ranges.ts";
export { useConnectionState } from "./use_connection_state.ts";
export { Authenticated, AuthLoading, Unauthenticated, useAuth } from "./use_auth.ts";
export type { AuthView } from "../bindings/state_stores.ts";
export { type Preloaded, preloadQuery } from "./preload_query.ts";
export { usePreloadedQuery } from "./preloaded.ts";
export type { CallArgs } from "../../protocol/client_function_names.ts";
export type { ListArgs, PaginatedName, QueryArgs, RowOf } from "../bindings/types.ts";
