/** App code's zod: the service's module under another address, frozen after loading, so that patches do not last. */
import type * as zodModule from "zod";
import { declareWith } from "../../api/current_zod.ts";
import { appImporter } from "./import_as_app.ts";

type ZodModule = typeof zodModule;

const SHARED = ["__zod_globalConfig", "__zod_globalRegistry"] as const;

const globals = globalThis as unknown as Record<string, unknown>;
const { defineProperty, freeze, getOwnPropertyDescriptors, getPrototypeOf } = Object;
const { ownKeys } = Reflect;

/** A schema, a check or an error of zod. Its _kind_ is its constructor. */
interface Made {
  readonly _zod: { readonly constr: { readonly prototype: object }; readonly traits: ReadonlySet<string> };
}

/** Set by {@linkcode loadAppZod}. */
let loaded: ZodModule | null = null;
/** The first of each kind that was made before the instance is frozen. `null` afterwards. */
let made: Made[] | null = [];
const kinds = new WeakSet<object>();

/** Loads the instance. Call before app code is loaded, with the import map for app code. Later declarations use it. */
export async function loadAppZod(): Promise<void> {
  // Each instance keeps what it finds under these names at load time. The service's instance is already loaded.
  for (const name of SHARED) delete globals[name];
  const importAsApp = await appImporter();
  loaded = await importAsApp("zod") as unknown as ZodModule;
  // Read whenever a schema is created, by the service's instance as well.
  defineProperty(globals, "__zod_globalConfig", {
    value: freeze({ postProcessor: freeze(noteKind) }),
    writable: false,
    configurable: false,
  });
  declareWith(loaded.z);
}

/** Called by zod with each schema, check and error, once it is complete. */
function noteKind(one: Made): void {
  const { constr } = one._zod;
  if (kinds.has(constr)) return;
  kinds.add(constr);
  if (made === null) closeKind(one);
  else made.push(one);
}

/** A kind creates its members with the first one of it, which is not possible on a frozen prototype. */
function closeKind(one: Made): void {
  // Members of errors are on a prototype of their own.
  freeze(one instanceof Error ? getPrototypeOf(one) : one._zod.constr.prototype);
  freeze(getPrototypeOf(one._zod));
}

/**
 * Freezes the instance. Called once, after the app is loaded: packages may extend it until then. A kind that is not used yet
 * has no members, and is frozen with the first one of it: making one of each kind takes 20 ms.
 */
export function closeAppZod(): void {
  if (loaded === null || made === null) return;
  const { z } = loaded;
  // Other kinds consist of these.
  const text = z.string();
  for (const one of [z.number(), z.bigint(), z.union([text]), z.pipe(text, text), z.custom()]) {
    one.safeParse(1);
  }
  const traits = new Set<string>();
  for (const one of made) {
    closeKind(one);
    one._zod.traits.forEach((trait) => traits.add(trait));
  }
  made = null;
  for (const space of [loaded, z] as readonly object[]) {
    for (const key of ownKeys(space)) {
      const value = (space as Record<PropertyKey, unknown>)[key];
      if (typeof value !== "function") continue;
      freeze(value);
      if (traits.has(String(key))) freeze(value.prototype);
    }
  }
  freeze(z.config());
  freeze(getPrototypeOf(z.registry()));
  closeNames(loaded, new Set());
}

/** zod's single-module build has namespaces as plain objects. Freezes them like module namespaces. */
function closeNames(space: object, closed: Set<object>): void {
  for (const key of ownKeys(space)) {
    const value = (space as Record<PropertyKey, unknown>)[key];
    if (typeof value !== "object" || value === null || closed.has(value) || !holdsNames(value)) continue;
    closed.add(freeze(value));
    closeNames(value, closed);
  }
}

/** Namespaces are the only objects with getters only. */
function holdsNames(value: object): boolean {
  const descriptors = Object.values(getOwnPropertyDescriptors(value));
  return descriptors.length > 0 &&
    descriptors.every(({ get, enumerable }) => get !== undefined && enumerable);
}
