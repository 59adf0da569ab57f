/**
 * `syncline/svelte`: live queries, mutations, actions and sign-in in components of Svelte, typed by the references they are
 * called with. The app installs `svelte`, 5.7 or later.
 *
 * @module
 */
export { provideSyncline, useSyncline } from "./provider.ts";
export { usePaginatedQuery, useQuery } from "./use_query.ts";
export { useAction, useMutation } from "./use_call.ts";
export { useAuth, useConnectionState } from "./use_state.ts";
export type { AuthView, SignedInView } from "../bindings/state_stores.ts";
export type { Act, Mutate, OptimisticUpdateOf } from "../bindings/calls.ts";
export type { PageStatus } from "../bindings/page_list.ts";
export type { PageResult } from "../bindings/page_ranges.ts";
export type {
  ListArgs,
  LiveQueryOptions,
  PaginatedName,
  RowOf,
  Tracked,
  TrackedArgs,
} from "../bindings/types.ts";
export type { LiveList, LiveQuery, LoadMore, PaginatedQuery } from "../bindings/views.ts";
export type { CallArgs } from "../../protocol/client_function_names.ts";
