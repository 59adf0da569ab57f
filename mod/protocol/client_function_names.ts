/**
 * Types of function names such as `"messages:list"` for clients, hooks and tests. Once an app registers its modules, a
 * string must name one of its functions and has the types of its arguments and result. Functions of the app use
 * `server_function_names.ts`. Browser-safe.
 */
import type { ApiFromModules } from "./api_reference.ts";
import type * as plain from "./function_reference.ts";
import type { FunctionKind, FunctionReference } from "./function_reference.ts";

/**
 * Declares an app's functions, once, where its `api` is created: `modules` types the function names of all callers, `api`
 * those of clients only.
 *
 * @example
 * ```ts
 * interface Modules {
 *   messages: typeof import("./messages.ts");
 * }
 * export const { api } = createApi<Modules>();
 * declare module "syncline/client" {
 *   interface Register {
 *     modules: Modules;
 *   }
 * }
 * ```
 */
// deno-lint-ignore no-empty-interface -- apps add to it
export interface Register {}

/** All references of a tree by path: `{ messages: { list } }` has `"messages:list"`. */
type PathsIn<Tree, Folder extends string> = Tree extends unknown ? {
    [Name in keyof Tree & string]: Tree[Name] extends FunctionReference
      ? { readonly path: Folder extends "" ? Name : `${Folder}:${Name}`; readonly reference: Tree[Name] }
      : PathsIn<Tree[Name], Folder extends "" ? Name : `${Folder}/${Name}`>;
  }[keyof Tree & string]
  : never;

/** Modules by path; `never` if none are registered. */
export type RegisteredModules = Register[keyof Register & "modules"];

type Registered =
  | Register[Exclude<keyof Register, "modules">]
  | ([RegisteredModules] extends [never] ? never : ApiFromModules<RegisteredModules>);

type Entry = [keyof Register] extends [never] ? never : PathsIn<Registered, "">;

type KnownFunctions = { readonly [Each in Entry as Each["path"]]: Each["reference"] };

type PathOf<Kind extends FunctionKind> = Entry extends infer Each
  ? Each extends { readonly path: infer Path extends string; readonly reference: FunctionReference<Kind> }
    ? Path
  : never
  : never;

/** The reference of a registered path; any other name itself. */
type Named<Name> = Name extends keyof KnownFunctions ? KnownFunctions[Name] : Name;

/** A function's path, or a reference to it. Paths of the service begin with `_`. */
export type FunctionName<Kind extends FunctionKind = FunctionKind> =
  | ([keyof Register] extends [never] ? string : PathOf<Kind> | `_${string}`)
  | FunctionReference<Kind>;

/** Arguments of a function; any object if it is named by a string and nothing is registered. */
export type ArgsOf<Name> = plain.ArgsOf<Named<Name>>;

/** {@linkcode ArgsOf} as callers pass them: arrays may be read-only. */
export type PassedArgs<Name> = plain.PassedArgs<Named<Name>>;

/** Arguments of a call after the function; optional if no argument is required. Then come `More`. */
export type CallArgs<Name, More extends readonly unknown[] = []> = plain.CallArgs<Named<Name>, More>;

/** Result of a function; `unknown` if it is named by a string and nothing is registered. */
export type ResultOf<Name> = plain.ResultOf<Named<Name>>;
