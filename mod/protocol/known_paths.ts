/**
 * Functions named by a text, such as `"messages:list"`, for callers that are no functions themselves: clients, hooks, tests.
 * Once an app registers its modules, a text has to name one of its functions, and brings the types of arguments and result.
 * Functions of the app call one another by the types of `own_paths.ts`. Browser-safe.
 */
import type { ApiFromModules } from "./api_reference.ts";
import type * as plain from "./function_reference.ts";
import type { FunctionKind, FunctionReference } from "./function_reference.ts";

/**
 * What an app tells of its functions, once, where its `api` is made: `modules`, for all who name a function by a text, or
 * `api`, for those who are no functions themselves.
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

/** The references of a tree with their paths: `{ messages: { list } }` has `"messages:list"`. */
type PathsIn<Tree, Folder extends string> = Tree extends unknown ? {
    [Name in keyof Tree & string]: Tree[Name] extends FunctionReference
      ? { readonly path: Folder extends "" ? Name : `${Folder}:${Name}`; readonly reference: Tree[Name] }
      : PathsIn<Tree[Name], Folder extends "" ? Name : `${Folder}/${Name}`>;
  }[keyof Tree & string]
  : never;

/** Modules by path; `never` when none are registered. */
export type RegisteredModules = Register[keyof Register & "modules"];

type Registered =
  | Register[Exclude<keyof Register, "modules">]
  | ([RegisteredModules] extends [never] ? never : ApiFromModules<RegisteredModules>);

type Entry = [keyof Register] extends [never] ? never : PathsIn<Registered, "">;

/** References of registered functions by path. */
type KnownFunctions = { readonly [Each in Entry as Each["path"]]: Each["reference"] };

type PathOf<Kind extends FunctionKind> = Entry extends infer Each
  ? Each extends { readonly path: infer Path extends string; readonly reference: FunctionReference<Kind> }
    ? Path
  : never
  : never;

/** What a name stands for: the reference of a registered path, anything else itself. */
type Named<Name> = Name extends keyof KnownFunctions ? KnownFunctions[Name] : Name;

/** What calls accept in place of a function: its path, or a reference to it. Paths of the service begin with `_`. */
export type FunctionName<Kind extends FunctionKind = FunctionKind> =
  | ([keyof Register] extends [never] ? string : PathOf<Kind> | `_${string}`)
  | FunctionReference<Kind>;

/** Arguments of a function; any object when it is named by a text and nothing is registered. */
export type ArgsOf<Name> = plain.ArgsOf<Named<Name>>;

/** What follows the function in a call: arguments, which may be left out when none is required, then `More`. */
export type CallArgs<Name, More extends readonly unknown[] = []> = plain.CallArgs<Named<Name>, More>;

/** Result of a function; `unknown` when it is named by a text and nothing is registered. */
export type ResultOf<Name> = plain.ResultOf<Named<Name>>;
