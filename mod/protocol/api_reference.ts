/**
 * References to functions (`api.messages.list`), typed by inference from the modules' own types. No code is generated,
 * and the only run-time import is a symbol. Browser-safe.
 */
import { type FunctionKind, functionPathKey, type FunctionReference } from "./function_reference.ts";

/** Callers of a function: any client, administrators, or only functions of the app. */
export type Visibility = "public" | "admin" | "internal";

/** The type of what `query`, `mutation` and the others return. `~registered` exists for the compiler only. */
export interface RegisteredFunction<Kind extends FunctionKind, Vis extends Visibility, Args, Result> {
  readonly "~registered"?: {
    readonly kind: Kind;
    readonly visibility: Vis;
    readonly args: (args: Args) => void;
    readonly result: Result;
  };
}

/** The type of `api.file.name` if the export is no function that `api` can call. It is rejected where it is used. */
export interface NotCallable<Reason extends string> {
  readonly "~error": Reason;
}

type ReferenceTo<Export, Vis extends Visibility> = Export extends
  RegisteredFunction<infer Kind, infer ExportVis, infer Args, infer Result>
  ? "~registered" extends keyof Export ? [ExportVis] extends [Vis] ? FunctionReference<Kind, Args, Result>
    : NotCallable<`This function is ${ExportVis}`>
  : NotCallable<"This export is not a function of the app">
  : NotCallable<"This export is not a function of the app">;

/**
 * References to the exports of a module. Every export has an entry: the compiler resolves only the ones in use, so a
 * function can call others of its own file.
 */
export type ModuleReferences<Module, Vis extends Visibility> = {
  readonly [Name in keyof Module]: ReferenceTo<Module[Name], Vis>;
};

type Nested<Path extends string, Leaf> = Path extends `${infer Folder}/${infer Rest}`
  ? { readonly [Name in Folder]: Nested<Rest, Leaf> }
  : { readonly [Name in Path]: Leaf };

type UnionToIntersection<Union> = (Union extends unknown ? (value: Union) => void : never) extends
  (value: infer Intersection) => void ? Intersection : never;

/**
 * References to the functions of several modules. Keys are module paths (`"admin/users"` becomes `api.admin.users`);
 * the functions of the module `index` are at the root, like their paths.
 *
 * @example
 * ```ts
 * type Api = ApiFromModules<{ messages: typeof import("./messages.ts"); index: typeof import("./index.ts") }>;
 * ```
 */
export type ApiFromModules<Modules, Vis extends Visibility = "public"> = UnionToIntersection<
  {
    [Path in keyof Modules & string]: Path extends "index" ? ModuleReferences<Modules[Path], Vis>
      : Nested<Path, ModuleReferences<Modules[Path], Vis>>;
  }[keyof Modules & string]
>;

function referenceAt(parts: readonly string[]): object {
  return new Proxy({}, {
    get(_target, property) {
      if (property === functionPathKey) {
        const name = parts.at(-1);
        if (name === undefined) return undefined;
        return parts.length === 1 ? name : `${parts.slice(0, -1).join("/")}:${name}`;
      }
      // A reference is not a promise: `await` must not call `then`.
      if (typeof property === "symbol" || property === "then" || property === "toJSON") return undefined;
      return referenceAt([...parts, property]);
    },
    set() {
      throw new TypeError("Cannot assign to a function reference");
    },
  });
}

/** Untyped references: `anyApi.messages.list` names `messages:list`, whether it exists or not. */
export const anyApi: { readonly [module: string]: AnyReferences } = referenceAt([]) as never;

/** An untyped reference, and a step towards a longer one. */
export type AnyReferences = FunctionReference<FunctionKind, Record<string, unknown>, unknown> & {
  readonly [name: string]: AnyReferences;
};

/**
 * Typed references to functions: `api` for public ones, `internal` for internal ones, `admin` for those of the service that
 * administrators call.
 *
 * @example
 * ```ts
 * export const { api, internal } = createApi<{ messages: typeof import("./messages.ts") }>();
 * await ctx.runQuery(api.messages.list, { channel: "general" });
 * ```
 */
export function createApi<Modules>(): {
  readonly api: ApiFromModules<Modules, "public">;
  readonly internal: ApiFromModules<Modules, "internal">;
  readonly admin: ApiFromModules<Modules, "admin">;
} {
  return { api: anyApi as never, internal: anyApi as never, admin: anyApi as never };
}
