/** Live queries in the form React subscribes to. */
import { useMemo } from "react";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { type FunctionName, functionPath, functionReference } from "../../protocol/function_reference.ts";
import type { SynclineClient } from "../client.ts";
import type { FunctionError } from "../errors.ts";
import { useClient } from "./provider.ts";

/** What `useSyncExternalStore` takes. */
export interface Store<Value> {
  /** Calls `listener` after changes. Returns what ends it. */
  readonly subscribe: (listener: () => void) => () => void;
  /** The value now; the same object as before unless it changed. */
  readonly read: () => Value;
}

/** What a query gives: its result, its error (results are JSON and never an `Error`), `undefined` while it loads. */
export type Outcome = unknown;

/** A query that is not asked. */
export const idleStore: Store<Outcome> = { subscribe: () => () => {}, read: () => undefined };

/** Snapshot of what a server cannot know. */
export const nothing = (): undefined => undefined;

/** Throws errors, returns results. */
export function valueOf(outcome: Outcome): unknown {
  if (outcome instanceof Error) throw named(outcome);
  return outcome;
}

const namedErrors = new WeakMap<Error, Error>();

/**
 * An error as hooks throw it. What the app says itself stays as it is; any other message, such as "Server Error", names the
 * query, and the request that the execution log finds it by. The same one again for the same error.
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

/** The query at a path; live while somebody listens. Throws `TypeError` for arguments that are not JSON. */
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

/** A query as a hook is told of it. */
export interface AskedQuery {
  readonly path: string;
  readonly args: Record<string, unknown>;
  /** The same text for equal arguments, whatever object they come in. */
  readonly argsKey: string;
}

/** The query a hook was called with; the same object as long as path and arguments are equal. `null` for `"skip"`. */
export function useAskedQuery(name: FunctionName, args: unknown = noArgs): AskedQuery | null {
  const path = functionPath(name);
  const argsKey = useMemo(() => args === "skip" ? null : canonicalJson(args), [args]);
  return useMemo(
    () => argsKey === null ? null : { path, args: args as Record<string, unknown>, argsKey },
    [path, argsKey],
  );
}

/** Store of the query a hook was called with. */
export function useQueryStore(name: FunctionName, args: unknown): Store<Outcome> {
  const client = useClient();
  const asked = useAskedQuery(name, args);
  return useMemo(
    () => client === null || asked === null ? idleStore : queryStore(client, asked.path, asked.args),
    [client, asked],
  );
}

const noArgs = Object.freeze({});
