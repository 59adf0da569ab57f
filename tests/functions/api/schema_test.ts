/** Schemas: strictness, messages, names, and the fingerprint that saves checking stored documents again. */
import assert from "node:assert/strict";
import { z } from "zod";
import { schemaDefinition } from "../../../mod/functions/api/schema.ts";
import { defineSchema, defineTable, id } from "../../../mod/functions/server_api.ts";
import type { TableShape } from "../../../mod/functions/api/schema.ts";

function definition(shape: TableShape) {
  return schemaDefinition(defineSchema({ t: defineTable(shape) }))?.get("t") ?? assert.fail();
}

Deno.test("fields are checked with their path, and unknown ones are refused, in unions too", () => {
  const { validate } = definition({ name: z.string(), at: z.object({ city: z.string() }).optional() });
  assert.deepEqual(validate({ name: "x" }), { name: "x" });
  assert.throws(
    () => validate({ name: 3 }),
    /^TypeError: name: Invalid input: expected string, received number$/,
  );
  assert.throws(() => validate({ name: "x", at: { city: 1 } }), /at\.city: Invalid input/);
  assert.throws(() => validate({ name: "x", nam: 1 }), /Unrecognized key: "nam"/);
  const union = definition(z.union([
    z.object({ kind: z.literal("a"), n: z.number() }),
    z.object({ kind: z.literal("b"), s: z.string() }),
  ]));
  assert.deepEqual(union.validate({ kind: "b", s: "x" }), { kind: "b", s: "x" });
  assert.throws(() => union.validate({ kind: "b", s: "x", n: 1 }));
});

Deno.test("names are checked when the schema is made", () => {
  const table = () => defineTable({ a: z.string() });
  for (const name of ["_users", "with space", "", "9", "x".repeat(65)]) {
    assert.throws(() => defineSchema({ [name]: table() }), /cannot be the name of a table/);
  }
  assert.throws(() => table().index("by_a", ["a"]).searchIndex("by_a", { searchField: "a" }), /two indexes/);
  assert.throws(() => table().index("by_id", ["a"]), /built in/);
  assert.throws(() => defineTable({ _a: z.string() }), /belong to the system/);
  assert.throws(() => defineTable({ a: "string" as never }), /"a" of the table is not a zod schema/);
  assert.throws(() => defineTable(z.string() as never), /defineTable needs/);
  assert.throws(() => defineSchema({ t: {} as never }), /not made by defineTable/);
});

Deno.test("equal schemas have equal fingerprints, whatever is changed changes it", () => {
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
