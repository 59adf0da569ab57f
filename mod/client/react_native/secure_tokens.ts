/** Tokens in the keychain of iOS or the keystore of Android. */
import type { TokenStorage } from "../accounts/account_session.ts";

/** The part of the package `expo-secure-store` that is used. */
export interface SecureStoreLike {
  getItemAsync(key: string): Promise<string | null>;
  setItemAsync(key: string, value: string): Promise<void>;
  deleteItemAsync(key: string): Promise<void>;
}

/**
 * Returns a token storage for the option `accounts.storage`. The storage of `@react-native-async-storage/async-storage`, which is not
 * encrypted, needs no adapter.
 *
 * @example
 * ```ts
 * import * as SecureStore from "expo-secure-store";
 *
 * const client = new SynclineClient(server, { accounts: { storage: secureTokens(SecureStore) } });
 * ```
 */
export function secureTokens(store: SecureStoreLike): TokenStorage {
  return {
    getItem: (key) => store.getItemAsync(allowed(key)),
    setItem: (key, value) => store.setItemAsync(allowed(key), value),
    removeItem: (key) => store.deleteItemAsync(allowed(key)),
  };
}

/** Keys are limited to these characters, and the client's contain the address of the server. */
function allowed(key: string): string {
  return key.replace(/[^\w.-]/g, (character) => `_${character.charCodeAt(0).toString(16)}`);
}
