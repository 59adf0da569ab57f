/** Loads an app's modules and registers their exports. Every error names the file. */
import { pathToFileURL } from "node:url";
import type { SchemaDefinition } from "../../../engine/types.ts";
import { cronExpressionFault } from "../../../kit/cron_expression.ts";
import { functionLimits } from "../../../limits.ts";
import { authHooks, authHooksModule, profileExport } from "../../api/auth_hooks.ts";
import { type CronDefinition, cronDefinitions } from "../../api/cron_jobs.ts";
import { ProfileBuilder } from "../../api/profile.ts";
import { functionSpec, untypedInternalQuery } from "../../api/registration.ts";
import { schemaDefinition, tablesNamedByIds } from "../../api/schema.ts";
import { issueText } from "../../api/zod_issues.ts";
import { schedulerLimits } from "../../limits.ts";
import { findModules, type ModuleFile } from "../../module_files.ts";
import { AD_HOC_MODULE } from "../../wire/app_sources.ts";
import { isSystemPath, type SystemModule, systemTables } from "../../system_module.ts";
import type { WireCron } from "../../wire/messages.ts";
import { inspected } from "../ctx/log_lines.ts";
import { cleanStack, relativeToFunctions } from "../runs/call_errors.ts";
import { jsonText } from "../runs/json_text.ts";
import { adminAccess } from "./admin_access.ts";
import type { App, LoadedFunction } from "./app.ts";
import { type AppRoutes, appRoutes, noRoutes } from "./app_routes.ts";
import { AppTables } from "./app_tables.ts";
import { importMessage } from "./import_message.ts";

const { parse } = JSON;

/** Returns the crons of a default export. Throws if they are invalid. */
function appCrons(exported: unknown, functions: ReadonlyMap<string, LoadedFunction>): WireCron[] {
  const definitions = cronDefinitions(exported);
  if (definitions === null) {
    throw new TypeError(
      "the default export must be the crons: const crons = cronJobs(); ... export default crons",
    );
  }
  if (definitions.length > schedulerLimits.cronsMax) {
    throw new RangeError(`there are more than ${schedulerLimits.cronsMax} crons`);
  }
  return definitions.map((definition) => checked(definition, functions));
}

function checked(
  { name, schedule, function: path, args }: CronDefinition,
  functions: ReadonlyMap<string, LoadedFunction>,
): WireCron {
  if (schedule.kind === "expression") {
    const fault = cronExpressionFault(schedule.expression);
    if (fault !== null) throw new TypeError(`cron "${name}": "${schedule.expression}": ${fault}`);
  }
  const callee = functions.get(path);
  if (callee === undefined || callee.system || path.length > functionLimits.udfPathCharsMax) {
    throw new TypeError(`cron "${name}": there is no function "${path}"`);
  }
  const { kind, args: argsSchema } = callee.spec;
  if (kind === "query") {
    throw new TypeError(`cron "${name}": "${path}" is a query: only mutations and actions can be crons`);
  }
  const text = jsonText(args, `the arguments of cron "${name}"`);
  if (text.length > schedulerLimits.argsCharsMax) {
    throw new RangeError(
      `the arguments of cron "${name}" have more than ${schedulerLimits.argsCharsMax} characters`,
    );
  }
  const ownArgs = parse(text) as Record<string, unknown>;
  const parsed = argsSchema?.safeParse(ownArgs);
  if (parsed?.success === false) {
    throw new TypeError(`cron "${name}": ${issueText(parsed.error, "args")}`);
  }
  return { name, schedule, function: path, functionKind: kind, args: ownArgs };
}

/** Formats an import error of `name`: `messages.ts:3:7: message`, then the stack. */
function loadErrorMessage(name: string, thrown: unknown): string {
  if (!(thrown instanceof Error)) return `${name} threw a value that is not an Error: ${inspected(thrown)}`;
  // Messages of the runtime end with the importing locations, which are in the stack too.
  const lines = relativeToFunctions(importMessage(thrown.message)).slice(0, functionLimits.errorCharsMax)
    .split("\n");
  const message = lines.filter((line) => !/^\s+(at|hint:) /.test(line)).join("\n");
  const frames = [...new Set(cleanStack(thrown.stack).split("\n"))].filter((frame) => frame !== "");
  const place = /(?:\(|at (?:async )?)([^()]+:\d+:\d+)\)?$/.exec(frames[0] ?? "")?.[1] ?? name;
  const trace = frames.length > 1 ? `\n${frames.join("\n")}` : "";
  return `${place}: ${message}${hint(thrown)}${trace}`;
}

function hint(error: Error): string {
  const { message, stack = "" } = error;
  // In an app's own tests. In a bundle such an export is undefined.
  if (error instanceof ReferenceError && /before initialization/.test(message)) {
    return " (modules that import each other in a circle cannot use each other's exports while they load: move what both need into a third module)";
  }
  // The frame that threw, if it is in a package.
  const place = /^\s+at .*?(app:\/\/\/.+:\d+:\d+)/m.exec(stack)?.[1] ?? "";
  return place.includes("/node_modules/") && !message.includes("/node_modules/") ? ` (in ${place})` : "";
}

/** Thrown if an app cannot be served. The message names the file and the fix. */
export class BrokenAppError extends Error {
  override readonly name = "BrokenAppError";
}

/** A loaded app, with its tables and those of the service. */
export interface LoadedApp extends App, AppRoutes {
  readonly schema: SchemaDefinition;
  readonly crons: readonly WireCron[];
}

export interface AppModule {
  /** Name in error messages. */
  readonly name: string;
  /** Path prefix of its functions. Empty for the root. */
  readonly modulePath: string;
  readonly exports: Readonly<Record<string, unknown>>;
  /** Doc comments by the name of the export. Absent if the module was not bundled. */
  readonly docs?: Readonly<Record<string, string>>;
}

interface LoadableModule extends Omit<AppModule, "exports"> {
  readonly load: () => Promise<Readonly<Record<string, unknown>>>;
}

/** The default export of a bundle (`mod/functions/packages`). */
type BundledModules = readonly (readonly [
  name: string,
  modulePath: string,
  load: LoadableModule["load"],
  docs?: NonNullable<AppModule["docs"]>,
])[];

/**
 * Loads an app from its bundle with the modules of the service, and the JavaScript of a query that is not part of it.
 * @throws BrokenAppError
 */
export async function loadBundle(
  path: string,
  systemModules: readonly SystemModule[],
  adHocQuery?: string,
): Promise<LoadedApp> {
  const bundle = await imported("The app", () => import(fileUrl(path)));
  const modules = (bundle["default"] as BundledModules).map(
    ([name, modulePath, load, docs]) => ({ name, modulePath, load, ...(docs && { docs }) }),
  );
  const added = adHocQuery === undefined
    ? []
    : [{ ...AD_HOC_MODULE, load: async () => ({ query: await adHocFunction(adHocQuery) }) }];
  return await loadModules([...modules, ...added], systemModules);
}

/** Loads a module whose default export is the handler of a query, or a query. Its imports are those of app code. */
async function adHocFunction(code: string): Promise<unknown> {
  const url = `data:text/javascript;base64,${new TextEncoder().encode(code).toBase64()}`;
  const { default: exported } = await import(url) as { readonly default?: unknown };
  if (typeof exported === "function") return untypedInternalQuery({ handler: exported as () => unknown });
  if (functionSpec(exported)?.kind === "query") return exported;
  throw new TypeError(
    'the query must be a function, such as async (ctx) => await ctx.db.query("orders").take(10)',
  );
}

/** Loads an app from its functions folder with the modules of the service. @throws BrokenAppError */
export async function loadApp(
  functionsDir: string,
  systemModules: readonly SystemModule[],
): Promise<LoadedApp> {
  let files: ModuleFile[];
  try {
    files = findModules(functionsDir);
  } catch (error) {
    throw new BrokenAppError(
      `Cannot read the functions folder: ${error instanceof Error ? error.message : error}`,
    );
  }
  return await loadModules(
    files.map(({ file, ...names }) => ({ ...names, load: () => import(fileUrl(file)) })),
    systemModules,
  );
}

async function loadModules(
  loadable: readonly LoadableModule[],
  systemModules: readonly SystemModule[],
): Promise<LoadedApp> {
  // Ignores ids named by other apps in this process.
  const namedBefore = new Set(tablesNamedByIds());
  const modules: AppModule[] = [];
  for (const { load, ...module } of loadable) {
    modules.push({ ...module, exports: await imported(module.name, load) });
  }
  const named = [...tablesNamedByIds()].filter((table) => !namedBefore.has(table));
  return assembleApp(modules, { systemModules, named });
}

/** Assembles an app from loaded modules. `named` are the tables that their `id()` calls name. */
export function assembleApp(
  modules: readonly AppModule[],
  { systemModules, named }: {
    readonly systemModules: readonly SystemModule[];
    readonly named: readonly string[];
  },
): LoadedApp {
  const functions = new Map<string, LoadedFunction>();
  for (const { path, functions: exports } of systemModules) {
    register(functions, { modulePath: path, name: path, exports, system: true });
  }
  let schema: SchemaDefinition | null = null;
  for (const module of modules) {
    if (module.modulePath === "schema") schema = schemaOf(module);
    if (module.modulePath === "schema" || module.modulePath === "http" || module.modulePath === "crons") {
      continue;
    }
    register(functions, { ...module, system: false });
  }
  if (schema !== null) checkNamedTables(schema, named);
  const cronModule = modules.find(({ modulePath }) => modulePath === "crons");
  const httpModule = modules.find(({ modulePath }) => modulePath === "http");
  const profile = profileOf(modules.find(({ modulePath }) => modulePath === authHooksModule));
  const system = profile === null ? systemTables(systemModules) : withProfile(systemModules, profile);
  const access = adminAccess(systemModules);
  return {
    functions,
    tables: new AppTables({ app: schema, system, profiled: profile !== null }),
    ...(profile && { profile }),
    ...(access && { adminAccess: access }),
    schema: new Map([...system, ...schema ?? []]),
    ...(httpModule === undefined ? noRoutes : declared(httpModule, appRoutes)),
    crons: cronModule === undefined ? [] : declared(cronModule, (exported) => appCrons(exported, functions)),
  };
}

/** The URL of an absolute path. */
export function fileUrl(path: string): string {
  return pathToFileURL(path).href;
}

async function imported(
  name: string,
  load: LoadableModule["load"],
): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await load();
  } catch (error) {
    throw new BrokenAppError(loadErrorMessage(name, error));
  }
}

function schemaOf({ name, exports }: AppModule): SchemaDefinition {
  const schema = schemaDefinition(exports["default"]);
  if (schema !== null) return schema;
  throw new BrokenAppError(
    `${name} must export the schema as its default: export default defineSchema({ messages: defineTable({ ... }) })`,
  );
}

/** Returns the profile of users, if defined. */
function profileOf(module: AppModule | undefined): ProfileBuilder | null {
  const exported = module === undefined || !Object.hasOwn(module.exports, profileExport)
    ? undefined
    : valueOf(module.exports, { exportName: profileExport, name: module.name });
  // An app may have a function of this name.
  if (exported === undefined || functionSpec(exported) !== undefined) return null;
  if (exported instanceof ProfileBuilder) return exported;
  throw new BrokenAppError(
    `${module?.name}: ${profileExport} has to be made by defineProfile({ ... }): it says what the app keeps of its users`,
  );
}

/** The service's tables, with the app's profile in `_users`. */
function withProfile(systemModules: readonly SystemModule[], profile: ProfileBuilder): SchemaDefinition {
  return systemTables(systemModules.map((module) => {
    const users = module.tables["_users"];
    if (users === undefined) return module;
    try {
      return { ...module, tables: { ...module.tables, _users: ProfileBuilder.extend(profile, users) } };
    } catch (error) {
      throw new BrokenAppError(`auth.ts: ${error instanceof Error ? error.message : inspected(error)}`);
    }
  }));
}

/** Parses a module's default export. Errors name the module. */
function declared<Result>({ name, exports }: AppModule, read: (exported: unknown) => Result): Result {
  try {
    return read(exports["default"]);
  } catch (error) {
    throw new BrokenAppError(`${name}: ${error instanceof Error ? error.message : inspected(error)}`);
  }
}

function register(
  functions: Map<string, LoadedFunction>,
  { modulePath, name, exports, docs = {}, system }: AppModule & { readonly system: boolean },
): void {
  for (const exportName of Object.keys(exports)) {
    const spec = functionSpec(valueOf(exports, { exportName, name }));
    if (spec === undefined) continue;
    const udfPath = modulePath === "" ? exportName : `${modulePath}:${exportName}`;
    if (udfPath.length > functionLimits.udfPathCharsMax) {
      throw new BrokenAppError(
        `${name}: the path of "${exportName}" has more than ${functionLimits.udfPathCharsMax} characters`,
      );
    }
    if (!system && isSystemPath(udfPath)) {
      throw new BrokenAppError(`${name}: paths that begin with _ belong to the service`);
    }
    const isHook = !system && modulePath === authHooksModule && authHooks.has(exportName);
    if (isHook && (spec.kind !== "mutation" || spec.visibility !== "internal")) {
      throw new BrokenAppError(
        `${name}: ${exportName} has to be an internalMutation: the service alone calls it`,
      );
    }
    const doc = Object.hasOwn(docs, exportName) ? docs[exportName] : undefined;
    functions.set(udfPath, { udfPath, spec, system, ...(doc !== undefined && { doc }) });
  }
}

/** Reads an export. In an import cycle it may not have a value yet. */
function valueOf(
  exports: Readonly<Record<string, unknown>>,
  { exportName, name }: { readonly exportName: string; readonly name: string },
): unknown {
  try {
    return exports[exportName];
  } catch (error) {
    throw new BrokenAppError(`${name}: the export "${exportName}" has no value: ${inspected(error)}`);
  }
}

function checkNamedTables(schema: SchemaDefinition, named: readonly string[]): void {
  for (const table of named) {
    if (!schema.has(table) && !table.startsWith("_")) {
      throw new BrokenAppError(
        `id("${table}") names a table that schema.ts does not have; its tables are ${
          [...schema.keys()].join(", ")
        }`,
      );
    }
  }
}
