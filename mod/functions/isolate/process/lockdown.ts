/** Restricts app code before it loads: protects our side of the process and enforces the rules with helpful errors. */
import { DatabaseSync, StatementSync } from "node:sqlite";
import type { IsolateRole } from "../../wire/messages.ts";
import { appProcess } from "./app_process.ts";
import { provideModules } from "../app/author_modules.ts";
import { freezeSharedClasses } from "./shared_classes.ts";
import { closeDescriptors, connecting, fetching, startingTls } from "./descriptors.ts";
import { recordGlobals } from "./globals.ts";
import { installDeterminism } from "./determinism.ts";
import { captureConsole } from "../ctx/log_api.ts";
import type { LogLevel } from "../ctx/log_lines.ts";

export interface LockdownOptions {
  readonly role: IsolateRole;
  /** Environment of the app. */
  readonly env: Readonly<Record<string, string>>;
  /** Called with console output of app code. */
  readonly print: (level: LogLevel, values: unknown[]) => void;
  /** Called with the name of a missing variable of `process.env`. Returns `true` to stop reports of that name. */
  readonly onMissingEnv: (name: string) => boolean;
}

const globals = globalThis as unknown as Record<string, unknown>;

/** Browser functions that make no sense in a server, or would end the process. */
const refusedEverywhere = ["alert", "confirm", "prompt", "close", "Worker"];

/** APIs that use timers or the network. */
const refusedInTransactions = [
  "fetch",
  "WebSocket",
  "EventSource",
  "setTimeout",
  "setInterval",
  "setImmediate",
];

/** Disk storage outside our data, threads, devices. */
const removedEverywhere = [
  "localStorage",
  "sessionStorage",
  "caches",
  "CacheStorage",
  "Storage",
  "BroadcastChannel",
  "WorkerGlobalScope",
  "GPU",
];

/** Could keep the event loop alive, and are of no use in a transaction. */
const removedInTransactions = ["MessageChannel", "MessagePort"];

/** Network functions of `Deno` for runners. */
const denoOfRunners = new Set(["connect", "connectTls", "startTls", "resolveDns"]);

/** Applies all restrictions. Called once. */
export function lockDown({ role, env, print, onMissingEnv }: LockdownOptions): void {
  const transactional = role !== "runner";
  const visibleEnv = transactional ? {} : env;
  lockDatabase();
  for (const name of refusedEverywhere) {
    if (name in globals) set(name, refusal(`${name}() is not available in functions`));
  }
  for (const name of removedEverywhere) delete globals[name];
  if (transactional) {
    for (const name of refusedInTransactions) {
      set(name, refusal(`${name} is not available in queries and mutations: use it in an action`));
    }
    for (const name of removedInTransactions) delete globals[name];
    installDeterminism();
  } else {
    closeDescriptors();
    set("fetch", fetching(fetch));
  }
  set("console", captureConsole(console, print));
  const process = appProcess(visibleEnv, onMissingEnv);
  set("process", process);
  provideModules(process);
  set("navigator", Object.freeze({ userAgent: navigator.userAgent, language: "en", languages: ["en"] }));
  set("Deno", appDeno(visibleEnv, transactional ? new Set() : denoOfRunners));
  lockIntrinsics();
  freezeSharedClasses();
  recordGlobals();
}

function set(name: string, value: unknown): void {
  Object.defineProperty(globals, name, { value, writable: true, enumerable: false, configurable: true });
}

/** A function, also usable as a class, that throws. */
function refusal(message: string): (...args: unknown[]) => never {
  return function () {
    throw new TypeError(message);
  };
}

/** Keeps app code from reaching the engine's statements through their classes. */
function lockDatabase(): void {
  for (const prototype of [DatabaseSync.prototype, StatementSync.prototype]) {
    Reflect.deleteProperty(prototype, "constructor");
    Object.freeze(prototype);
  }
}

/** Wraps a network function so that it handles only connections of app code. */
function guarded(name: string, original: unknown): unknown {
  if (typeof original !== "function" || name === "resolveDns") return original;
  const call = original as (...args: unknown[]) => unknown;
  return name === "startTls" ? startingTls(call) : connecting(call);
}

/** A harmless `Deno`. The runtime internals attached to the original are not reachable from it. */
function appDeno(env: Readonly<Record<string, string>>, open: ReadonlySet<string>): object {
  const original = Deno as unknown as Record<string, unknown>;
  const visible: Record<string, unknown> = {};
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(original))) {
    if (open.has(name)) visible[name] = guarded(name, original[name]);
    else if (descriptor.get !== undefined || typeof descriptor.value === "function") {
      visible[name] = refusal(`Deno.${name} is not available to app code`);
    }
  }
  return Object.freeze({
    ...visible,
    version: Object.freeze({ ...Deno.version }),
    build: Object.freeze({ ...Deno.build }),
    errors: Object.freeze({ ...Deno.errors }),
    inspect: Deno.inspect,
    noColor: true,
    args: Object.freeze([]),
    env: Object.freeze({
      get: (name: string) => env[name],
      has: (name: string) => env[name] !== undefined,
      toObject: () => ({ ...env }),
      set: refusal("Deno.env.set is not available to app code"),
      delete: refusal("Deno.env.delete is not available to app code"),
    }),
  });
}

/**
 * Locks the built-ins that our code uses, above all `Map` and `WeakMap`, through which our handles pass. `Array.prototype`,
 * `Promise.prototype` and the iterators stay open until the app is loaded (intrinsics.ts). Patching them before that reveals
 * values of this process, but no way out of it.
 */
function lockIntrinsics(): void {
  for (const object of [JSON, Math, Reflect, Atomics]) lockMethods(object);
  for (const { prototype } of lockedClasses) lockMethods(prototype);
  const typedArray = Object.getPrototypeOf(Uint8Array) as { prototype: object };
  lockMethods(typedArray.prototype);
  lockMethods(Object);
  // A toJSON added here would appear on every object we serialize.
  Object.preventExtensions(Object.prototype);
  // Our code checks every thrown value with instanceof Error.
  Object.defineProperty(Error, Symbol.hasInstance, { value: Function.prototype[Symbol.hasInstance] });
  for (const name of lockedGlobals) {
    const descriptor = Object.getOwnPropertyDescriptor(globals, name);
    if (descriptor !== undefined && "value" in descriptor) {
      Object.defineProperty(globals, name, { writable: false, configurable: false });
    }
  }
}

const lockedClasses: readonly { readonly prototype: object }[] = [
  ArrayBuffer,
  BigInt,
  DataView,
  Date,
  Map,
  Number,
  Set,
  String,
  Symbol,
  TextDecoder,
  TextEncoder,
  WeakMap,
  WeakSet,
];

/** Makes methods constant except `constructor` and `toString`. Restores the fast property layout of prototypes. */
function lockMethods(object: object): void {
  for (const key of Reflect.ownKeys(object)) {
    const descriptor = Object.getOwnPropertyDescriptor(object, key);
    if (
      key === "constructor" || key === "toString" || key === "toJSON" || descriptor?.configurable !== true
    ) continue;
    Object.defineProperty(
      object,
      key,
      "value" in descriptor ? { writable: false, configurable: false } : { configurable: false },
    );
  }
  Object.create(object);
}

/** Globals that our code uses while calls run. */
const lockedGlobals = [
  "Array",
  "ArrayBuffer",
  "BigInt",
  "Boolean",
  "DataView",
  "Date",
  "Deno",
  "Error",
  "Float32Array",
  "Float64Array",
  "Function",
  "JSON",
  "Map",
  "Math",
  "Number",
  "Object",
  "Promise",
  "Proxy",
  "RangeError",
  "Reflect",
  "RegExp",
  "Set",
  "String",
  "Symbol",
  "TextDecoder",
  "TextEncoder",
  "TypeError",
  "URL",
  "Uint8Array",
  "Uint32Array",
  "WeakMap",
  "WeakSet",
  "console",
  "globalThis",
  "performance",
  "process",
  "queueMicrotask",
  "structuredClone",
];
