/**
 * Types of function names such as `"messages:list"` inside functions of the app: `ctx.runQuery` and the like, schedules
 * and crons. Once an app registers its modules, a string must name one of their exports and has its argument and result
 * types. The compiler resolves only the named function, because the type of the calling function is still being
 * inferred. Browser-safe.
 */
import type { RegisteredFunction, Visibility } from "./api_reference.ts";
import type * as plain from "./function_reference.ts";
import type { FunctionKind, FunctionReference } from "./function_reference.ts";
import type { RegisteredModules as Modules } from "./client_function_names.ts";

/** Names of exports are known without their types. Whether one is a function is checked when it is named. */
type PathsIn<Tree> = {
  [File in keyof Tree & string]: File extends "index" ? keyof Tree[File] & string
    : `${File}:${keyof Tree[File] & string}`;
}[keyof Tree & string];

type ExportAt<Path> = Path extends `${infer File}:${infer Name}` ? Member<Member<Modules, File>, Name>
  : Member<Member<Modules, "index">, Path>;
type Member<Tree, Name> = Name extends keyof Tree ? Tree[Name] : never;

type ReferenceTo<Export> = Export extends RegisteredFunction<infer Kind, Visibility, infer Args, infer Result>
  ? FunctionReference<Kind, Args, Result>
  : never;

/** The reference of a path if modules are registered; any other name itself. */
type Named<Name> = [Modules] extends [never] ? Name
  : Name extends `_${string}` ? Name
  : Name extends string ? ReferenceTo<ExportAt<Name>>
  : Name;

/**
 * A valid name itself, or, for an unknown path, the known ones. This is not the constraint of `Name`, or the compiler
 * would resolve all functions for each call.
 */
export type Known<Name> = [Modules] extends [never] ? Name
  : Name extends string ? Name extends PathsIn<Modules> | `_${string}` ? Name : PathsIn<Modules>
  : Name;

/** Arguments of a function; any object if it is named by a string and no modules are registered. */
export type ArgsOf<Name> = plain.ArgsOf<Named<Name>>;

/** Arguments of a call after the function; optional if no argument is required. */
export type CallArgs<Name, Kind extends FunctionKind> = [Modules] extends [never] ? plain.CallArgs<Name>
  : [Named<Name>] extends [never] ? [none: `There is no function ${Name & string}`]
  : Named<Name> extends string | FunctionReference<Kind> ? plain.CallArgs<Named<Name>>
  : [other: `${Name & string} is no ${Kind}`];

/** Result of a function; `unknown` if it is named by a string and no modules are registered. */
export type ResultOf<Name> = plain.ResultOf<Named<Name>>;
