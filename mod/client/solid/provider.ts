/** Provides the client to components. */
import { createComponent, createContext, type JSX, useContext } from "solid-js";
import type { SynclineClient } from "../client.ts";

const ClientContext = createContext<SynclineClient>();

/**
 * Provides the client to the components inside it. Create one client for the page, outside of components; its creator closes it.
 * During server rendering queries and `useAuth` are loading, and the client does not connect.
 *
 * @example
 * ```tsx
 * const client = new SynclineClient(location.origin);
 * render(() => <SynclineProvider client={client}><App /></SynclineProvider>, root);
 * ```
 */
export function SynclineProvider(
  props: { readonly client: SynclineClient; readonly children?: JSX.Element },
): JSX.Element {
  return createComponent(ClientContext.Provider, {
    value: props.client,
    get children() {
      return props.children;
    },
  });
}

/** Returns the client of the provider. Throws if there is none. */
export function useSyncline(): SynclineClient {
  const client = useContext(ClientContext);
  if (client === undefined) throw new Error("Missing <SynclineProvider>");
  return client;
}
