/** API keys of the signed-in user. */
import { functionReference } from "../../protocol/function_reference.ts";
import type { SynclineClient } from "../client.ts";
import { act } from "./act.ts";

/** Name and scope of an API key. */
export interface ApiKeyScope {
  readonly name: string;
  /** Default: all. */
  readonly kinds?: readonly ("query" | "mutation" | "action" | "route")[];
  /** Paths such as `tasks:list`, `tasks:*` or, for routes, `POST /hook`. */
  readonly functions: readonly string[];
  /** Milliseconds since the epoch. Absent: it does not expire. */
  readonly expiresAt?: number;
}

/** An API key of the account. Times are milliseconds since the epoch. */
export interface OwnApiKey extends Required<Omit<ApiKeyScope, "expiresAt">> {
  readonly keyId: string;
  /** The first characters of the key. */
  readonly shown: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
}

/** Reference for live queries of the account's API keys, newest first; `null` if no one is signed in. */
export const ownApiKeys = /* @__PURE__ */ functionReference<
  "query",
  Record<string, never>,
  OwnApiKey[] | null
>(
  "_auth:listApiKeys",
);

/**
 * Creates an API key that acts as the signed-in user. Show `key` to the user: it cannot be read again. Pass `password` if the account
 * has one and no factor was proved in the last ten minutes.
 *
 * @throws `FunctionError`: `keys_disabled`, `key_scope`, `invalid_credentials`, `factor_required`, `confirmation_required`,
 * `email_not_verified`, `too_many_keys`, `invalid_expiry`
 */
export async function createApiKey(
  client: SynclineClient,
  key: ApiKeyScope & { readonly password?: string },
): Promise<{ readonly keyId: string; readonly key: string }> {
  return await act(client, "createApiKey", key);
}

/** Revokes an API key. Its sockets are closed at once. */
export async function revokeApiKey(client: SynclineClient, keyId: string): Promise<void> {
  await client.mutation("_auth:revokeApiKey", { keyId });
}
