/** Documents are as the schema defines them: a new schema that would change them is refused. */
import assert from "node:assert/strict";
import {
  openWriterDatabase,
  type SchemaDefinition,
  SchemaError,
  type WriterDatabase,
} from "../../mod/engine/mod.ts";
import { defineSchema, defineTable } from "../../mod/functions/api/mod.ts";
import { schemaDefinition, type TableShape } from "../../mod/functions/api/schema.ts";
import { z } from "zod";
import { TemporaryDatabase } from "./support.ts";

function schemaOf(shape: TableShape): SchemaDefinition {
  const schema = schemaDefinition(defineSchema({ tasks: defineTable(shape as never) as never }));
  assert.ok(schema !== null);
  return schema;
}

function insert(db: WriterDatabase, documents: readonly Record<string, unknown>[]): string[] {
  db.openGroup();
  const tx = db.beginMutation({ at: 1 });
  const ids = documents.map((fields) => tx.insert("tasks", fields));
  db.releaseMutation();
  db.commitGroup("");
  return ids;
}

function patchAll(db: WriterDatabase, ids: readonly string[], fields: Record<string, unknown>): void {
  db.openGroup();
  const tx = db.beginMutation({ at: 2 });
  for (const id of ids) tx.patch(id, fields);
  db.releaseMutation();
  db.commitGroup("");
}

function refusal(db: WriterDatabase, shape: TableShape): SchemaError {
  try {
    db.applySchema(schemaOf(shape));
  } catch (error) {
    assert.ok(error instanceof SchemaError, String(error));
    return error;
  }
  return assert.fail("the schema was taken");
}

const before = { title: z.string() };

Deno.test("[FA12] a default for a field that documents lack is refused, with their count and advice", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  db.applySchema(schemaOf(before));
  const ids = insert(db, Array.from({ length: 200 }, (_, n) => ({ title: `${n}` })));
  const wanted = { ...before, rank: z.number().default(3) };
  const { message, id } = refusal(db, wanted);
  assert.equal(id, ids[0]);
  assert.match(
    message,
    /^Cannot apply the schema: 200 documents of table "tasks" are not what it makes of them/,
  );
  assert.match(message, new RegExp(`such as "${ids[0]}": it would set "rank" to 3, which is not stored`));
  assert.match(
    message,
    /make "rank" optional.*ctx\.db\.patch\(id, \{ "rank": 3 \}\).*then apply this schema/,
  );

  // Follows the advice of the message.
  db.applySchema(schemaOf({ ...before, rank: z.number().optional() }));
  patchAll(db, ids, { rank: 3 });
  const [late = ""] = insert(db, [{ title: "late" }]);
  assert.match(refusal(db, wanted).message, /: 1 document of table "tasks" is not what it makes of it/);
  patchAll(db, [late], { rank: 3 });
  db.applySchema(schemaOf(wanted));
  assert.deepEqual(db.applySchema(schemaOf(wanted)).createdIndexes, []);
});

const changes: [
  name: string,
  from: TableShape,
  document: Record<string, unknown>,
  to: TableShape,
  reported: RegExp,
][] = [
  [
    "a default inside an object",
    { at: z.object({ city: z.string() }) },
    { at: { city: "Ulm" } },
    { at: z.object({ city: z.string(), zip: z.string().default("-") }) },
    /would set "at\.zip" to "-", which is not stored/,
  ],
  [
    "a default inside an array",
    { rows: z.array(z.object({ n: z.number() })) },
    { rows: [{ n: 1 }, { n: 2 }] },
    { rows: z.array(z.object({ n: z.number(), m: z.null().default(null) })) },
    /would set "rows\[0\]\.m" to null, which is not stored/,
  ],
  ["a prefault", {}, {}, { size: z.string().prefault("small") }, /would set "size" to "small"/],
  [
    "another type",
    { n: z.string() },
    { n: "5" },
    { n: z.coerce.number() },
    /would set "n" to 5, and "5" is stored/,
  ],
  [
    "what catches everything",
    { level: z.string() },
    { level: "highest" },
    { level: z.enum(["low", "high"]).catch("low") },
    /would set "level" to "low", and "highest" is stored/,
  ],
  [
    "a field that goes",
    { at: z.object({ city: z.string(), zip: z.string() }) },
    { at: { city: "Ulm", zip: "89073" } },
    { at: z.object({ city: z.string() }) },
    /would leave out "at\.zip", and "89073" is stored/,
  ],
  [
    "code that makes something else",
    { title: z.string() },
    { title: " a " },
    { title: z.string().transform((text) => text.trim()) },
    /would set "title" to "a", and " a " is stored/,
  ],
];

for (const [name, from, document, to, reported] of changes) {
  Deno.test(`[FA12] refused where the schema would change documents: ${name}`, () => {
    using folder = new TemporaryDatabase();
    using db = openWriterDatabase(folder.path);
    db.applySchema(schemaOf(from));
    insert(db, [document]);
    assert.match(refusal(db, to).message, reported);
    // Nothing changed, and documents written under the new schema match it.
    db.applySchema(schemaOf(from));
  });
}

Deno.test("[FA12] documents written under a schema match it, with or without code, in any field order", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  const first = { b: z.number().default(1), a: z.string().trim(), c: z.string().optional() };
  db.applySchema(schemaOf(first));
  insert(db, [{ a: " x " }, { b: 2, a: "y", c: undefined }, { b: -0, a: "z" }]);
  db.applySchema(schemaOf(first));
  db.applySchema(schemaOf({ a: z.string(), c: z.string().optional(), b: z.number().default(7) }));
});
