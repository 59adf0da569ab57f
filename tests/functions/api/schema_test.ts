/** Schemas: strictness, messages, names, and the fingerprint that saves checking stored documents again. */
import assert from "node:assert/strict";
import { z } from "zod";
import { functionSpec, untypedQuery } from "../../../mod/functions/api/registration.ts";
import { schemaDefinition } from "../../../mod/functions/api/schema.ts";
import { defineSchema, defineTable, id } from "../../../mod/functions/api/mod.ts";
import type { TableShape } from "../../../mod/functions/api/schema.ts";

function definition(shape: TableShape) {
  return schemaDefinition(defineSchema({ t: defineTable(shape) }))?.get("t") ?? assert.fail();
}

Deno.test("names are checked when the schema is created", () => {
  const table = () => defineTable({ a: z.string() });
  for (const name of ["_users", "with space", "", "9", "x".repeat(65)]) {
    assert.throws(() => defineSchema({ [name]: table() }), /Invalid table name/);
  }
  assert.throws(
    () => table().index("by_a", ["a"]).searchIndex("by_a", { searchField: "a" }),
    /Duplicate index/,
  );
  assert.throws(() => table().index("by_id", ["a"]), /built in/);
  assert.throws(() => defineTable({ _a: z.string() }), /are reserved/);
  assert.throws(() => defineTable({ a: "string" as never }), /"a" of the table is not a zod schema/);
  assert.throws(() => defineTable(z.string() as never), /defineTable needs/);
  assert.throws(() => defineSchema({ t: {} as never }), /must be created by defineTable/);
});

Deno.test("an index on a field that cannot exist is refused, with the existing fields", () => {
  const shape = {
    x: z.string(),
    at: z.object({ city: z.string().optional(), spot: z.tuple([z.number()]) }).nullable().optional(),
  };
  const refused = (fields: readonly string[], of: TableShape = shape) =>
    assert.throws(
      () => defineSchema({ t: defineTable(of).index("i", fields as never) }),
      /^TypeError: Index "i" of table "t" names the unknown field ".*"; known fields: /,
      fields.join(),
    );
  refused(["nofield"]);
  refused(["x", "nofield"]);
  refused(["x.y"]);
  refused(["at.town"]);
  refused(["at.spot.0"]);
  refused(["toString"]);
  refused(["_made"]);
  refused(["z"], z.union([z.object({ x: z.string() }), z.object({ y: z.string() })]));
  refused(["z"], z.looseObject({ x: z.string() }));
  refused(["r.a.b"], { r: z.record(z.string(), z.number()) });
  refused(["p.b"], { p: z.string().transform(() => ({})).pipe(z.object({ a: z.string() })) });
  const message = (make: () => unknown) => {
    try {
      make();
    } catch (error) {
      return (error as Error).message;
    }
    assert.fail("it was accepted");
  };
  assert.equal(
    message(() => defineSchema({ t: defineTable(shape).index("i", ["nofield" as never]) })),
    'Index "i" of table "t" names the unknown field "nofield"; known fields: x, at, _id, _creationTime',
  );
  assert.equal(
    message(() => defineSchema({ t: defineTable(shape).index("i", ["at.town"]) })),
    'Index "i" of table "t" names the unknown field "at.town"; known fields: at.city, at.spot',
  );
  const no = "no" as never;
  assert.match(
    message(() => defineSchema({ t: defineTable(shape).searchIndex("s", { searchField: no }) })),
    /^Search index "s" of table "t" names the unknown field "no"/,
  );
  assert.match(
    message(() =>
      defineSchema({ t: defineTable(shape).searchIndex("s", { searchField: "x", filterFields: [no] }) })
    ),
    /^Search index "s" .* "no"/,
  );
  const vectors = { v: z.array(z.number()) };
  const vectorIndex = (vectorField: "v", filterFields: "v"[]) =>
    message(() =>
      defineSchema({
        t: defineTable(vectors).vectorIndex("w", { vectorField, dimensions: 2, filterFields }),
      })
    );
  assert.match(vectorIndex(no, []), /^Vector index "w" .* "no"/);
  assert.match(vectorIndex("v", [no]), /^Vector index "w" .* "no"/);
});

Deno.test("an index on an optional field is accepted", () => {
  type Tree = { name: string; sub?: Tree | undefined };
  const tree: z.ZodType<Tree> = z.object({ name: z.string(), sub: z.lazy(() => tree).optional() });
  const accepted = (shape: TableShape, ...fields: string[]) =>
    defineSchema({ t: defineTable(shape).index("i", fields as never) });
  accepted({ x: z.string() }, "x", "_creationTime");
  accepted({ x: z.string() }, "_id");
  accepted({ a: z.object({ b: z.object({ c: z.string() }).nullable() }).optional() }, "a", "a.b", "a.b.c");
  accepted(z.union([z.object({ x: z.string() }), z.object({ y: z.string() })]), "x", "y");
  accepted(
    z.discriminatedUnion("k", [
      z.object({ k: z.literal("a"), n: z.number() }),
      z.object({ k: z.literal("b"), s: z.object({ deep: z.string() }) }),
    ]),
    "k",
    "n",
    "s.deep",
  );
  accepted({ o: z.looseObject({ a: z.string() }) }, "o.anything");
  accepted({ o: z.object({ a: z.string() }).catchall(z.string()) }, "o.anything");
  accepted({ r: z.record(z.string(), z.object({ n: z.number() })) }, "r.some.n");
  accepted({ i: z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })) }, "i.a", "i.b");
  accepted({ d: z.object({ a: z.string() }).default({ a: "" }).readonly() }, "d.a");
  accepted({ any: z.any(), unknown: z.unknown(), of: z.custom() }, "any.a", "unknown.a", "of.a");
  accepted({ t: z.string().transform((text) => ({ text })) }, "t.text");
  accepted({ p: z.preprocess((value) => value, z.object({ a: z.string() })) }, "p.a");
  accepted({ o: z.object({ a: z.string() }).overwrite((value) => ({ ...value, b: 1 })) }, "o.b");
  accepted({ tree }, "tree.sub.sub.sub.name");
  accepted({ "a.b": z.string() }, "a.b");
  accepted({ late: z.lazy(() => (undefined as unknown as { schema: z.ZodType }).schema) }, "late.x");
});

Deno.test("equal schemas have equal fingerprints, and every change changes it", () => {
  const base = () => ({
    name: z.string().min(2).regex(/^a/),
    n: z.int().optional(),
    kind: z.enum(["x", "y"]),
    of: id("t").optional(),
    list: z.array(z.union([z.null(), z.literal(3)])).default([]),
  });
  const fingerprint = (shape: TableShape) => definition(shape).fingerprint;
  assert.equal(typeof fingerprint(base()), "string");
  assert.equal(fingerprint(base()), fingerprint(base()));
  const changes: TableShape[] = [
    { ...base(), name: z.string().min(3).regex(/^a/) },
    { ...base(), name: z.string().min(2).regex(/^a/i) },
    { ...base(), n: z.int() },
    { ...base(), n: z.number().optional() },
    { ...base(), kind: z.enum(["x", "z"]) },
    { ...base(), of: id("u").optional() },
    { ...base(), list: z.array(z.union([z.null(), z.literal(4)])).default([]) },
    { ...base(), list: z.array(z.union([z.null(), z.literal(3)])).default([3]) },
    { ...base(), more: z.boolean() },
    z.union([z.object(base()), z.object({ other: z.string() })]),
  ];
  const all = [base(), ...changes].map(fingerprint);
  assert.equal(new Set(all).size, all.length);
  assert.ok(all.every((text) => typeof text === "string"));
});

Deno.test("a schema with code must not change its definitions afterwards", () => {
  const stored = (shape: TableShape, fields: Record<string, unknown>) => definition(shape).validate(fields);
  assert.deepEqual(stored({ a: z.string().trim().toLowerCase() }, { a: " X " }), { a: "x" });
  assert.deepEqual(stored({ a: z.coerce.number(), b: z.string().refine(() => true) }, { a: "5", b: "" }), {
    a: 5,
    b: "",
  });
  assert.deepEqual(stored({ a: z.number().default(1), b: z.string().trim() }, { b: "" }), { a: 1, b: "" });
  assert.throws(
    () => stored({ a: z.number().transform((n) => n * 2) }, { a: 5 }),
    /parsing it again changes it/,
  );
  assert.throws(
    () => stored({ a: z.string().transform(Number) }, { a: "5" }),
    /does not match the schema: a: Invalid input: expected string, received number/,
  );
  assert.throws(() => stored({ a: z.stringbool() }, { a: "yes" }), /does not match the schema: a: /);
});

Deno.test("the checks of a whole union are kept", () => {
  const a = z.object({ kind: z.literal("a"), n: z.number() });
  const b = z.object({ kind: z.literal("b") });
  for (const union of [z.union([a, b]), z.discriminatedUnion("kind", [a, b])]) {
    const { validate } = definition(union.refine(({ kind }) => kind !== "b", "no b"));
    assert.deepEqual(validate({ kind: "a", n: 1 }), { kind: "a", n: 1 });
    assert.throws(() => validate({ kind: "b" }), /no b/);
    assert.throws(() => validate({ kind: "a", n: 1, more: 1 }), /more/);
  }
});

Deno.test("schemas with code have no fingerprint", () => {
  const shapes: TableShape[] = [
    { a: z.string().refine((text) => text !== "x") },
    { a: z.string().transform((text) => text.length) },
    { a: z.string().trim() },
    { a: z.custom(() => true) },
    { a: z.lazy(() => z.string()) },
    { a: z.array(z.object({ deep: z.string().refine(() => true) })) },
    { a: z.preprocess((value) => value, z.string()) },
  ];
  for (const shape of shapes) assert.equal(definition(shape).fingerprint, undefined);
});

Deno.test("the schema of arguments is made once, from the arguments as they were declared", () => {
  const args: Record<string, z.ZodType> = { a: z.string() };
  const spec = functionSpec(untypedQuery({ args, handler: () => null }));
  args["b"] = z.string();
  assert.deepEqual(spec?.args?.safeParse({ a: "x" }).data, { a: "x" });
  assert.equal(spec?.args?.safeParse({ a: "x", b: "y" }).success, false);
  assert.equal(spec?.args, spec?.args);
  assert.equal(functionSpec(untypedQuery(() => null))?.args, null);
});
