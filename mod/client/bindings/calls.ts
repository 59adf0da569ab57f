/** Functions that call mutations and actions. */
import { type FunctionReference, functionReference } from "../../protocol/function_reference.ts";
import type { ArgsOf, CallArgs, ResultOf } from "../../protocol/client_function_names.ts";
import type { SynclineClient } from "../client.ts";
import type { OptimisticStore } from "../queries/optimistic.ts";

/** Calls a mutation; see `SynclineClient.mutation` for the returned promise. */
export interface Mutate<Name> {
  (...args: CallArgs<Name>): Promise<ResultOf<Name>>;
  /**
   * Returns the same function with an optimistic update: changes local results until the real ones arrive. The update must be
   * pure, because it runs again for every new result. The same `update` returns the same function.
   */
  withOptimisticUpdate(update: OptimisticUpdateOf<Name>): Mutate<Name>;
}

/** Changes local results to the expected outcome of a call with `args`. */
export type OptimisticUpdateOf<Name> = (store: OptimisticStore, args: ArgsOf<Name>) => void;

/** Calls an action; see `SynclineClient.action`. */
export type Act<Name> = (...args: CallArgs<Name>) => Promise<ResultOf<Name>>;

type Args = Record<string, unknown>;

/** Returns a function that calls a mutation. */
export function mutate<Name>(
  client: SynclineClient | null,
  path: string,
  optimisticUpdate?: OptimisticUpdateOf<Name>,
): Mutate<Name> {
  const variants = new WeakMap<OptimisticUpdateOf<Name>, Mutate<Name>>();
  const withOptimisticUpdate = (update: OptimisticUpdateOf<Name>) => {
    const variant = variants.get(update) ?? mutate(client, path, update);
    variants.set(update, variant);
    return variant;
  };
  return Object.assign(caller(client, "mutation", path, { optimisticUpdate }), {
    withOptimisticUpdate,
  }) as Mutate<Name>;
}

/** Returns a function that calls an action. */
export function act<Name>(client: SynclineClient | null, path: string): Act<Name> {
  return caller(client, "action", path) as Act<Name>;
}

/** A mutation or an action without its types. */
type Call = (path: FunctionReference<never>, args: Args, options?: object) => Promise<unknown>;

function caller(client: SynclineClient | null, kind: "mutation" | "action", path: string, options?: object) {
  return async (args: Args = {}): Promise<unknown> =>
    await (present(client) as Record<typeof kind, Call>)[kind](functionReference(path), args, options);
}

/** Returns the client for an operation that needs one. Throws during server rendering. */
export function present(client: SynclineClient | null): SynclineClient {
  if (client === null) throw new Error("No live client during server rendering");
  return client;
}
