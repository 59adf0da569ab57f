/**
 * Schema changes: indexes are built and dropped, violations stop everything, numbers stay, removed tables keep their
 * data.
 */
import assert from "node:assert/strict";
import { documentLimits } from "../../mod/limits.ts";
import { EngineError, openReaderDatabase, openWriterDatabase, SchemaError } from "../../mod/engine/mod.ts";
import type { TableDefinition, WriterDatabase } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase } from "./support.ts";

const by_n = { name: "by_n", fields: ["n"] };

function insertMany(db: WriterDatabase, table: string, count: number): string[] {
  db.openGroup();
  const tx = db.beginMutation({ at: 1 });
  const ids = Array.from({ length: count }, (_, n) => tx.insert(table, { n: count - n, text: `text ${n}` }));
  db.releaseMutation();
  db.commitGroup("");
  return ids;
}

function scanned(db: WriterDatabase, table: string, index: string): unknown[] {
  db.openGroup();
  const tx = db.beginMutation({ at: 1 });
  const values = [...tx.scan(table, index, { eq: [] }, { order: "asc" })].map(({ doc }) => doc["n"]);
  db.releaseMutation();
  db.rollbackGroup();
  return values;
}

Deno.test("an index added to a table with documents is built, a removed one is dropped", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  db.applySchema(schemaOf({ items: anyTable() }));
  insertMany(db, "items", 1_000);
  assert.throws(() => scanned(db, "items", "by_n"), /no index "by_n"/);
  db.rollbackGroup();
  const ts = db.ts;
  const report = db.applySchema(schemaOf({ items: anyTable({ indexes: [by_n] }) }));
  assert.deepEqual(report.createdIndexes, ["items.by_n"]);
  assert.deepEqual(scanned(db, "items", "by_n"), Array.from({ length: 1_000 }, (_, n) => n + 1));
  assert.deepEqual(db.applySchema(schemaOf({ items: anyTable() })).droppedIndexes, ["items.by_n"]);
  assert.equal(db.ts, ts);
});

Deno.test("an index whose fields change is rebuilt with a new number", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  const spaces = (definition: TableDefinition) => {
    db.applySchema(schemaOf({ items: definition }));
    db.openGroup();
    const tx = db.beginMutation({ at: 1 });
    tx.insert("items", { n: 1 });
    const spaces = db.releaseMutation()?.changes[0]?.keys.map(([space]) => space);
    db.rollbackGroup();
    return spaces;
  };
  assert.deepEqual(spaces(anyTable({ indexes: [by_n] })), ["t1", "i1", "i2"]);
  assert.deepEqual(spaces(anyTable({ indexes: [{ name: "by_n", fields: ["n", "m"] }] })), ["t1", "i1", "i3"]);
  assert.deepEqual(spaces(anyTable({ indexes: [by_n] })), ["t1", "i1", "i4"]);
  assert.deepEqual(spaces(anyTable()), ["t1", "i1"]);
  assert.deepEqual(spaces(anyTable({ indexes: [by_n] })), ["t1", "i1", "i5"]);
});

Deno.test("a document that does not match stops the change, with table, id and field, and changes nothing", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  db.applySchema(schemaOf({ items: anyTable() }));
  const ids = insertMany(db, "items", 700);
  const strict = anyTable({
    indexes: [by_n],
    validate: (fields) => {
      if (fields["n"] === 100) throw new TypeError("n: must not be 100");
      return fields as never;
    },
  });
  assert.throws(() => db.applySchema(schemaOf({ items: strict, more: anyTable() })), (error) => {
    assert.ok(error instanceof SchemaError);
    assert.equal(error.table, "items");
    assert.equal(error.id, ids[600]);
    assert.match(
      error.message,
      /table "items" does not fit it: n: must not be 100\. .*\.optional\(\).*migrate/,
    );
    return true;
  });
  assert.deepEqual(scanned(db, "items", "by_creation_time").length, 700);
  assert.throws(() => scanned(db, "items", "by_n"), /no index "by_n"/);
  db.rollbackGroup();
  assert.deepEqual(db.applySchema(schemaOf({ items: anyTable() })).unreachableTables, []);
});

Deno.test("a table with the same fingerprint is not validated again, one without or with another is", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  let checked = 0;
  const counting = (fingerprint?: string) =>
    schemaOf({
      items: anyTable({
        ...(fingerprint === undefined ? {} : { fingerprint }),
        validate: (fields) => (checked++, fields as never),
      }),
    });
  const checkedBy = (fingerprint?: string) => {
    checked = 0;
    db.applySchema(counting(fingerprint));
    return checked;
  };
  db.applySchema(counting("a"));
  insertMany(db, "items", 10);
  assert.deepEqual(
    [checkedBy("a"), checkedBy("b"), checkedBy("b"), checkedBy(), checkedBy(), checkedBy("b")],
    [0, 10, 0, 10, 10, 10],
  );
});

Deno.test("a table removed from the schema keeps its documents, its number and its ids", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  const both = schemaOf({ items: anyTable(), others: anyTable() });
  db.applySchema(both);
  const [id = ""] = insertMany(db, "others", 1);
  assert.deepEqual(db.applySchema(schemaOf({ items: anyTable() })).unreachableTables, ["others"]);
  db.openGroup();
  const tx = db.beginMutation({ at: 1 });
  assert.equal(tx.get(id), null);
  assert.equal(tx.tableOf(id), null);
  assert.throws(() => tx.delete(id), /not the id of a document/);
  db.rollbackGroup();
  db.applySchema(both);
  assert.deepEqual(scanned(db, "others", "by_creation_time"), [1]);
});

Deno.test("a reader refuses a schema that was not applied", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  db.applySchema(schemaOf({ items: anyTable() }));
  using reader = openReaderDatabase(folder.path);
  for (
    const schema of [schemaOf({ others: anyTable() }), schemaOf({ items: anyTable({ indexes: [by_n] }) })]
  ) {
    assert.throws(() => reader.useSchema(schema), /has not been applied/);
  }
});

const wrong: [name: string, definition: TableDefinition, message: RegExp][] = [
  [
    "an index without fields",
    anyTable({ indexes: [{ name: "none", fields: [] }] }),
    /"none".*0 fields.*1 to 16/,
  ],
  [
    "an index with 17 fields",
    anyTable({ indexes: [{ name: "wide", fields: Array.from({ length: 17 }, (_, n) => `f${n}`) }] }),
    /"wide".*17 fields/,
  ],
  ["one name twice", anyTable({ indexes: [by_n, { name: "by_n", fields: ["m"] }] }), /"by_n".*used twice/],
  [
    "a name every table has",
    anyTable({ indexes: [{ name: "by_id", fields: ["m"] }] }),
    /"by_id".*already has an index of this name/,
  ],
  [
    "too many indexes",
    anyTable({
      indexes: Array.from(
        { length: documentLimits.indexesPerTableMax + 1 },
        (_, n) => ({ name: `i${n}`, fields: ["n"] }),
      ),
    }),
    /65 indexes and the limit is 64/,
  ],
];
for (const [name, definition, message] of wrong) {
  Deno.test(`a schema with ${name} is refused`, () => {
    using folder = new TemporaryDatabase();
    using db = openWriterDatabase(folder.path);
    assert.throws(() => db.applySchema(schemaOf({ items: definition })), (error) => {
      assert.ok(error instanceof EngineError);
      assert.equal(error.code, "bad_schema");
      assert.match(error.message, message);
      return true;
    });
  });
}
