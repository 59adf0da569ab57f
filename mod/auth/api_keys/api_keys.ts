/** API keys and deploy keys in the main process: created, shown once, verified by a cached row, revoked at once. */
import { createHmac, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { CommitEntry } from "../../engine/types.ts";
import { UserError } from "../../errors.ts";
import { type Identity, keyKinds } from "../../functions/identity.ts";
import { isCovered, KEY_PATTERN } from "../../functions/key_scope.ts";
import { adminMainAction, type MainAction, mainAction } from "../../functions/main_actions.ts";
import { entriesMax } from "../../kit/bounded_lru.ts";
import type { Log } from "../../kit/log.ts";
import { RowCache } from "../../kit/row_cache.ts";
import type { AccountParts } from "../accounts.ts";
import type { AttemptLimits } from "../attempt_limits.ts";
import type { ApiKeyRow } from "../isolate_functions/api_keys.ts";
import { authLimits } from "../limits.ts";
import { checkPassword } from "../own_account.ts";
import { system, type SystemCalls } from "../system_calls.ts";

const PREFIX = "syncline_key_";
const DEPLOY_PREFIX = "syncline_deploy_";
const KEY = /^syncline_(key|deploy)_[\w-]{43}$/;
const SECRET_BYTES = 32;
/** Characters of the secret shown in lists, to recognize a key. */
const SHOWN_CHARS = 6;
/** The latest time that a `Date` can represent. */
const DATE_MS_MAX = 8_640_000_000_000_000;

const scopeArgs = {
  /** No control characters: it is printed to terminals. */
  name: z.string().trim().min(1).max(authLimits.keyNameCharsMax).regex(/^\P{Cc}*$/u),
  kinds: z.array(z.enum(keyKinds)).min(1).max(keyKinds.length).default([...keyKinds]),
  functions: z.array(z.string().min(1).max(authLimits.keyPatternCharsMax).regex(KEY_PATTERN)).min(1)
    .max(authLimits.keyPatternsMax),
  /** Milliseconds since the epoch. Absent: it does not expire. */
  expiresAt: z.number().max(DATE_MS_MAX).optional(),
};
const createArgs = z.discriminatedUnion("deploy", [
  z.strictObject({ ...scopeArgs, userId: z.string().optional(), deploy: z.literal(false).optional() }),
  // It can call no function.
  z.strictObject({ name: scopeArgs.name, expiresAt: scopeArgs.expiresAt, deploy: z.literal(true) }),
]);
const createOwnArgs = z.strictObject({ ...scopeArgs, password: z.string().optional() });

/** A new key. It cannot be read again. */
export interface NewApiKey {
  readonly keyId: string;
  readonly key: string;
}

export type KeyVerification =
  | { readonly ok: true; readonly identity: Identity; readonly expiresAt: number | null }
  | {
    readonly ok: false;
    readonly error: "malformed access token" | "session has ended" | "access token expired";
  };

/** Owner of a deploy key. */
export interface Deployer {
  readonly keyId: string;
  readonly name: string;
}

/** Whether a bearer token is meant to be an API key that calls functions. */
export function isApiKey(token: string): boolean {
  return token.startsWith(PREFIX);
}

function isDeployKey(token: string): boolean {
  return token.startsWith(DEPLOY_PREFIX);
}

export interface ApiKeyVerifierOptions {
  readonly calls: SystemCalls;
  /** `SecretKeys.tokenHashes`. */
  readonly secret: Uint8Array;
  readonly limits: Pick<AttemptLimits, "findKey">;
  /** Resolves when commits made elsewhere are applied here, or after a timeout; absent if there are none elsewhere. */
  readonly caughtUp?: (() => Promise<void>) | undefined;
  readonly now: () => number;
  readonly log: Log;
  /** Whether this server only reads. */
  readonly readOnly: boolean;
}

/** Verifies keys. Rows are cached and invalidated by commits. */
export class ApiKeyVerifier {
  readonly #options: ApiKeyVerifierOptions;
  /** Ids by hash, which never change. */
  readonly #ids = new LRUCache<string, string>(entriesMax(authLimits.cachedKeysMax));
  readonly #rows: RowCache<ApiKeyRow>;
  /** Time of the last recorded use by id. */
  readonly #noted = new LRUCache<string, number>(entriesMax(authLimits.cachedKeysMax));

  constructor(options: ApiKeyVerifierOptions) {
    this.#options = options;
    this.#rows = new RowCache({
      rowsMax: authLimits.cachedKeysMax,
      idOf: ({ keyId }) => keyId,
      load: (keyId) => options.calls.query(system.findApiKey, { keyId }),
    });
  }

  /** Verifies a key that calls functions. `client` is the sender, whose unknown keys are limited. Throws `RateLimitedError`. */
  async verify(token: string, client: string): Promise<KeyVerification> {
    if (!KEY.test(token)) return { ok: false, error: "malformed access token" };
    const row = await this.#find(token, client);
    if (row === null || row.deploy) return { ok: false, error: "session has ended" };
    const { keyId, userId, name, kinds, functions, expiresAt } = row;
    if (!this.#isCurrent(row)) return { ok: false, error: "access token expired" };
    this.#noteUse(keyId);
    const principal = userId === null ? `key:${keyId}` : `user:${userId}`;
    const key = { name, kinds, functions };
    return { ok: true, identity: { principal, userId, adminId: null, sessionId: keyId, key }, expiresAt };
  }

  /** Whether a key was not revoked and has not expired. */
  async isLive(keyId: string): Promise<boolean> {
    return this.#isCurrent(await this.#rows.find(keyId));
  }

  /** Returns the owner of an active deploy key, or `null`. `client` and errors are those of `verify`. */
  async verifyDeployKey(token: string, client: string): Promise<Deployer | null> {
    if (!isDeployKey(token) || !KEY.test(token)) return null;
    const row = await this.#find(token, client);
    if (!this.#isCurrent(row) || !row.deploy) return null;
    this.#noteUse(row.keyId);
    return { keyId: row.keyId, name: row.name };
  }

  /** Whether a deploy key is active. Reads the stored row, because the cache may be behind the last commit. */
  async mayDeploy(keyId: string): Promise<boolean> {
    const row = await this.#options.calls.query(system.findApiKey, { keyId });
    return this.#isCurrent(row) && row.deploy;
  }

  /** Applies commits. Returns the ids of revoked keys. */
  applyCommits(entries: readonly CommitEntry[]): string[] {
    const revoked: string[] = [];
    for (const { changes } of entries) {
      for (const { table, id, doc } of changes) {
        if (table === "_api_keys") {
          this.#rows.invalidate(id);
          if (doc === null) revoked.push(id);
        } else if (table === "_users" && doc === null) {
          for (const { keyId, userId } of [...this.#rows.rows()]) {
            if (userId === id) this.#rows.invalidate(keyId);
          }
          // The user of a key that is being looked up is not known yet.
          this.#rows.invalidateLookups();
        }
      }
    }
    return revoked;
  }

  /** Looks up all known keys again after commits may have been missed. Returns the ids of those that are gone. */
  async recheck(): Promise<string[]> {
    // Not only cached rows: each recorded use drops the row, while sockets of the key stay open.
    const known = [...this.#ids.entries()];
    this.#rows.clear();
    const gone: string[] = [];
    for (const [hash, keyId] of known) {
      if (await this.#rows.find(keyId) !== null) continue;
      this.#ids.delete(hash);
      gone.push(keyId);
    }
    return gone;
  }

  async #find(token: string, client: string): Promise<ApiKeyRow | null> {
    const { caughtUp, limits, secret } = this.#options;
    const hash = keyHash(secret, token);
    const id = this.#ids.get(hash);
    const cached = id === undefined ? undefined : this.#rows.cached(id);
    if (cached !== undefined) return cached;
    return await limits.findKey(client, async () => {
      const row = await this.#lookUp(hash);
      if (row !== null || caughtUp === undefined) return row;
      // It may have just been created on another server.
      await caughtUp();
      return await this.#lookUp(hash);
    });
  }

  async #lookUp(hash: string): Promise<ApiKeyRow | null> {
    const id = this.#ids.get(hash) ?? await this.#options.calls.query(system.findApiKeyId, { hash });
    if (id === null) return null;
    this.#ids.set(hash, id);
    return await this.#rows.find(id);
  }

  #isCurrent(row: ApiKeyRow | null): row is ApiKeyRow {
    return row !== null && (row.expiresAt === null || row.expiresAt > this.#options.now());
  }

  /** Not awaited: a key is valid whether or not its use can be recorded. */
  #noteUse(keyId: string): void {
    const { calls, log, now, readOnly } = this.#options;
    if (readOnly || now() - (this.#noted.get(keyId) ?? -Infinity) < authLimits.keyUseNotedMs) return;
    this.#noted.set(keyId, now());
    calls.mutate(system.noteApiKeyUse, { keyId, now: now() }).catch((error) =>
      log("warn", "Cannot record the use of an API key", { keyId, error })
    );
  }
}

/** The actions that create keys: for administrators below `_admin/apiKeys`, for users, if the app allows it, below `_auth`. */
export function apiKeyActions(parts: AccountParts, secret: Uint8Array): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/apiKeys:create",
      adminMainAction(createArgs, (args, { adminId }) => {
        const { userId = null, ...scope } = args.deploy
          ? { ...args, userId: null, kinds: [], functions: [] }
          : args;
        const createdBy = adminId ?? "command line";
        return create(
          scope,
          secret,
          (row) => parts.calls.mutate(system.addApiKey, { ...row, userId, createdBy, now: parts.now() }),
        );
      }),
    ],
    [
      "_auth:createApiKey",
      mainAction(createOwnArgs, async ({ password, ...scope }, identity) => {
        await checkOwner(parts, { functions: scope.functions, password }, identity);
        return await create(
          scope,
          secret,
          (row) => parts.calls.mutate(system.addOwnApiKey, { ...row, now: parts.now() }, { identity }),
        );
      }),
    ],
  ]);
}

type Scope = z.output<z.ZodObject<typeof scopeArgs>> & { readonly deploy?: boolean | undefined };

async function create(
  scope: Scope,
  secret: Uint8Array,
  store: (row: Scope & { readonly hash: string; readonly shown: string }) => Promise<string>,
): Promise<NewApiKey> {
  const prefix = scope.deploy ? DEPLOY_PREFIX : PREFIX;
  const key = `${prefix}${randomBytes(SECRET_BYTES).toString("base64url")}`;
  const shown = key.slice(0, prefix.length + SHOWN_CHARS);
  const keyId = await store({ ...scope, hash: keyHash(secret, key), shown });
  return { keyId, key };
}

/** Throws `keys_disabled`, `key_scope`, `invalid_credentials` and the errors of `keyOwner`. */
async function checkOwner(
  parts: AccountParts,
  { functions, password }: { readonly functions: readonly string[]; readonly password: string | undefined },
  identity: Identity,
): Promise<void> {
  const { calls, mail, now, policy } = parts;
  if (policy.userKeys.length === 0) {
    throw new UserError("keys_disabled", "Users cannot create API keys on this server");
  }
  const wide = functions.find((pattern) => !isCovered(pattern, policy.userKeys));
  if (wide !== undefined) throw new UserError("key_scope", `Keys of users may not call "${wide}"`);
  const owner = await calls.mutate(system.keyOwner, { mail: mail.enabled, now: now() }, { identity });
  await checkPassword(parts, { account: `user ${owner.email ?? owner.owner}`, password, hash: owner.hash });
}

function keyHash(secret: Uint8Array, key: string): string {
  return createHmac("sha256", secret).update(isDeployKey(key) ? "deploy key\0" : "api key\0").update(key)
    .digest("base64url");
}
