/**
 * `syncline/vue`: live queries, mutations, actions and sign-in as composables, typed by the references they are called with.
 * The app installs `vue`, 3.5 or later.
 *
 * @module
 */
export { SynclinePlugin, useSyncline } from "./plugin.ts";
export { type PaginatedRefs, type ReactiveArgs, usePaginatedQuery, useQuery } from "./use_query.ts";
export { useAction, useMutation } from "./use_call.ts";
export { type AuthRefs, useAuth, useConnectionState } from "./use_state.ts";
export type { RefsOf } from "./use_store.ts";
export type { SignedInView } from "../bindings/state_stores.ts";
export type { Act, Mutate, OptimisticUpdateOf } from "../bindings/calls.ts";
export type { PageStatus } from "../bindings/page_list.ts";
export type { PageResult } from "../bindings/page_ranges.ts";
export type { ListArgs, LiveQueryOptions, PaginatedName, RowOf } from "../bindings/types.ts";
export type { LiveList, LiveQuery, LoadMore } from "../bindings/views.ts";
export type { CallArgs } from "../../protocol/client_function_names.ts";
