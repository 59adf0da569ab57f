/** Live queries as external stores for React. */
import { useMemo } from "react";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { type FunctionName, functionPath } from "../../protocol/function_reference.ts";
import { idleStore, type Outcome, queryStore, type Store } from "../bindings/query_store.ts";
import type { FunctionError } from "../errors.ts";
import { useClient } from "./provider.ts";

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
    () => asked === null ? idleStore : queryStore(client, asked.path, asked.args),
    [client, asked],
  );
}

const noArgs = Object.freeze({});
