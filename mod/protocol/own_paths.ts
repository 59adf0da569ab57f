/**
 * Functions named by a text, such as `"messages:list"`, for functions of the app: `ctx.runQuery` and its siblings, schedules
 * and crons. Once an app registers its modules, a text has to name one of their exports, and brings the types of arguments
 * and result. Only the one that is named is looked at: what the function that names it gives back is being inferred then.
 * Browser-safe.
 */
import type { RegisteredFunction, Visibility } from "./api_reference.ts";
import type * as plain from "./function_reference.ts";
import type { FunctionKind, FunctionReference } from "./function_reference.ts";
import type { RegisteredModules as Modules } from "./known_paths.ts";

/** Names of exports are known without their types; which of them are functions, and of which kind, is seen when one is named. */
type PathsIn<Tree> = {
  [File in keyof Tree & string]: File extends "index" ? keyof Tree[File] & string
    : `${File}:${keyof Tree[File] & string}`;
}[keyof Tree & string];

/** The export that a path names. */
type ExportAt<Path> = Path extends `${infer File}:${infer Name}` ? Member<Member<Modules, File>, Name>
  : Member<Member<Modules, "index">, Path>;
type Member<Tree, Name> = Name extends keyof Tree ? Tree[Name] : never;

type ReferenceTo<Export> = Export extends RegisteredFunction<infer Kind, Visibility, infer Args, infer Result>
  ? FunctionReference<Kind, Args, Result>
  : never;

/** What a name stands for: the reference of a path, where modules are known; anything else itself. */
type Named<Name> = [Modules] extends [never] ? Name
  : Name extends `_${string}` ? Name
  : Name extends string ? ReferenceTo<ExportAt<Name>>
  : Name;

/**
 * A name that a call accepts: itself, or, for a path that is none, what there is. The constraint of `Name` must not say
 * this: the compiler would look at all functions for a call of one.
 */
export type Known<Name> = [Modules] extends [never] ? Name
  : Name extends string ? Name extends PathsIn<Modules> | `_${string}` ? Name : PathsIn<Modules>
  : Name;

/** Arguments of a function; any object when it is named by a text and no modules are registered. */
export type ArgsOf<Name> = plain.ArgsOf<Named<Name>>;

/** What follows the function in a call: its arguments, which may be left out when none is required. */
export type CallArgs<Name, Kind extends FunctionKind> = [Modules] extends [never] ? plain.CallArgs<Name>
  : [Named<Name>] extends [never] ? [none: `There is no function ${Name & string}`]
  : Named<Name> extends string | FunctionReference<Kind> ? plain.CallArgs<Named<Name>>
  : [other: `${Name & string} is no ${Kind}`];

/** Result of a function; `unknown` when it is named by a text and no modules are registered. */
export type ResultOf<Name> = plain.ResultOf<Named<Name>>;
