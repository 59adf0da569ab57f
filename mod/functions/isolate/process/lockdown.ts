/**
 * Closes what app code must not reach, before any of it is loaded. Permissions are what keeps app code from the machine;
 * this keeps it from our own side of the process, from ending it, and from what queries and mutations must not do, and
 * gives each refusal a message that says where the thing belongs.
 */
import { DatabaseSync, StatementSync } from "node:sqlite";
import type { IsolateRole } from "../../wire/messages.ts";
import { appProcess } from "./app_process.ts";
import { provideModules } from "../app/author_modules.ts";
import { freezeSharedClasses } from "./shared_classes.ts";
import { closeDescriptors, connecting, fetching, startingTls } from "./descriptors.ts";
import { noteGlobals } from "./globals.ts";
import { installDeterminism } from "./determinism.ts";
import { captureConsole } from "../ctx/log_api.ts";
import type { LogLevel } from "../ctx/log_lines.ts";

export interface LockdownOptions {
  readonly role: IsolateRole;
  /** Environment of the app. */
  readonly env: Readonly<Record<string, string>>;
  /** Gets what app code prints. */
  readonly print: (level: LogLevel, values: unknown[]) => void;
  /** Told of a name that `process.env` was asked for in vain; `true` when that was all there is to say of it. */
  readonly onMissingEnv: (name: string) => boolean;
}

const globals = globalThis as unknown as Record<string, unknown>;

/** Functions of the page that make no sense in a server, or would end it. */
const refusedEverywhere = ["alert", "confirm", "prompt", "close", "Worker"];

/** What acts over time or over the network. */
const refusedInTransactions = [
  "fetch",
  "WebSocket",
  "EventSource",
  "setTimeout",
  "setInterval",
  "setImmediate",
];

/** Storage on disk outside our data, other threads, devices. */
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

/** They could keep the event loop alive unseen, and nothing in a transaction has a use for them. */
const removedInTransactions = ["MessageChannel", "MessagePort"];

/** What runners may use of `Deno`: the network. */
const denoOfRunners = new Set(["connect", "connectTls", "startTls", "resolveDns"]);

/** Closes everything. Called once. */
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
  noteGlobals();
}

function set(name: string, value: unknown): void {
  Object.defineProperty(globals, name, { value, writable: true, enumerable: false, configurable: true });
}

/** A function, usable as a class too, that throws. */
function refusal(message: string): (...args: unknown[]) => never {
  return function () {
    throw new TypeError(message);
  };
}

/** The statements of the engine are in its hands only; their classes must not be turned into a way to them. */
function lockDatabase(): void {
  for (const prototype of [DatabaseSync.prototype, StatementSync.prototype]) {
    Reflect.deleteProperty(prototype, "constructor");
    Object.freeze(prototype);
  }
}

/** A function of the network that takes and gives no connections but those of app code. */
function guarded(name: string, original: unknown): unknown {
  if (typeof original !== "function" || name === "resolveDns") return original;
  const call = original as (...args: unknown[]) => unknown;
  return name === "startTls" ? startingTls(call) : connecting(call);
}

/** `Deno` with what is harmless. The runtime's internals, which hang on the original, are gone with it. */
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
 * Makes what our code uses unchangeable: `Map` and `WeakMap` above all, through which our handles pass. `Array.prototype`,
 * `Promise.prototype` and the iterators are open until the app is loaded (intrinsics.ts). What patches them before then is
 * shown values that pass through its own process, and no way out of it.
 */
function lockIntrinsics(): void {
  for (const object of [JSON, Math, Reflect, Atomics]) lockMethods(object);
  for (const { prototype } of lockedClasses) lockMethods(prototype);
  const typedArray = Object.getPrototypeOf(Uint8Array) as { prototype: object };
  lockMethods(typedArray.prototype);
  lockMethods(Object);
  // What is added here stands on every object: a toJSON would turn up in all that we write.
  Object.preventExtensions(Object.prototype);
  // Our code asks of every thrown value whether it is an Error.
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

/**
 * Methods become constant. `constructor` and `toString` stay: assigning them on an heir must go on working. An object that
 * becomes a prototype is laid out for reading again, which the changes had undone: its methods are found twice as fast.
 */
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

/** Globals that our code names while calls run. */
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
