/** Provides the client to hooks. */
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from "react";
import { present } from "../bindings/calls.ts";
import type { SynclineClient } from "../client.ts";

/** `undefined` outside a provider, `null` without a live client. */
const ClientContext = createContext<SynclineClient | null | undefined>(undefined);

/**
 * Provides the client to the hooks below it. Create one client for the page, outside of components; its creator closes it. For
 * server rendering pass `null`: queries are then loading unless they were preloaded.
 *
 * @example
 * ```tsx
 * const client = new SynclineClient(location.origin);
 * createRoot(root).render(<SynclineProvider client={client}><App /></SynclineProvider>);
 * ```
 */
export function SynclineProvider(
  { client, children }: { readonly client: SynclineClient | null; readonly children?: ReactNode },
): ReactElement {
  return createElement(ClientContext.Provider, { value: client }, children);
}

/** Returns the client; `null` during server rendering. Throws outside a provider. */
export function useClient(): SynclineClient | null {
  const client = useContext(ClientContext);
  if (client === undefined) throw new Error("Missing <SynclineProvider> above this component");
  return client;
}

/** Returns the client of the provider. Throws if there is none. */
export function useSyncline(): SynclineClient {
  return present(useClient());
}
