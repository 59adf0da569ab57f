/** Documents from elsewhere: entries of another database applied here, and documents imported with their ids. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { EngineError, newId, openReaderDatabase, openWriterDatabase } from "../../mod/engine/mod.ts";
import type {
  CommitEntry,
  Doc,
  EngineErrorCode,
  ReadTransaction,
  WriterDatabase,
} from "../../mod/engine/mod.ts";
import { anyTable, anyValue, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const by_n = { name: "by_n", fields: ["n"] };
const by_text = { name: "by_text", searchField: "text", filterFields: ["n"] };
const by_place = { name: "by_place", vectorField: "place", dimensions: 2, filterFields: [] };
const tables = {
  items: anyTable({ indexes: [by_n], searchIndexes: [by_text], vectorIndexes: [by_place] }),
  others: anyTable(),
};

const wrong = (code: EngineErrorCode, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

/** Everything a view shows of the tables, through each index. */
function everything(tx: ReadTransaction): unknown {
  const scanned = (table: string, index: string) => [...tx.scan(table, index, { eq: [] }, { order: "asc" })];
  return {
    items: scanned("items", "by_creation_time"),
    byId: scanned("items", "by_id"),
    byN: scanned("items", "by_n"),
    found: [...tx.search("items", "by_text", { query: "word", filters: [] })],
    near: tx.vectorSearch("items", "by_place", { vector: [1, 0], limit: 10, filters: [] }).map(({ id }) => id)
      .sort(),
    others: scanned("others", "by_creation_time"),
  };
}

function apply(db: WriterDatabase, entries: readonly CommitEntry[]): CommitEntry[] {
  db.openGroup();
  const applied = entries.map((entry) => db.applyEntry(entry));
  db.commitGroup("");
  return applied;
}

/** A command of the property: inserts, changes or deletes one of a few documents. */
const commands = fc.array(
  fc.record({
    kind: fc.constantFrom("insert", "patch", "delete"),
    table: fc.constantFrom("items", "others"),
    which: fc.nat(3),
    n: anyValue,
    text: fc.constantFrom("word", "a word or two", "none"),
  }),
  { maxLength: 25 },
);

function run(
  db: TestDatabase,
  steps: typeof commands extends fc.Arbitrary<infer Steps> ? Steps : never,
): CommitEntry[] {
  const ids: string[] = [];
  const entries: CommitEntry[] = [];
  for (const { kind, table, which, n, text } of steps) {
    db.now += 1;
    const { entry } = db.commit((tx) => {
      const id = ids[which];
      if (kind === "insert" || id === undefined) {
        ids.unshift(tx.insert(table, { n, text, place: [1, which] }));
      } else if (kind === "patch") tx.patch(id, { n, text });
      else {
        tx.delete(id);
        ids.splice(which, 1);
      }
    });
    // As a journal keeps them: the documents as they became, no keys of any index.
    if (entry !== null) {
      entries.push({ ...entry, changes: entry.changes.map((change) => ({ ...change, keys: [] })) });
    }
  }
  return entries;
}

Deno.test("a database that applies the entries of another shows the same documents through every index", () => {
  fc.assert(
    fc.property(commands, fc.nat(25), (steps, cut) => {
      using origin = new TestDatabase(tables);
      const entries = run(origin, steps);
      using follower = new TestDatabase({ ...tables, others: anyTable({ indexes: [by_n] }) });
      apply(follower.writer, entries.slice(0, cut));
      const applied = apply(follower.writer, entries.slice(cut));
      assert.equal(follower.writer.ts, origin.writer.ts);
      assert.deepEqual(follower.query(everything), origin.query(everything));
      for (const { changes } of applied) {
        for (const { keys } of changes) assert.ok(keys.length >= 3, "keys are those of here");
      }
      // What is written next is newer than everything that was applied.
      const newest = Math.max(
        0,
        ...applied.flatMap(({ changes }) =>
          changes.map(({ doc }) => typeof doc === "string" ? (JSON.parse(doc) as Doc)._creationTime : 0)
        ),
      );
      follower.now = 0;
      const { result: id } = follower.commit((tx) => tx.insert("items", {}));
      assert.ok((follower.query((tx) => tx.get(id))?._creationTime ?? 0) > newest);
    }),
    { numRuns: 25 },
  );
});

Deno.test("an entry out of turn, without documents, or of another database changes nothing", () => {
  using origin = new TestDatabase(tables);
  using follower = new TestDatabase(tables);
  const { entry } = origin.commit((tx) => tx.insert("items", { n: 1 }));
  assert.ok(entry !== null);
  const [change] = entry.changes;
  assert.ok(change !== undefined);
  const { writer } = follower;
  const { doc: _, ...withoutDoc } = change;
  const refused: [CommitEntry, RegExp][] = [
    [{ ...entry, ts: 2 }, /^Cannot apply entry 2: the database is at 0$/],
    [{ ...entry, ts: 0 }, /^Cannot apply entry 0/],
    [{ ...entry, changes: [withoutDoc] }, /does not say what it is/],
    [{ ...entry, changes: [{ ...change, tableNumber: 7 }] }, /no table "items" with number 7/],
    [{ ...entry, changes: [{ ...change, table: "gone" }] }, /no table "gone"/],
    [{ ...entry, changes: [change, { ...change, doc: "{" }] }, /it is not JSON/],
    [{ ...entry, changes: [{ ...change, id: newId(change.tableNumber) }] }, /it is another document/],
  ];
  writer.openGroup();
  for (const [bad, message] of refused) {
    assert.throws(() => writer.applyEntry(bad), wrong("bad_entry", message));
  }
  writer.applyEntry(entry);
  assert.throws(
    () => writer.applyEntry(entry),
    wrong("bad_entry", /Cannot apply entry 1: the database is at 1/),
  );
  writer.commitGroup("");
  assert.deepEqual(follower.query(everything), origin.query(everything));
});

Deno.test("entries are replayed without the app, new tables included, and the next schema builds and checks all", () => {
  using origin = new TestDatabase(tables);
  const entries = run(origin, [
    { kind: "insert", table: "items", which: 0, n: 1, text: "word" },
    { kind: "insert", table: "others", which: 0, n: 2, text: "none" },
    { kind: "patch", table: "items", which: 1, n: 3, text: "a word or two" },
  ]);
  const numbers = new Map(
    entries.flatMap(({ changes }) => changes.map((c) => [c.table, c.tableNumber] as const)),
  );
  using folder = new TemporaryDatabase();
  {
    // The state restored from was made before `others` was, and its index expected something else of the documents.
    using db = openWriterDatabase(folder.path);
    const narrow = { ...by_place, dimensions: 3 };
    db.applySchema(schemaOf({ items: anyTable({ vectorIndexes: [narrow], fingerprint: "same" }) }));
    db.openGroup();
    assert.throws(
      () => db.applyEntry(entries[0] ?? assert.fail()),
      wrong("not_storable", /needs a list of 3/),
    );
    db.rollbackGroup();
    db.prepareReplay(numbers);
    apply(db, entries);
    assert.throws(
      () => db.prepareReplay(new Map([["items", 9]])),
      wrong("bad_schema", /begin with an empty database/),
    );
    assert.throws(
      () => db.prepareReplay(new Map([["new", 1]])),
      wrong("bad_schema", /its number 1 is that of "items"/),
    );
  }
  using db = openWriterDatabase(folder.path);
  const refusing = anyTable({
    fingerprint: "same",
    validate: () => {
      throw new TypeError("n: wrong");
    },
  });
  assert.throws(
    () => db.applySchema(schemaOf({ items: refusing })),
    /document ".*" of table "items" .*n: wrong/,
  );
  db.applySchema(schemaOf(tables));
  using reader = openReaderDatabase(folder.path);
  reader.useSchema(schemaOf(tables));
  assert.equal(reader.openSnapshot(), origin.writer.ts);
  assert.deepEqual(everything(reader.beginQuery()), origin.query(everything));
  reader.closeSnapshot();
});

Deno.test("documents are imported with their ids and creation times, into tables with the numbers they come from", () => {
  using origin = new TestDatabase(tables);
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

Deno.test("[FA14] creation times from elsewhere lie between 1970 and a day from now", () => {
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
