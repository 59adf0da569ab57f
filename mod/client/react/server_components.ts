/**
 * `syncline/react` for server components (the condition `react-server`). `preloadQuery` runs on the server. All other exports
 * refer to the client's module, which is marked with "use client".
 */
export { preloadQuery } from "./preload_query.ts";
export {
  Authenticated,
  AuthLoading,
  SynclineProvider,
  Unauthenticated,
  useAction,
  useAuth,
  useConnectionState,
  useMutation,
  usePaginatedQuery,
  usePreloadedQuery,
  useQueries,
  useQuery,
  useSuspenseQuery,
  useSyncline,
} from "./mod.ts";
