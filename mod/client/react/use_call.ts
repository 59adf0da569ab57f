/** Mutations and actions in components. */
import { useMemo } from "react";
import type { FunctionName } from "../../protocol/client_function_names.ts";
import { functionPath } from "../../protocol/function_reference.ts";
import { type Act, act, type Mutate, mutate } from "../bindings/calls.ts";
import { useClient } from "./provider.ts";

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
  return useMemo(() => act(client, path), [client, path]);
}
