/** Live queries as external stores for React. */
import { useMemo } from "react";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { type FunctionName, functionPath, functionReference } from "../../protocol/function_reference.ts";
import type { SynclineClient } from "../client.ts";
import type { FunctionError } from "../errors.ts";
import { useClient } from "./provider.ts";

/** Arguments of `useSyncExternalStore`. */
export interface Store<Value> {
  /** Calls `listener` after changes. Returns a function that removes it. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Returns the current value; the same object unless it changed. */
  readonly read: () => Value;
}

/** Value of a query: its result, its error (results are JSON and never an `Error`), `undefined` while it loads. */
export type Outcome = unknown;

/** Store of a skipped query. */
export const idleStore: Store<Outcome> = { subscribe: () => () => {}, read: () => undefined };

/** Snapshot during server rendering. */
export const nothing = (): undefined => undefined;

/** Throws errors, returns results. */
export function valueOf(outcome: Outcome): unknown {
  if (outcome instanceof Error) throw named(outcome);
  return outcome;
}

const namedErrors = new WeakMap<Error, Error>();

/**
 * Converts an error for hooks. Messages of a `UserError` are unchanged; others, such as "Server Error", name the query and the
 * request id in the execution log. Returns the same object for the same error.
 */
export function named(error: Error): Error {
  const { code, udfPath, requestId, logLines } = error as FunctionError;
  if (code !== null || udfPath === undefined) return error;
  let found = namedErrors.get(error);
  if (found === undefined) {
    const request = requestId === null ? "" : ` (request ${requestId})`;
    const message = `The query ${udfPath} failed: ${error.message}${request}`;
    const Same = error.constructor as typeof FunctionError;
    found = new Same(message, { udfPath, errorData: null, errorId: requestId, logLines });
    found.cause = error;
    namedErrors.set(error, found);
  }
  return found;
}

/** Returns the store of a query; live while it has listeners. Throws `TypeError` for arguments that are not JSON. */
export function queryStore(
  client: SynclineClient,
  path: string,
  args: Record<string, unknown>,
): Store<Outcome> {
  const watch = client.watchQuery(functionReference<"query", Record<string, unknown>, unknown>(path), args);
  const read = () => {
    try {
      return watch.localResult();
    } catch (error) {
      return error;
    }
  };
  return { subscribe: watch.onUpdate, read };
}

/** A query as passed to a hook. */
export interface ResolvedQuery {
  readonly path: string;
  readonly args: Record<string, unknown>;
  /** Returns the same string for equal arguments. */
  readonly argsKey: string;
}

/** Returns the query passed to a hook; the same object while path and arguments are equal. `null` for `"skip"`. */
export function useResolvedQuery(name: FunctionName, args: unknown = noArgs): ResolvedQuery | null {
  const path = functionPath(name);
  const argsKey = useMemo(() => args === "skip" ? null : canonicalJson(args), [args]);
  return useMemo(
    () => argsKey === null ? null : { path, args: args as Record<string, unknown>, argsKey },
    [path, argsKey],
  );
}

/** Returns the store of the query passed to a hook. */
export function useQueryStore(name: FunctionName, args: unknown): Store<Outcome> {
  const client = useClient();
  const asked = useResolvedQuery(name, args);
  return useMemo(
    () => client === null || asked === null ? idleStore : queryStore(client, asked.path, asked.args),
    [client, asked],
  );
}

const noArgs = Object.freeze({});
