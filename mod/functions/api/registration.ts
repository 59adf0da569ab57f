/** `query`, `mutation`, `action` and their internal variants declare the functions of an app. */
import { z } from "zod";
import type { FunctionKind } from "../../protocol/function_reference.ts";
import type { ActionCtx, MutationCtx, QueryCtx } from "./context.ts";
import type { SystemMutationCtx, SystemQueryCtx } from "./system_context.ts";
import type { RegisteredFunction, Visibility } from "../../protocol/api_reference.ts";
import { zod } from "./current_zod.ts";
import type { AnyDataModel, DataModel } from "./values.ts";

/** Arguments: a zod schema for each, or a zod object. Unknown arguments are refused. */
export type ArgsValidator = Readonly<Record<string, z.ZodType>> | z.ZodObject;

type ArgsObject<Validator extends ArgsValidator> = Validator extends z.ZodObject ? Validator
  : Validator extends Record<string, z.ZodType> ? z.ZodObject<Validator>
  : never;

type Flat<Fields> = { [Name in keyof Fields]: Fields[Name] };

/** Arguments as the handler receives them. */
export type ArgsOutput<Validator extends ArgsValidator> = Flat<z.output<ArgsObject<Validator>>>;

/** Arguments as callers pass them. */
export type ArgsInput<Validator extends ArgsValidator> = Flat<z.input<ArgsObject<Validator>>>;

type Handler<Ctx, Args, Result> = (ctx: Ctx, args: Args) => Result;

/**
 * Declares a function: `{ args?, returns?, handler }`, or only the handler, which then accepts any arguments. `returns`
 * validates the result.
 */
export interface FunctionBuilder<Kind extends FunctionKind, Vis extends Visibility, Ctx> {
  <const Args extends ArgsValidator, Returns extends z.ZodType>(definition: {
    readonly args: Args;
    readonly returns: Returns;
    readonly handler: Handler<Ctx, ArgsOutput<Args>, z.input<Returns> | Promise<z.input<Returns>>>;
  }): RegisteredFunction<Kind, Vis, ArgsInput<Args>, z.output<Returns>>;
  <const Args extends ArgsValidator, Result>(definition: {
    readonly args: Args;
    readonly handler: Handler<Ctx, ArgsOutput<Args>, Result>;
  }): RegisteredFunction<Kind, Vis, ArgsInput<Args>, Awaited<Result>>;
  <Returns extends z.ZodType, Args extends Record<string, unknown> = Record<string, unknown>>(definition: {
    readonly returns: Returns;
    readonly handler: Handler<Ctx, Args, z.input<Returns> | Promise<z.input<Returns>>>;
  }): RegisteredFunction<Kind, Vis, Args, z.output<Returns>>;
  <Result, Args extends Record<string, unknown> = Record<string, unknown>>(definition: {
    readonly handler: Handler<Ctx, Args, Result>;
  }): RegisteredFunction<Kind, Vis, Args, Awaited<Result>>;
  <Result, Args extends Record<string, unknown> = Record<string, unknown>>(
    handler: Handler<Ctx, Args, Result>,
  ): RegisteredFunction<Kind, Vis, Args, Awaited<Result>>;
}

/** The registration of a function, used by the isolate. */
export interface FunctionSpec {
  readonly kind: FunctionKind;
  readonly visibility: Visibility;
  /** Rejects unknown arguments; `null` accepts any. */
  readonly args: ArgsSchema | null;
  readonly returns: z.ZodType | null;
  readonly handler: (ctx: unknown, args: Record<string, unknown>) => unknown;
}

const specKey: unique symbol = Symbol("syncline.functionSpec");

/** Returns the registration of an exported value, or `undefined`. */
export function functionSpec(exported: unknown): FunctionSpec | undefined {
  if (typeof exported !== "object" || exported === null || !Object.hasOwn(exported, specKey)) {
    return undefined;
  }
  return (exported as { readonly [specKey]: FunctionSpec })[specKey];
}

/** Whether a value is a zod schema. */
export function isZodSchema(value: unknown): value is z.ZodType {
  return typeof value === "object" && value !== null && "_zod" in value;
}

type ArgsSchema = z.ZodType<Record<string, unknown>>;

/** Checks the arguments of a declaration. Returns a function that makes their schema. */
function argsSchema(args: unknown): () => ArgsSchema {
  if (isZodSchema(args)) {
    if (args instanceof z.ZodObject) return () => args.strict();
    throw new TypeError("args must be an object of zod schemas, or a zod object");
  }
  if (typeof args !== "object" || args === null) {
    throw new TypeError(`args must be an object of zod schemas, not ${args === null ? "null" : typeof args}`);
  }
  const shape: Record<string, z.ZodType> = {};
  for (const [name, schema] of Object.entries(args)) {
    if (!isZodSchema(schema)) throw new TypeError(`args.${name} is not a zod schema`);
    shape[name] = schema;
  }
  const { strictObject } = zod;
  return () => strictObject(shape);
}

function declare(kind: FunctionKind, visibility: Visibility, definition: unknown): unknown {
  const { args, returns, handler } =
    (typeof definition === "function" ? { handler: definition } : definition ?? {}) as Record<
      "args" | "returns" | "handler",
      unknown
    >;
  if (typeof handler !== "function") {
    throw new TypeError(
      `${kind}() needs a handler: ${kind}({ args: { ... }, handler: async (ctx, args) => ... })`,
    );
  }
  if (returns !== undefined && !isZodSchema(returns)) throw new TypeError("returns must be a zod schema");
  const makeArgs = args === undefined ? () => null : argsSchema(args);
  let made: ArgsSchema | null = null;
  const spec: FunctionSpec = Object.freeze({
    kind,
    visibility,
    // Most functions of the service are never called in a process.
    get args() {
      return made ??= makeArgs();
    },
    returns: returns ?? null,
    handler: handler as FunctionSpec["handler"],
  });
  return Object.freeze({ [specKey]: spec });
}

function builder<Kind extends FunctionKind, Vis extends Visibility, Ctx>(
  kind: Kind,
  visibility: Vis,
): FunctionBuilder<Kind, Vis, Ctx> {
  return ((definition: unknown) => declare(kind, visibility, definition)) as FunctionBuilder<Kind, Vis, Ctx>;
}

/** An administrator query of the service. */
export const adminQuery: FunctionBuilder<"query", "admin", QueryCtx<AnyDataModel>> = builder(
  "query",
  "admin",
);

/** An administrator mutation of the service. */
export const adminMutation: FunctionBuilder<"mutation", "admin", MutationCtx<AnyDataModel>> = builder(
  "mutation",
  "admin",
);

/** Builders for functions of the service: administrator functions, and functions with the full system `ctx`. */
export interface SystemFunctionBuilders<Model extends DataModel> {
  readonly systemQuery: FunctionBuilder<"query", "internal", SystemQueryCtx<Model>>;
  readonly systemMutation: FunctionBuilder<"mutation", "internal", SystemMutationCtx<Model>>;
  readonly adminQuery: FunctionBuilder<"query", "admin", SystemQueryCtx<Model>>;
  readonly adminMutation: FunctionBuilder<"mutation", "admin", SystemMutationCtx<Model>>;
}

/** Builders whose `ctx.db` is typed by a data model. */
export interface FunctionBuilders<Model extends DataModel> {
  readonly query: FunctionBuilder<"query", "public", QueryCtx<Model>>;
  readonly mutation: FunctionBuilder<"mutation", "public", MutationCtx<Model>>;
  readonly action: FunctionBuilder<"action", "public", ActionCtx>;
  readonly internalQuery: FunctionBuilder<"query", "internal", QueryCtx<Model>>;
  readonly internalMutation: FunctionBuilder<"mutation", "internal", MutationCtx<Model>>;
  readonly internalAction: FunctionBuilder<"action", "internal", ActionCtx>;
}

/**
 * Declares a query without a schema: `ctx.db` knows no tables. Use the `query` of `createFunctions(schema)` for type-checked
 * access.
 */
export const untypedQuery: FunctionBuilder<"query", "public", QueryCtx<AnyDataModel>> = builder(
  "query",
  "public",
);

/** Declares a mutation without a schema. Use the `mutation` of `createFunctions(schema)` for type-checked access. */
export const untypedMutation: FunctionBuilder<"mutation", "public", MutationCtx<AnyDataModel>> = builder(
  "mutation",
  "public",
);

/** Declares an action: a function with I/O that clients can call. The `action` of `createFunctions(schema)` is the same. */
export const untypedAction: FunctionBuilder<"action", "public", ActionCtx> = builder("action", "public");

/** Declares a query without a schema that clients cannot call. */
export const untypedInternalQuery: FunctionBuilder<"query", "internal", QueryCtx<AnyDataModel>> = builder(
  "query",
  "internal",
);

/** Declares a mutation without a schema that clients cannot call. */
export const untypedInternalMutation: FunctionBuilder<"mutation", "internal", MutationCtx<AnyDataModel>> =
  builder(
    "mutation",
    "internal",
  );

/** Declares an action that clients cannot call. */
export const untypedInternalAction: FunctionBuilder<"action", "internal", ActionCtx> = builder(
  "action",
  "internal",
);

/** @deprecated Use `query` of `createFunctions(schema)`, or {@linkcode untypedQuery}. */
export const query: typeof untypedQuery = untypedQuery;

/** @deprecated Use `mutation` of `createFunctions(schema)`, or {@linkcode untypedMutation}. */
export const mutation: typeof untypedMutation = untypedMutation;

/** @deprecated Use `action` of `createFunctions(schema)`, or {@linkcode untypedAction}. */
export const action: typeof untypedAction = untypedAction;

/** @deprecated Use `internalQuery` of `createFunctions(schema)`, or {@linkcode untypedInternalQuery}. */
export const internalQuery: typeof untypedInternalQuery = untypedInternalQuery;

/** @deprecated Use `internalMutation` of `createFunctions(schema)`, or {@linkcode untypedInternalMutation}. */
export const internalMutation: typeof untypedInternalMutation = untypedInternalMutation;

/** @deprecated Use `internalAction` of `createFunctions(schema)`, or {@linkcode untypedInternalAction}. */
export const internalAction: typeof untypedInternalAction = untypedInternalAction;
