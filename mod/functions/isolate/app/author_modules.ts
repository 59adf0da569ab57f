/** Our modules for app code, passed in memory. The import map turns `syncline/server` and others into JavaScript. */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { authEventFields } from "../../api/auth_hooks.ts";
import { paginationSchema } from "../../api/pagination.ts";
import * as serverApi from "../../api/mod.ts";

/** Symbol key under which the import map's modules find them. */
export const registryKey = "syncline.modules";

/** `node:async_hooks` without hooks, which expose resources of other code. */
const asyncHooks = { AsyncLocalStorage, AsyncResource, default: { AsyncLocalStorage, AsyncResource } };

/** Named exports of `node:process`. */
const processNames = [
  "arch",
  "argv",
  "cwd",
  "emitWarning",
  "env",
  "exit",
  "nextTick",
  "off",
  "on",
  "once",
  "pid",
  "platform",
  "version",
  "versions",
];

function modules(
  process: Readonly<Record<string, unknown>>,
): Record<string, Readonly<Record<string, unknown>>> {
  return {
    "syncline/server": {
      ...serverApi,
      paginationOpts: paginationSchema(),
      authEventArgs: authEventFields(),
      userEvent: authEventFields(),
    },
    "node:async_hooks": asyncHooks,
    "node:process": {
      ...Object.fromEntries(processNames.map((name) => [name, process[name]])),
      default: process,
    },
  };
}

/** Makes the modules available to app code. */
export function provideModules(process: Readonly<Record<string, unknown>>): void {
  Object.defineProperty(globalThis, Symbol.for(registryKey), { value: Object.freeze(modules(process)) });
}

/** Import map entries: JavaScript that exports each module under its own names. */
export function moduleAddresses(): Map<string, string> {
  return new Map(
    Object.entries(modules({})).map((
      [specifier, exports],
    ) => [specifier, addressOf(specifier, Object.keys(exports))]),
  );
}

function addressOf(specifier: string, names: readonly string[]): string {
  const source = `const m=globalThis[Symbol.for("${registryKey}")]["${specifier}"];`;
  const named = names.filter((name) => name !== "default").sort();
  const byName = `export const{${named.join()}}=m;`;
  return `data:text/javascript,${source}${byName}${
    names.includes("default") ? "export default m.default;" : ""
  }`;
}
