/** App code's zod: the service's module under another address, frozen after loading, so that patches do not last. */
import type * as zodModule from "zod";
import { declareWith } from "../../api/current_zod.ts";
import { appImporter } from "./import_as_app.ts";

type ZodModule = typeof zodModule;

const SHARED = ["__zod_globalConfig", "__zod_globalRegistry"] as const;

const globals = globalThis as unknown as Record<string, unknown>;
const { defineProperty, freeze, getPrototypeOf, preventExtensions } = Object;
const { deleteProperty, ownKeys } = Reflect;
const LANGUAGE: readonly object[] = [Object.prototype, Array.prototype, RegExp.prototype];

/** Set by {@linkcode loadAppZod}. */
let loaded: ZodModule | null = null;
/** The constructor of each kind of schema, check and error, and hidden prototypes. `null` once they are frozen. */
let shared: object[] | null = [];

/** Loads the instance. Call before app code is loaded, with the import map for app code. Later declarations use it. */
export async function loadAppZod(): Promise<void> {
  // Each instance keeps what it finds under these names at load time. The service's instance is already loaded.
  for (const name of SHARED) delete globals[name];
  // Called for the kinds of packages as well.
  globals["__zod_onKind"] = (...objects: object[]) => {
    shared?.push(...objects);
  };
  // Changes even frozen regular expressions.
  deleteProperty(RegExp.prototype, "compile");
  const importAsApp = await appImporter();
  loaded = await importAsApp("zod") as unknown as ZodModule;
  delete globals["__zod_onKind"];
  // Read whenever a schema is created, by the service's instance as well.
  defineProperty(globals, "__zod_globalConfig", { value: freeze({}), writable: false, configurable: false });
  declareWith(loaded.z);
}

/**
 * Freezes the instance. Called once, after the app is loaded: packages may extend it until then. A kind that is not used yet
 * has no members on its prototypes; its schemas get them from other objects (`mod/build/isolate_zod.ts`).
 */
export function closeAppZod(): void {
  if (loaded === null || shared === null) return;
  const { z } = loaded;
  // Schemas of frequent kinds need no other objects. These also set the defaults of the configuration.
  const text = z.string();
  for (const one of [z.number(), z.union([text]), z.array(text), z.object({ text }), z.custom()]) {
    one.safeParse(1);
  }
  for (const Kind of [z.ZodError, z.ZodRealError, z.core.$ZodError, z.core.$ZodRealError]) new Kind([]);
  for (const object of shared) {
    freeze(object);
    if (typeof object === "function") freeze((object as { readonly prototype: object }).prototype);
  }
  shared = null;
  for (const value of Object.values(freeze(z.config()))) freeze(value);
  closeNames(loaded, new Set());
}

/** zod's single-module build has namespaces as plain objects. Freezes them like module namespaces, and their values. */
function closeNames(space: object, closed: Set<object>): void {
  for (const key of ownKeys(space)) {
    const value = (space as Record<PropertyKey, unknown>)[key];
    if (typeof value === "function") {
      freeze(value);
      if (typeof value.prototype === "object") freeze(value.prototype);
    } else if (typeof value === "object" && value !== null && !closed.has(value)) {
      closed.add(value);
      const prototype = getPrototypeOf(value) as object;
      if (!LANGUAGE.includes(prototype)) freeze(prototype);
      // A registry is a store of the app, like its variables: clearing it replaces its maps.
      if (value === loaded?.globalRegistry) preventExtensions(value);
      else freeze(value);
      closeNames(value, closed);
    }
  }
}
