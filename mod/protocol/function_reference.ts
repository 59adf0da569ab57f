/**
 * Names of functions in code: a path, or a reference such as `api.messages.list` that carries the path and the types of
 * arguments and result. Browser-safe.
 */

/** Key of the function path in a reference; the same symbol in every copy of this module. */
export const functionPathKey: unique symbol = Symbol.for("syncline.functionPath") as never;

export type FunctionKind = "query" | "mutation" | "action";

/** A function and its types. `~types` exists for the compiler only. */
export interface FunctionReference<Kind extends FunctionKind = FunctionKind, Args = never, Result = unknown> {
  readonly [functionPathKey]: string;
  readonly "~types"?: {
    readonly kind: Kind;
    readonly args: (args: Args) => void;
    readonly result: Result;
  };
}

/** A function's path, or a reference to it. */
export type FunctionName<Kind extends FunctionKind = FunctionKind> = string | FunctionReference<Kind>;

/** Arguments of a function; any object if it is named by a string. */
export type ArgsOf<Name> = Name extends FunctionReference<FunctionKind, infer Args, unknown> ? Args
  : Record<string, unknown>;

/** A value as callers may pass it: its arrays may be read-only. */
export type Passed<Value> = unknown extends Value ? Value
  : Value extends string | number | boolean | bigint | null | undefined ? Value
  : Value extends readonly unknown[] ? { readonly [Key in keyof Value]: Passed<Value[Key]> }
  : { [Key in keyof Value]: Passed<Value[Key]> };

/** {@linkcode ArgsOf} as callers pass them. */
export type PassedArgs<Name> = Passed<ArgsOf<Name>>;

/** Arguments of a call after the function; optional if no argument is required. Then come `More`. */
export type CallArgs<Name, More extends readonly unknown[] = []> = Record<never, never> extends ArgsOf<Name>
  ? [args?: PassedArgs<Name>, ...more: Partial<More>]
  : [args: PassedArgs<Name>, ...more: More];

/** Result of a function; `unknown` if it is named by a string. */
export type ResultOf<Name> = Name extends FunctionReference<FunctionKind, never, infer Result> ? Result
  : unknown;

/** Returns the path of a function. Throws a `TypeError` for anything that is neither a path nor a reference. */
export function functionPath(name: FunctionName): string {
  const path: unknown = typeof name === "string" ? name : name?.[functionPathKey];
  if (typeof path !== "string" || path === "") {
    throw new TypeError(
      `Cannot call ${String(name)}: it is neither a function path nor a function reference`,
    );
  }
  return path;
}

/**
 * A typed reference to the function at a path, for code that has no `api` to import.
 *
 * @example
 * ```ts
 * const list = functionReference<"query", { channel: string }, { body: string }[]>("messages:list");
 * ```
 */
export function functionReference<Kind extends FunctionKind, Args, Result>(
  path: string,
): FunctionReference<Kind, Args, Result> {
  return { [functionPathKey]: path };
}
