/** Mutations and actions in components. */
import { useMemo } from "react";
import { functionPath, functionReference } from "../../protocol/function_reference.ts";
import type { ArgsOf, CallArgs, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import type { SynclineClient } from "../client.ts";
import type { OptimisticStore } from "../queries/optimistic.ts";
import { present, useClient } from "./provider.ts";

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

/**
 * Returns a function that calls a mutation; the same one in every render.
 *
 * @example
 * ```tsx
 * const send = useMutation(api.messages.send);
 * await send({ channel, body });
 * ```
 */
export function useMutation<Name extends FunctionName<"mutation">>(mutation: Name): Mutate<Name> {
  const client = useClient();
  const path = functionPath(mutation);
  return useMemo(() => mutate(client, path), [client, path]);
}

/** Returns a function that calls an action; the same one in every render. */
export function useAction<Name extends FunctionName<"action">>(action: Name): Act<Name> {
  const client = useClient();
  const path = functionPath(action);
  return useMemo((): Act<Name> => {
    const act = async (args: Args = {}) =>
      await present(client).action(functionReference<"action", Args, unknown>(path), args);
    return act as Act<Name>;
  }, [client, path]);
}

type Args = Record<string, unknown>;

function mutate<Name>(
  client: SynclineClient | null,
  path: string,
  update?: OptimisticUpdateOf<Name>,
): Mutate<Name> {
  const variants = new WeakMap<OptimisticUpdateOf<Name>, Mutate<Name>>();
  const call = async (args: Args = {}) =>
    await present(client).mutation(
      functionReference<"mutation", Args, unknown>(path),
      args,
      update && { optimisticUpdate: update as OptimisticUpdateOf<string> },
    );
  return Object.assign(call, {
    withOptimisticUpdate: (next: OptimisticUpdateOf<Name>) => {
      const known = variants.get(next);
      if (known !== undefined) return known;
      const variant = mutate(client, path, next);
      variants.set(next, variant);
      return variant;
    },
  }) as Mutate<Name>;
}
