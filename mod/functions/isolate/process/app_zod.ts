/** App code's zod: the service's module under another address, frozen after loading, so that patches do not last. */
import type * as zodModule from "zod";
import { declareWith } from "../../api/current_zod.ts";
import { appImporter } from "./import_as_app.ts";

type ZodModule = typeof zodModule;
type Zod = ZodModule["z"];

const SHARED = ["__zod_globalConfig", "__zod_globalRegistry"] as const;

const globals = globalThis as unknown as Record<string, unknown>;
const { defineProperty, freeze, getOwnPropertyDescriptors, getPrototypeOf } = Object;
const { ownKeys } = Reflect;

/** Set by {@linkcode loadAppZod}. */
let loaded: ZodModule | null = null;

/** Loads the instance. Call before app code is loaded, with the import map for app code. Later declarations use it. */
export async function loadAppZod(): Promise<void> {
  // Each instance keeps what it finds under these names at load time. The service's instance is already loaded.
  for (const name of SHARED) delete globals[name];
  const importAsApp = await appImporter();
  loaded = await importAsApp("zod") as unknown as ZodModule;
  // Read whenever a schema is created, by the service's instance as well.
  defineProperty(globals, "__zod_globalConfig", { value: freeze({}), writable: false, configurable: false });
  declareWith(loaded.z);
  // A kind creates its members with its first schema. Doing that here saves time when the app is loaded.
  for (const make of samples(loaded.z)) tried(make);
}

/** Freezes the instance. Called once, after the app is loaded: packages may extend it until then. */
export function closeAppZod(): void {
  if (loaded === null) return;
  const { z } = loaded;
  // Members of a schema kind are created with the first schema. They could not be created on a frozen prototype.
  for (const make of samples(z)) {
    const sample = tried(make);
    if (sample === undefined) continue;
    closeKind(sample);
  }
  const error = z.string().safeParse(0).error;
  if (error !== undefined) closeKind(error as unknown as Kind);
  for (const space of [loaded, z] as readonly object[]) {
    for (const key of ownKeys(space)) {
      const value = (space as Record<PropertyKey, unknown>)[key];
      if (typeof value !== "function") continue;
      freeze(value);
      if (/^_?Zod/.test(String(key))) freeze(value.prototype);
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

/** A schema, or an object created like one. */
interface Kind {
  readonly _zod: object;
}

function closeKind(sample: Kind): void {
  freeze(getPrototypeOf(sample));
  freeze(getPrototypeOf(sample._zod));
}

function tried(make: () => unknown): Kind | undefined {
  try {
    const made = make();
    return typeof made === "object" && made !== null && "_zod" in made ? made as Kind : undefined;
  } catch {
    return undefined;
  }
}

/** Names of functions that use schemas instead of creating them. */
const WORKING =
  /parse|encode|decode|validate|clone|compile|config|registry|memoizer|error|json|output|input/i;

/** Yields a factory per schema kind. Kinds without arguments are discovered automatically. */
function* samples(z: Zod): Generator<() => unknown> {
  const text = z.string();
  const object = z.object({ a: z.literal("a") });
  const special: Readonly<Record<string, () => unknown>> = {
    array: () => z.array(text),
    object: () => object,
    union: () => z.union([text]),
    xor: () => z.xor([text]),
    discriminatedUnion: () => z.discriminatedUnion("a", [object]),
    intersection: () => z.intersection(text, text),
    tuple: () => z.tuple([text]),
    record: () => z.record(text, text),
    map: () => z.map(text, text),
    set: () => z.set(text),
    enum: () => z.enum(["a"]),
    literal: () => z.literal("a"),
    optional: () => z.optional(text),
    exactOptional: () => z.exactOptional(text),
    nullable: () => z.nullable(text),
    default: () => text.default("a"),
    prefault: () => text.prefault("a"),
    nonoptional: () => z.nonoptional(text),
    success: () => z.success(text),
    catch: () => text.catch("a"),
    pipe: () => z.pipe(text, text),
    codec: () => z.codec(text, text, { decode: (value) => value, encode: (value) => value }),
    preprocess: () => z.preprocess((value) => value, text),
    readonly: () => z.readonly(text),
    templateLiteral: () => z.templateLiteral(["a"]),
    lazy: () => z.lazy(() => text),
    promise: () => z.promise(text),
    transform: () => z.transform((value) => value),
    custom: () => z.custom(() => true),
    stringFormat: () => z.stringFormat("a", /a/),
    hash: () => z.hash("sha256"),
    isoDate: () => z.iso.date(),
    isoDateTime: () => z.iso.datetime(),
    isoDuration: () => z.iso.duration(),
    isoTime: () => z.iso.time(),
    checks: () => z.minLength(1),
  };
  yield* Object.values(special);
  for (const key of Object.keys(z)) {
    const make = (z as unknown as Record<string, unknown>)[key];
    if (typeof make !== "function" || !/^[a-z]/.test(key) || key in special || WORKING.test(key)) continue;
    yield () => make();
  }
}
