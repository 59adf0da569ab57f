/** Types of the `ctx` of queries, mutations and actions. */
import type { FunctionName } from "../../protocol/function_reference.ts";
import type { CallArgs, Known, ResultOf } from "../../protocol/server_function_names.ts";
import type { DatabaseReader, DatabaseWriter } from "./database.ts";
import type { RateLimit } from "./rate_limit.ts";
import type { Scheduler } from "./scheduler.ts";
import type { StorageActions, StorageReader, StorageWriter, Streams } from "./storage.ts";
import type { DataModel, Id, Readable } from "./values.ts";

/**
 * The caller. The fields a query reads determine who shares its result: all callers (none read), the principal, or the
 * session.
 */
export interface Auth {
  /** Id of the signed-in user, or `null`. */
  userId(): Id<"_users"> | null;
  /** Id of the signed-in administrator, or `null`. */
  adminId(): Id<"_admins"> | null;
  /** Id of the session, or `null`; external tokens and API keys have none. */
  sessionId(): string | null;
  /** Id of the caller's API key, or `null`. A key acts as its user, or as no user. */
  keyId(): string | null;
  /**
   * The ids together with the claims of an external token; `null` for anonymous callers. Reading `claims` counts as reading the
   * session, because the claims of two tokens of one user may differ.
   */
  identity(): CallerIdentity | null;
  /** Whether the caller is a user who signed in without an account. A live query runs again when the user gets one. */
  isAnonymous(): Promise<boolean>;
  /**
   * Throws a `UserError` with the code `factor_required` unless the caller has proved a second factor in this session, and in
   * the last `withinMinutes` if that is given. Its data is `{ enrolled, withinMinutes }`: whether the caller has a factor that can
   * be proved. A live query runs again when a factor is proved, but not when the time has passed.
   *
   * @example
   * ```ts
   * export const transfer = mutation({
   *   args: { amount: z.number() },
   *   handler: async (ctx, { amount }) => {
   *     await ctx.auth.requireFactor({ withinMinutes: 10 });
   *     await ctx.db.insert("transfers", { user: ctx.auth.userId(), amount });
   *   },
   * });
   * ```
   */
  requireFactor(options?: { readonly withinMinutes?: number }): Promise<void>;
}

export interface CallerIdentity {
  readonly userId: Id<"_users"> | null;
  readonly adminId: Id<"_admins"> | null;
  readonly claims: TokenClaims;
}

/**
 * Claims of an external token; empty for the server's own sessions. The first five are verified; the others depend on the
 * issuer.
 */
export interface TokenClaims {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | readonly string[];
  /** Seconds since the epoch. */
  readonly exp?: number;
  readonly nbf?: number;
  readonly [name: string]: unknown;
}

/** Writes log lines of the call: `[LEVEL] message key=value ...`. */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Available in every function. */
interface FunctionCtx {
  readonly auth: Auth;
  readonly log: Log;
  /** Runs a query in the caller's transaction; from an action, on its own snapshot. */
  runQuery<Name extends FunctionName<"query">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "query">
  ): Promise<ResultOf<Name>>;
}

/** Reads the database from one snapshot. Time is frozen, randomness is seeded, and I/O is not available. */
export interface QueryCtx<Model extends DataModel> extends FunctionCtx {
  readonly db: DatabaseReader<Readable<Model>>;
  readonly storage: StorageReader;
}

/** Reads and writes in one transaction, which is rolled back if the handler throws. */
export interface MutationCtx<Model extends DataModel> extends FunctionCtx {
  readonly db: DatabaseWriter<Model>;
  readonly scheduler: Scheduler;
  readonly storage: StorageWriter;
  /**
   * Takes a token from a bucket, in this transaction. If the bucket is empty, throws a `UserError` with the code `rate_limited`
   * and the data `{ name, retryAfter }`, in milliseconds. A mutation that fails takes no token.
   *
   * @example
   * ```ts
   * await ctx.rateLimit("send", { key: user, rate: 20, per: "minute", burst: 5 });
   * ```
   */
  rateLimit(name: string, limit: RateLimit): Promise<void>;
  /** Runs a mutation in this transaction. If it throws, its writes are rolled back and the error is rethrown here. */
  runMutation<Name extends FunctionName<"mutation">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "mutation">
  ): Promise<ResultOf<Name>>;
}

/** A client in a room. */
export interface PresentMember {
  /** Id of the client in its rooms. It keeps the id when it reconnects. */
  readonly id: string;
  /** Id of the signed-in user, or `null`. */
  readonly userId: string | null;
  /** Result of `presence:authorize` for the client. */
  readonly info: unknown;
  /** State that the client has set. The server does not check it. */
  readonly state: unknown;
}

/** Reads which clients are in a room. Not available in queries and mutations: presence is not part of the database. */
export interface PresenceReader {
  /** Returns the members of a room, at most 2,000. */
  list(room: string): Promise<readonly PresentMember[]>;
}

/** Can perform I/O. Accesses the database through queries and mutations, each in its own transaction. */
export interface ActionCtx extends FunctionCtx {
  /** The app's environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly scheduler: Scheduler;
  readonly storage: StorageActions;
  readonly presence: PresenceReader;
  readonly streams: Streams;
  runMutation<Name extends FunctionName<"mutation">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "mutation">
  ): Promise<ResultOf<Name>>;
  runAction<Name extends FunctionName<"action">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "action">
  ): Promise<ResultOf<Name>>;
}
