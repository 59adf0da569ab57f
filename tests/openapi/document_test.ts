/** The OpenAPI document: its schemas, references and examples. */
import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { FunctionFacts } from "../../mod/functions/api/system_context.ts";
import { exampleOf } from "../../mod/openapi/examples.ts";
import { openApiDocument } from "../../mod/openapi/mod.ts";

const facts = (path: string, more: Partial<FunctionFacts> = {}): FunctionFacts => ({
  path,
  kind: "query",
  visibility: "public",
  ofService: false,
  doc: null,
  args: { type: "object", properties: {} },
  returns: null,
  ...more,
});

const tree = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: {
    root: { $ref: "#/$defs/node" },
    self: { $ref: "#" },
    $ref: { type: "string" },
    const: { $ref: "#/$defs/node" },
  },
  $defs: {
    node: {
      type: "object",
      properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } },
      default: { $ref: "#/$defs/node" },
    },
  },
};

function document(functions: readonly FunctionFacts[]) {
  return openApiDocument({ functions, version: "1.2.3", serverUrl: "/" });
}

/** All references in a document. */
function references(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "$ref" && typeof inner === "string" ? [inner] : references(inner)
  );
}

async function assertValid(given: object): Promise<void> {
  const { valid, errors } = await new Validator().validate(structuredClone(given) as Record<string, unknown>);
  assert.ok(valid, JSON.stringify(errors));
}

Deno.test("OD1 references of schemas point into the document, data is not changed, and equal names are kept apart", async () => {
  // The validator resolves references in data, too.
  const { properties: { $ref: _, ...properties }, $defs: { node: { default: __, ...node } } } = tree;
  await assertValid(document([facts("a:b", { args: { ...tree, properties, $defs: { node } } })]));
  const made = document([
    facts("a:b", { args: tree, returns: tree }),
    facts("a/b", { args: tree }),
  ]);
  const { schemas = {} } = made.components;
  const known = new Set(Object.keys(schemas).map((name) => `#/components/schemas/${name}`));
  const unknown = references(made).filter((ref) => ref.includes("/schemas/") && !known.has(ref));
  // The default is data, once for each of the three schemas.
  assert.deepEqual(references(made).filter((ref) => ref.includes("$defs")), Array(3).fill("#/$defs/node"));
  assert.deepEqual(unknown, []);
  assert.deepEqual(
    Object.keys(schemas).filter((name) => name.startsWith("a.b")),
    [
      ...["a.b.args", "a.b.args.node", "a.b.call", "a.b.result", "a.b.result.node"],
      ...["a.b.args.2", "a.b.args.2.node", "a.b.call.2"],
    ],
  );
  const root = schemas["a.b.args.2"] as { readonly properties: Record<string, { readonly $ref: string }> };
  assert.equal(root.properties["root"]?.$ref, "#/components/schemas/a.b.args.2.node");
  assert.equal(root.properties["self"]?.$ref, "#/components/schemas/a.b.args.2");
});

Deno.test("OD1 only public functions of the app are described, and an app without functions has a valid document", async () => {
  const made = document([
    facts("own:shown"),
    facts("own:hidden", { visibility: "internal" }),
    facts("_admin/data:get", { visibility: "admin", ofService: true }),
    facts("_auth/own:me", { ofService: true }),
  ]);
  const text = JSON.stringify(made.paths);
  assert.match(text, /own\.shown/);
  assert.doesNotMatch(text, /own\.hidden|_admin|_auth/);
  await assertValid(document([]));
});

Deno.test("OD1 a doc comment describes the call of its function", async () => {
  const made = document([facts("own:shown", { doc: "Lists what is open.\n\nNewest first." })]);
  const call = made.components.schemas?.["own.shown.call"] as { readonly description?: string };
  assert.equal(call.description, "Lists what is open.\n\nNewest first.");
  await assertValid(made);
});

Deno.test("OD1 examples match the bounds of their schemas, and are absent if only a pattern describes the value", () => {
  const none = () => undefined;
  const example = (schema: Record<string, unknown>) => exampleOf(schema, none);
  assert.deepEqual(
    example({
      type: "object",
      required: ["text", "count", "kind", "tags", "at", "maybe", "pair"],
      properties: {
        text: { type: "string", minLength: 6, maxLength: 6 },
        count: { type: "integer", exclusiveMinimum: 4, maximum: 9 },
        kind: { enum: ["a", "b"] },
        tags: { type: "array", items: { type: "boolean" }, minItems: 2 },
        at: { type: "string", format: "date", pattern: "^.*$" },
        maybe: { anyOf: [{ type: "string", pattern: "^x" }, { type: "null" }] },
        pair: { type: "array", prefixItems: [{ const: 1 }, { default: "b" }] },
        left: { type: "string" },
      },
    }),
    {
      text: "textte",
      count: 5,
      kind: "a",
      tags: [true, true],
      at: "2030-01-02",
      maybe: null,
      pair: [1, "b"],
    },
  );
  assert.equal(example({ type: "number", maximum: -3 }), -3);
  assert.equal(example({ type: "string", pattern: "^[0-9]$" }), undefined);
  assert.equal(
    example({ type: "object", required: ["a"], properties: { a: { type: "string", pattern: "x" } } }),
    undefined,
  );
  // A type that contains itself has no finite example here.
  const recursive = { type: "object", required: ["next"], properties: { next: { $ref: "#/self" } } };
  assert.equal(exampleOf(recursive, () => recursive), undefined);
});
