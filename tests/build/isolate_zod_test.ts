/** The zod of isolates matches the package. */
import assert from "node:assert/strict";
import { z as packageZod } from "zod";
import { isolateZod } from "../../mod/build/isolate_zod.ts";

const stored = new URL("../../mod/functions/isolate/zod/zod.js", import.meta.url);

// esbuild's service process ends a moment after it was stopped.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the zod of isolates is up to date: deno task build:zod", options, async () => {
  const [kept, built] = await Promise.all([Deno.readTextFile(stored), isolateZod()]);
  // Not with `equal`: it would print all of both.
  assert.ok(kept === built, "mod/functions/isolate/zod/zod.js is not what the package zod gives");
  assert.ok(!/\/npm\/|node_modules|sourceMappingURL/.test(kept), "it names where it was built");
});

Deno.test("zod in isolates has the exports of the package, and is another instance with another address", async () => {
  const [one, other, whole] = await Promise.all([
    import(`${stored.href}?one`),
    import(`${stored.href}?other`),
    import("zod"),
  ]);
  assert.deepEqual(Object.keys(one).toSorted(), Object.keys(whole).toSorted());
  assert.notEqual(one.z.ZodString, other.z.ZodString);
});

type Z = typeof packageZod;

/** Schemas and checks of many kinds, with members of their own and with overridden ones. */
const makers: readonly ((z: Z) => { readonly _zod: object })[] = [
  (z) => z.string().min(2).trim().email(),
  (z) => z.int().positive().optional(),
  (z) => z.bigint().max(4n).nullable(),
  (z) => z.date().min(new Date(0)),
  (z) => z.array(z.boolean()).nonempty(),
  (z) => z.object({ a: z.string(), b: z.literal(["a", "b"]).default("a") }).partial().extend({ c: z.nan() }),
  (z) => z.strictObject({ a: z.iso.date() }).required(),
  (z) => z.discriminatedUnion("t", [z.object({ t: z.literal("a") }), z.object({ t: z.literal("b") })]),
  (z) => z.intersection(z.object({ a: z.null() }), z.looseObject({})),
  (z) => z.tuple([z.string()]).rest(z.number()),
  (z) => z.record(z.enum(["a", "b"]).exclude(["b"]), z.symbol()),
  (z) => z.map(z.string(), z.any()).min(1),
  (z) => z.set(z.union([z.email(), z.uuid(), z.url(), z.ipv6(), z.jwt()])).max(2),
  (z) => z.lazy(() => z.templateLiteral(["a", z.number()])).refine((value) => value.length > 2),
  (z) => z.codec(z.string(), z.number(), { decode: Number, encode: String }).readonly().describe("text"),
  (z) => z.string().transform((value) => value.length).pipe(z.number()).catch(3),
  (z) => z.preprocess(String, z.string().prefault("a")),
  (z) => z.minLength(2),
  (z) => new z.core.$ZodSet({ type: "set", valueType: new z.core.$ZodString({ type: "string" }) }),
  (z) =>
    new (class Own extends z.ZodMap {
      override isOptional() {
        return true;
      }
      override get description() {
        return "own";
      }
    })({ type: "map", keyType: z.string(), valueType: z.any() }),
  (z) => new z.ZodError([]),
  (z) => new z.ZodRealError([{ code: "custom", path: ["a"], message: "m", input: 1 }]),
];

const VALUES = [
  undefined,
  null,
  "a",
  "a1",
  "a@b.cc",
  "2020-01-01",
  3,
  -1,
  2n,
  NaN,
  new Date(1),
  [],
  [true],
  ["a", 1],
  {},
  {
    a: null,
  },
  { a: "a", c: NaN },
  { t: "b" },
  { a: Symbol("a") },
  new Map([["a", 1]]),
  new Set(["a@b.cc"]),
  new Set(["a"]),
];

/** Describes members and results of an instance. */
function* behavior(z: Z): Generator<unknown> {
  for (const make of makers) {
    for (const made of [make(z), make(z)]) {
      const one = made as unknown as InstanceType<Z["ZodMap"]>;
      const error = made as unknown as InstanceType<Z["ZodError"]>;
      const keys = new Set<string>();
      for (const part of [one, one._zod]) {
        for (let object: unknown = part; object !== null; object = Object.getPrototypeOf(object)) {
          for (const key of Object.getOwnPropertyNames(object)) keys.add(key);
        }
      }
      yield [make.toString(), [...keys].toSorted(), Object.keys(one)];
      yield [
        one instanceof z.ZodType,
        one instanceof z.ZodMap,
        one instanceof z.ZodError,
        one instanceof Error,
        one.description,
      ];
      const { values, pattern, optin, optout, propValues } = one._zod;
      yield [values, String(pattern), optin, optout, propValues];
      if ("issues" in made) {
        yield [
          error.name,
          String(error),
          error.message,
          error.isEmpty,
          z.treeifyError(error),
          error.flatten(),
          error.format(),
        ];
      } else if (one._zod.run !== undefined) {
        for (const value of VALUES) {
          const result = z.core.safeParse(one, value);
          yield [value, result.success, result.data, result.error?.issues];
        }
        if (one.parse !== undefined) {
          yield [one.isOptional(), one.toJSONSchema({ unrepresentable: "any" }), one.optional().isOptional()];
        }
      }
    }
  }
}

Deno.test("a frozen instance whose kinds were not used before works like the package", async () => {
  const kinds: object[] = [];
  const globals = globalThis as unknown as Record<string, unknown>;
  globals["__zod_onKind"] = (kind: { prototype: object }, ...prototypes: object[]) => {
    kinds.push(kind, kind.prototype, ...prototypes);
  };
  const { z } = await import(`${stored.href}?frozen`) as { readonly z: Z };
  delete globals["__zod_onKind"];
  for (const kind of kinds) Object.freeze(kind);
  assert.ok(kinds.length > 600, String(kinds.length));
  const frozen = [...behavior(z)];
  const expected = [...behavior(packageZod)];
  assert.deepEqual(frozen, expected);
});
