/** Provides the client to components. */
import { getContext, setContext } from "svelte";
import type { SynclineClient } from "../client.ts";

const clientKey = Symbol("syncline client");

/**
 * Provides the client to this component and those inside it; call it while the outermost component is created. Create one client
 * for the page, outside of components; its creator closes it. During server rendering queries and `useAuth` are loading, and the
 * client does not connect.
 *
 * @example
 * ```ts
 * const client = new SynclineClient(location.origin);
 * provideSyncline(client);
 * ```
 */
export function provideSyncline(client: SynclineClient): void {
  setContext(clientKey, client);
}

/** Returns the provided client. Call it while a component is created. Throws if there is none. */
export function useSyncline(): SynclineClient {
  const client = getContext<SynclineClient | undefined>(clientKey);
  if (client === undefined) throw new Error("Missing provideSyncline(client)");
  return client;
}
