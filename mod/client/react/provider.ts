/** The client that the hooks below a provider use. */
import { createContext, createElement, type ReactElement, type ReactNode, useContext } from "react";
import type { SynclineClient } from "../client.ts";

/** `undefined` outside of a provider, `null` where there is no live client. */
const ClientContext = createContext<SynclineClient | null | undefined>(undefined);

/**
 * Gives the hooks below it their client. Make one client for the page, outside of components; whoever made it closes it.
 * Where pages are rendered on a server there is nothing to subscribe with: pass `null`, and queries are loading there
 * unless they were preloaded.
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

/** The client, `null` while a server renders. Throws outside of a provider. */
export function useClient(): SynclineClient | null {
  const client = useContext(ClientContext);
  if (client === undefined) throw new Error("There is no <SynclineProvider> above this component");
  return client;
}

/** The client of the provider above. Throws when there is none. */
export function useSyncline(): SynclineClient {
  return present(useClient());
}

/** The client that has to be there for what is done. Throws while a server renders. */
export function present(client: SynclineClient | null): SynclineClient {
  if (client === null) throw new Error("There is no live client while a server renders the page");
  return client;
}
