/** Mutations and actions in components. */
import type { FunctionName } from "../../protocol/client_function_names.ts";
import { functionPath } from "../../protocol/function_reference.ts";
import { type Act, act, type Mutate, mutate } from "../bindings/calls.ts";
import { useSyncline } from "./provider.ts";

/**
 * Returns a function that calls a mutation. Call this while a component is created.
 *
 * @example
 * ```ts
 * const send = useMutation(api.messages.send);
 * await send({ channel, body });
 * ```
 */
export function useMutation<Name extends FunctionName<"mutation">>(mutation: Name): Mutate<Name> {
  return mutate(useSyncline(), functionPath(mutation));
}

/** Returns a function that calls an action. Call this while a component is created. */
export function useAction<Name extends FunctionName<"action">>(action: Name): Act<Name> {
  return act(useSyncline(), functionPath(action));
}
