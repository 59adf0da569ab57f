/** Imports of documents with their ids and creation times. */
import assert from "node:assert/strict";
import { EngineError, newId, openWriterDatabase } from "../../mod/engine/mod.ts";
import type { EngineErrorCode } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const wrong = (code: EngineErrorCode, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

Deno.test("imported documents keep their ids and creation times, and tables their numbers", () => {
  using origin = new TestDatabase({ items: anyTable(), others: anyTable() });
  const docs = ["a", "b"].map((text) =>
    origin.commit((tx) => tx.get(tx.insert("others", { text })) ?? assert.fail()).result
  );
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  const checked = anyTable({
    indexes: [{ name: "by_text", fields: ["text"] }],
    validate: (fields) => {
      if (typeof fields["text"] !== "string") throw new TypeError("text: expected a string");
      return { text: fields["text"] };
    },
  });
  const schema = schemaOf({ first: anyTable(), second: anyTable(), others: checked });
  db.applySchema(schema, { tableNumbers: new Map([["others", 2]]) });
  db.openGroup();
  const tx = db.beginMutation({ at: origin.now });
  for (const doc of docs) tx.importDocument("others", doc, { mode: "insert" });
  const [doc] = docs;
  assert.ok(doc !== undefined);
  assert.deepEqual(tx.get(doc._id), doc);
  const refused: [string, Record<string, unknown>, EngineErrorCode, RegExp][] = [
    ["others", doc, "not_storable", /table "others" has it already/],
    ["first", doc, "not_storable", /it is an id of table "others"/],
    ["others", { ...doc, _id: newId(99) }, "not_storable", /it is not an id of this database/],
    ["others", { text: "x", _creationTime: 1 }, "not_storable", /its _id must be a text/],
    ["others", { ...doc, _creationTime: NaN }, "not_storable", /its _creationTime must be a number/],
  ];
  for (const [table, document, code, message] of refused) {
    assert.throws(() => tx.importDocument(table, document, { mode: "insert" }), wrong(code, message));
  }
  assert.throws(
    () => tx.importDocument("others", { ...doc, text: 1 }, { mode: "upsert" }),
    /text: expected a string/,
  );
  tx.importDocument("others", { ...doc, text: "c", _creationTime: 1 }, { mode: "upsert" });
  const order = (index: string) =>
    [...tx.scan("others", index, { eq: [] }, { order: "asc" })].map(({ doc }) => doc["text"]);
  assert.deepEqual(order("by_text"), ["b", "c"]);
  assert.deepEqual(order("by_creation_time"), ["c", "b"]);
  assert.equal(db.releaseMutation()?.ts, 1);
  db.commitGroup("");
  assert.throws(
    () => db.applySchema(schema, { tableNumbers: new Map([["others", 3]]) }),
    /begin with an empty database/,
  );
});

Deno.test("[FA14] imported creation times are between 1970 and a day from now", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  db.applySchema(schemaOf({ items: anyTable() }));
  db.openGroup();
  const now = 1_700_000_000_000;
  const tx = db.beginMutation({ at: now });
  const _id = tx.insert("items", {});
  const day = 86_400_000;
  for (const _creationTime of [0, 0.5, now, now + day]) {
    tx.importDocument("items", { _id, _creationTime }, { mode: "upsert" });
    assert.equal(tx.get(_id)?._creationTime, _creationTime);
  }
  for (const _creationTime of [1e300, -1, now + day + 1, 2 ** 43]) {
    assert.throws(
      () => tx.importDocument("items", { _id, _creationTime }, { mode: "upsert" }),
      wrong("not_storable", /_creationTime .* must lie between 1970 and a day from now/),
    );
  }
  db.rollbackGroup();
});
