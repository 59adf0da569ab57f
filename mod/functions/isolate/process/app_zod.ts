/**
 * The zod that app code imports: another instance than the service's own, from the same module under another address. What its
 * prototypes and its configuration are is settled when the app is loaded; what a call patches is nothing to the next one.
 */
import type * as zodModule from "zod";
import { declareWith } from "../../api/current_zod.ts";
import { appImporter } from "./import_as_app.ts";

type ZodModule = typeof zodModule;
type Zod = ZodModule["z"];

/** Names under which instances of zod look for what they share in a process. */
const SHARED = ["__zod_globalConfig", "__zod_globalRegistry"] as const;

const globals = globalThis as unknown as Record<string, unknown>;
const { defineProperty, freeze, getOwnPropertyDescriptors, getPrototypeOf } = Object;
const { ownKeys } = Reflect;

/** Set by {@linkcode loadAppZod}. */
let loaded: ZodModule | null = null;

/** Loads it, before app code is loaded and with the import map that is for app code. What is declared from now on is made with it. */
export async function loadAppZod(): Promise<void> {
  // Each instance keeps what it finds under these names when it is loaded: the service's has its own already.
  for (const name of SHARED) delete globals[name];
  const importAsApp = await appImporter();
  loaded = await importAsApp("zod") as unknown as ZodModule;
  // Looked up whenever a schema is made, by the service's instance too.
  defineProperty(globals, "__zod_globalConfig", { value: freeze({}), writable: false, configurable: false });
  declareWith(loaded.z);
  // A kind makes its members with its first schema, and closing it needs one: an isolate that stands by has the time.
  for (const make of samples(loaded.z)) tried(make);
}

/** Called once, when the app is loaded: packages may have added to it until then. */
export function closeAppZod(): void {
  if (loaded === null) return;
  const { z } = loaded;
  // Members of a kind of schema are made when the first one is: frozen before that, there could be none.
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

/** As one module zod has the names of its parts in objects, which are closed like the names of modules. */
function closeNames(space: object, closed: Set<object>): void {
  for (const key of ownKeys(space)) {
    const value = (space as Record<PropertyKey, unknown>)[key];
    if (typeof value !== "object" || value === null || closed.has(value) || !holdsNames(value)) continue;
    closed.add(freeze(value));
    closeNames(value, closed);
  }
}

/** Nothing else has getters alone. */
function holdsNames(value: object): boolean {
  const descriptors = Object.values(getOwnPropertyDescriptors(value));
  return descriptors.length > 0 &&
    descriptors.every(({ get, enumerable }) => get !== undefined && enumerable);
}

/** A schema, or anything that is made like one. */
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

/** What works on schemas rather than making one. */
const WORKING =
  /parse|encode|decode|validate|clone|compile|config|registry|memoizer|error|json|output|input/i;

/** One schema of each kind; those whose maker needs nothing are found by themselves. */
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
