/** Provides the client to composables. */
import { type App, inject, type InjectionKey } from "vue";
import type { SynclineClient } from "../client.ts";

const clientKey: InjectionKey<SynclineClient> = Symbol("syncline client");

/**
 * Provides the client to the app's composables. Create one client for the page, outside of components; its creator closes it.
 * During server rendering queries and `useAuth` are loading, and the client does not connect.
 *
 * @example
 * ```ts
 * const client = new SynclineClient(location.origin);
 * createApp(Root).use(SynclinePlugin, client).mount("#app");
 * ```
 */
export const SynclinePlugin: { install(app: App, client: SynclineClient): void } = {
  install: (app, client) => void app.provide(clientKey, client),
};

/** Returns the client of the plugin. Throws without the plugin. */
export function useSyncline(): SynclineClient {
  const client = inject(clientKey, undefined);
  if (client === undefined) throw new Error("Missing app.use(SynclinePlugin, client)");
  return client;
}
