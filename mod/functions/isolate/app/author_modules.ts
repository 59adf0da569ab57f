/**
 * Modules of ours that app code imports. They are handed over in memory: their files cannot be read from an isolate, and
 * need not be. The import map turns `syncline/server` and the like into a line that takes them from here.
 */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { userEventFields } from "../../api/auth_hooks.ts";
import { paginationSchema } from "../../api/pagination.ts";
import * as serverApi from "../../api/mod.ts";

/** Where the import map's modules find theirs. */
export const registryKey = "syncline.modules";

/** `node:async_hooks` without the hooks, which show the resources of other code. */
const asyncHooks = { AsyncLocalStorage, AsyncResource, default: { AsyncLocalStorage, AsyncResource } };

/** What of `process` is exported by name. */
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

/** The modules by specifier. */
function modules(
  process: Readonly<Record<string, unknown>>,
): Record<string, Readonly<Record<string, unknown>>> {
  return {
    "syncline/server": { ...serverApi, paginationOpts: paginationSchema(), userEvent: userEventFields() },
    "node:async_hooks": asyncHooks,
    "node:process": {
      ...Object.fromEntries(processNames.map((name) => [name, process[name]])),
      default: process,
    },
  };
}

/** Lays the modules out for app code; `process` is what it gets under that name. */
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
