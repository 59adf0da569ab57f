/** The `ctx` of queries, mutations and actions as authors see it. Types only. */
import type { FunctionName } from "../../protocol/function_reference.ts";
import type { CallArgs, Known, ResultOf } from "../../protocol/server_function_names.ts";
import type { DatabaseReader, DatabaseWriter } from "./database.ts";
import type { Scheduler } from "./scheduler.ts";
import type { StorageActions, StorageReader, StorageWriter } from "./storage.ts";
import type { DataModel, Id, Readable } from "./values.ts";

/**
 * Who calls. What a query reads of it decides with whom its result is shared: nothing (everybody), the principal, or
 * the session.
 */
export interface Auth {
  /** Id of the signed-in user, or `null`. */
  userId(): Id<"_users"> | null;
  /** Id of the signed-in administrator, or `null`. */
  adminId(): Id<"_admins"> | null;
  /** Id of the session, or `null`; external tokens have none. */
  sessionId(): string | null;
  /**
   * The ids together with the claims of an external token; `null` for anonymous callers. Who looks at `claims` has read
   * the session: two tokens of one user may differ in them.
   */
  identity(): CallerIdentity | null;
}

export interface CallerIdentity {
  readonly userId: Id<"_users"> | null;
  readonly adminId: Id<"_admins"> | null;
  readonly claims: TokenClaims;
}

/**
 * What the token of another issuer says; empty for the server's own sessions. The first five were checked; what else there
 * is depends on the issuer.
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

/** Log lines of the call: `[LEVEL] message key=value ...`. */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** What every function has. */
interface FunctionCtx {
  readonly auth: Auth;
  readonly log: Log;
  /** Runs a query: in the caller's transaction, or, from an action, at a snapshot of its own. */
  runQuery<Name extends FunctionName<"query">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "query">
  ): Promise<ResultOf<Name>>;
}

/** Reads the database at one moment. The clock stands still, chance repeats, nothing outside can be reached. */
export interface QueryCtx<Model extends DataModel> extends FunctionCtx {
  readonly db: DatabaseReader<Readable<Model>>;
  readonly storage: StorageReader;
}

/** Reads and writes in one transaction, which is undone when the handler throws. */
export interface MutationCtx<Model extends DataModel> extends FunctionCtx {
  readonly db: DatabaseWriter<Model>;
  readonly scheduler: Scheduler;
  readonly storage: StorageWriter;
  /** Runs a mutation inside this transaction; when it throws, its own writes are undone and the error is thrown here. */
  runMutation<Name extends FunctionName<"mutation">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "mutation">
  ): Promise<ResultOf<Name>>;
}

/** Reaches the outside; reads and writes the database through queries and mutations, each a transaction of its own. */
export interface ActionCtx extends FunctionCtx {
  /** The app's environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly scheduler: Scheduler;
  readonly storage: StorageActions;
  runMutation<Name extends FunctionName<"mutation">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "mutation">
  ): Promise<ResultOf<Name>>;
  runAction<Name extends FunctionName<"action">>(
    name: Known<Name>,
    ...args: CallArgs<Name, "action">
  ): Promise<ResultOf<Name>>;
}
