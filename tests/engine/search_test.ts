/** Full-text search: results, their order, and which changes touch a search. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  checkDatabase,
  openDatabaseSnapshot,
  openHistoryReplay,
  openJournalReader,
  openReaderDatabase,
  openWriterDatabase,
  readSetTouches,
} from "../../mod/engine/mod.ts";
import { loadTables } from "../../mod/engine/catalog.ts";
import { Connection, FORMAT_VERSION } from "../../mod/engine/connection.ts";
import { createSearchIndexSql, prepareSearch } from "../../mod/engine/search/search_index.ts";
import type { Doc, ReadTransaction, Value, WriteTransaction } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const by_body = { name: "by_body", searchField: "body", filterFields: ["channel", "author.name"] };
const tables = { notes: anyTable({ searchIndexes: [by_body] }) };

function find(
  tx: Pick<ReadTransaction, "search">,
  query: string,
  filters: readonly (readonly [string, Value | undefined])[] = [],
): Doc[] {
  return [...tx.search("notes", "by_body", { query, filters })];
}

function bodies(
  db: TestDatabase,
  query: string,
  filters: readonly (readonly [string, Value | undefined])[] = [],
): unknown[] {
  return db.query((tx) => find(tx, query, filters).map((doc) => doc["body"]));
}

Deno.test("a query consists of words only: operators and quotes have no effect", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => tx.insert("notes", { body: "text filters near or and not x" }));
  const hostile = [
    '"',
    "*",
    "text:",
    "filters : f0x1",
    "a AND",
    "NEAR(",
    "NOT",
    "-x",
    "^x",
    "{x}",
    'x"*',
    "(",
    "\u0000",
    "\ud800",
    "x'",
    "--",
    ";",
    "",
    " ",
    "🎉",
    "x ".repeat(5_000),
    "y".repeat(100_000),
  ];
  for (const query of hostile) {
    assert.doesNotThrow(() => bodies(db, query), JSON.stringify(query.slice(0, 20)));
  }
  assert.equal(bodies(db, "NOT").length, 1);
  assert.equal(bodies(db, "").length, 0);
  fc.assert(fc.property(fc.string({ unit: "binary" }), (query) => void bodies(db, query)));
});

Deno.test("filters match documents whose fields have exactly these values", () => {
  using db = new TestDatabase(tables);
  const values: (Value | undefined)[] = [undefined, null, 0, 1, "1", "a", "A", true, [1], { x: 1 }];
  db.commit((tx) => {
    values.forEach((channel, n) =>
      tx.insert("notes", { body: `word ${n}`, channel, author: { name: n % 2 } })
    );
  });
  values.forEach((channel, n) => {
    assert.deepEqual(bodies(db, "word", [["channel", channel]]), [`word ${n}`]);
    assert.deepEqual(bodies(db, "word", [["channel", channel], ["author.name", (n + 1) % 2]]), []);
  });
  assert.equal(bodies(db, "word", [["author.name", 1]]).length, 5);
});

const vocabulary = ["ant", "antler", "bee", "cow", "cowbell", "dog"];
const phrase = fc.array(fc.constantFrom(...vocabulary), { minLength: 0, maxLength: 4 }).map((words) =>
  words.join(" ")
);
const change = fc.oneof(
  fc.record({ do: fc.constant("insert" as const), body: phrase, channel: fc.nat(2) }),
  fc.record({ do: fc.constant("patch" as const), pick: fc.nat(), body: phrase, channel: fc.nat(2) }),
  fc.record({ do: fc.constant("hide" as const), pick: fc.nat() }),
  fc.record({ do: fc.constant("delete" as const), pick: fc.nat() }),
  fc.record({ do: fc.constant("search" as const), query: phrase }),
);

function expected(docs: readonly Doc[], query: string, channel: number | null): string[] {
  const words = query.split(" ").filter((word) => word !== "");
  const last = words.at(-1);
  return docs.filter((doc) => {
    if (typeof doc["body"] !== "string" || (channel !== null && doc["channel"] !== channel)) return false;
    return doc["body"].split(" ").some((word) =>
      words.includes(word) || (last !== undefined && word.startsWith(last))
    );
  }).map((doc) => doc._id).sort();
}

Deno.test("a search finds exactly the matching documents, through writes, rollbacks and commits", () => {
  const history = fc.array(
    fc.record({
      mutations: fc.array(
        fc.record({
          changes: fc.array(change, { maxLength: 8 }),
          undoFrom: fc.option(fc.nat(8), { nil: null }),
          release: fc.boolean(),
        }),
        { maxLength: 4 },
      ),
      commit: fc.boolean(),
      query: phrase,
      channel: fc.option(fc.nat(2), { nil: null }),
    }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(history, (groups) => {
      using db = new TestDatabase(tables);
      const all = (tx: ReadTransaction) =>
        [...tx.scan("notes", "by_creation_time", { eq: [] }, { order: "asc" })].map(({ doc }) => doc);
      const check = (tx: ReadTransaction, query: string, channel: number | null) => {
        const found = find(tx, query, channel === null ? [] : [["channel", channel]]);
        assert.deepEqual(found.map((doc) => doc._id).sort(), expected(all(tx), query, channel));
      };
      const apply = (tx: WriteTransaction, step: typeof change extends fc.Arbitrary<infer T> ? T : never) => {
        if (step.do === "insert") return void tx.insert("notes", { body: step.body, channel: step.channel });
        if (step.do === "search") return check(tx, step.query, null);
        const docs = all(tx);
        const id = docs[step.pick % Math.max(1, docs.length)]?._id;
        if (id === undefined) return;
        if (step.do === "patch") tx.patch(id, { body: step.body, channel: step.channel });
        else if (step.do === "hide") tx.patch(id, { body: undefined });
        else tx.delete(id);
      };
      for (const { mutations, commit, query, channel } of groups) {
        db.writer.openGroup();
        for (const { changes, undoFrom, release } of mutations) {
          const tx = db.writer.beginMutation({ at: db.now++ });
          let savepoint = null;
          for (const [index, step] of changes.entries()) {
            if (index === undoFrom) savepoint = tx.savepoint();
            apply(tx, step);
          }
          savepoint?.rollback();
          if (release) db.writer.releaseMutation();
          else db.writer.rollbackMutation();
        }
        if (commit) db.writer.commitGroup("");
        else db.writer.rollbackGroup();
        db.query((tx) => check(tx, query, channel));
      }
    }),
    { numRuns: 100 },
  );
});

Deno.test("a search is touched only by changes to indexed fields and to documents it returned", () => {
  using db = new TestDatabase(tables);
  const { result: [found = "", other = ""] } = db.commit((tx) => [
    tx.insert("notes", { body: "needle", extra: 0 }),
    tx.insert("notes", { body: "hay", extra: 0 }),
  ]);
  const touched = (run: (tx: WriteTransaction) => unknown) => {
    const readSet = db.query((tx) => (find(tx, "needle").length, tx.readSet()));
    const { entry } = db.commit(run);
    assert.ok(entry !== null);
    return readSetTouches(readSet, entry);
  };
  assert.equal(touched((tx) => tx.patch(other, { extra: 1 })), false);
  assert.equal(touched((tx) => tx.insert("notes", { extra: 1 })), false);
  assert.equal(touched((tx) => tx.patch(found, { extra: 1 })), true);
  assert.equal(touched((tx) => tx.patch(other, { channel: "x" })), true);
  assert.equal(touched((tx) => tx.patch(other, { body: "a needle" })), true);
  assert.equal(touched((tx) => tx.insert("notes", { body: "straw" })), true);
  assert.equal(touched((tx) => tx.delete(other)), true);
});

Deno.test("a loop that rewrites its results visits each document once", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => {
    for (let n = 0; n < 300; n++) tx.insert("notes", { body: `word ${n}` });
    const seen: string[] = [];
    for (const doc of tx.search("notes", "by_body", { query: "word", filters: [] })) {
      seen.push(doc._id);
      tx.patch(doc._id, { body: "word word word" });
      if (seen.length < 50) tx.insert("notes", { body: "word" });
      if (seen.length > 1_000) break;
    }
    assert.equal(new Set(seen).size, seen.length);
    assert.ok(seen.length >= 300 && seen.length <= 350);
  });
});

Deno.test("RP23 equal scores are ordered by creation time, then id, at every page boundary", () => {
  using db = new TestDatabase(tables);
  const count = 600;
  const { result: ids } = db.commit((tx) =>
    Array.from({ length: count }, (_, n) => tx.insert("notes", { body: n % 3 === 0 ? "word word" : "word" }))
  );
  // Documents that are stored again get new row ids; some share a creation time.
  db.commit((tx) => {
    for (const [n, id] of ids.entries()) {
      if (n % 5 > 1) continue;
      const doc = tx.get(id) ?? assert.fail();
      tx.delete(id);
      const _creationTime = n % 5 === 0 ? 1_700_000_000_000 : doc._creationTime;
      tx.importDocument("notes", { ...doc, _creationTime }, { mode: "insert" });
    }
  });
  const expected = db.query((tx) => [...tx.scan("notes", "by_creation_time", { eq: [] }, { order: "asc" })])
    .map(({ doc }) => doc);
  const [often, once] = [
    expected.filter(({ body }) => body === "word word"),
    expected.filter(({ body }) => body === "word"),
  ];
  const found = db.query((tx) => find(tx, "word"));
  assert.deepEqual(found.map(({ _id }) => _id), [...often, ...once].map(({ _id }) => _id));
});

Deno.test("RP23 scores depend on the documents and not on earlier writes", () => {
  using db = new TestDatabase(tables);
  using other = new TestDatabase(tables);
  const bodies = ["ant bee cow", "bee bee", "ant dog", "cow cow dog dog ant", "bee"];
  const { result: ids } = db.commit((tx) => bodies.map((body) => tx.insert("notes", { body })));
  // Updates and deletions leave the average length and the number of documents as they were.
  for (let round = 0; round < 10; round++) {
    db.commit((tx) => {
      const extra = tx.insert("notes", { body: "ant ".repeat(50) });
      for (const id of ids) tx.patch(id, { body: "dog ".repeat(20) });
      tx.delete(extra);
    });
  }
  db.commit((tx) => ids.forEach((id, n) => tx.patch(id, { body: bodies[n] })));
  other.commit((tx) => {
    for (const body of bodies) tx.insert("notes", { body });
  });
  for (const query of ["ant", "bee", "cow dog", "ant bee dog"]) {
    assert.deepEqual(scores(db, query), scores(other, query));
  }
});

/** Bodies with their scores. */
function scores(db: TestDatabase, query: string): unknown[] {
  using connection = Connection.openReader(db.path);
  const table = loadTables(connection, db.schema).named("notes");
  const [index = assert.fail()] = table.indexes.searches;
  const { match } = prepareSearch(index, { query, filters: [] });
  return connection.statement(index.sql.best).all(match, 100).map(([rid, score]) => {
    const [, text] = connection.statement(table.sql.getRow).get(rid as number) ?? [];
    return [score, JSON.parse(String(text)).body];
  }).sort();
}

Deno.test("[RS2] a database of format 1 passes the check, can be searched, and gets new search indexes with its first write", () => {
  using folder = new TemporaryDatabase();
  const schema = schemaOf(tables);
  const ids: string[] = [];
  const write = (run: (tx: WriteTransaction) => void) => {
    using db = openWriterDatabase(folder.path);
    db.applySchema(schema);
    db.openGroup();
    run(db.beginMutation({ at: 1_700_000_000_000 }));
    db.releaseMutation();
    db.commitGroup("");
  };
  const found = () => {
    using reader = openReaderDatabase(folder.path);
    reader.useSchema(schema);
    reader.openSnapshot();
    return find(reader.beginQuery(), "word").map(({ _id }) => _id);
  };
  write((tx) => {
    for (let n = 0; n < 5; n++) ids.push(tx.insert("notes", { body: "word" }));
  });
  const [last = "", ...others] = ids.toReversed();
  toFormat1(folder.path);
  checkDatabase(folder.path);
  assert.deepEqual(found(), ids);
  write((tx) => tx.delete(last));
  assert.deepEqual(found(), others.toReversed());
  checkDatabase(folder.path);
  using db = Connection.openReader(folder.path);
  assert.equal(db.format, FORMAT_VERSION);
});

/** Converts a database whose documents all have the body `word` to format 1. */
function toFormat1(path: string): void {
  using db = Connection.openScratch(path);
  const [number] = db.statement("SELECT number FROM syncline_indexes WHERE name = 'by_body'").get() ?? [];
  db.execute(`DROP TABLE s${number}; ${createSearchIndexSql(Number(number), 1)};
    INSERT INTO s${number} (rowid, text, filters) SELECT rid, 'word', '' FROM d1 ORDER BY rid DESC;
    PRAGMA user_version = 1`);
}

Deno.test("[RS2] a restore upgrades a snapshot of format 1 before it replays the history", async () => {
  using folder = new TemporaryDatabase();
  using copy = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path, { journal: { pendingBytesMax: 2 ** 20 } });
  db.applySchema(schemaOf(tables));
  const ids: string[] = [];
  const write = (run: (tx: WriteTransaction) => void) => {
    db.openGroup();
    run(db.beginMutation({ at: 1_700_000_000_000 }));
    db.releaseMutation();
    db.commitGroup("");
  };
  write((tx) => {
    for (let n = 0; n < 5; n++) ids.push(tx.insert("notes", { body: "word" }));
  });
  {
    using snapshot = openDatabaseSnapshot(folder.path);
    await snapshot.copyTo(copy.path);
  }
  toFormat1(copy.path);
  const [first = "", second = "", ...others] = ids;
  write((tx) => {
    tx.patch(first, { body: "other" });
    tx.delete(second);
  });
  {
    using replay = openHistoryReplay(copy.path);
    using journal = openJournalReader(folder.path);
    for (const row of journal.read(replay.history?.seq ?? 0).rows) replay.take(row);
    await Array.fromAsync(replay.write());
  }
  checkDatabase(copy.path);
  using reader = openReaderDatabase(copy.path);
  reader.useSchema(schemaOf(tables));
  reader.openSnapshot();
  assert.deepEqual(find(reader.beginQuery(), "word").map(({ _id }) => _id), others);
});

Deno.test("an index added to a table with documents finds them, also after reopening", () => {
  using folder = new TemporaryDatabase();
  {
    using db = openWriterDatabase(folder.path);
    db.applySchema(schemaOf({ notes: anyTable() }));
    db.openGroup();
    const tx = db.beginMutation({ at: 1 });
    for (let n = 0; n < 600; n++) tx.insert("notes", { body: `note ${n}` });
    db.releaseMutation();
    db.commitGroup("");
    assert.deepEqual(db.applySchema(schemaOf(tables)).createdIndexes, ["notes.by_body"]);
  }
  using reader = openReaderDatabase(folder.path);
  reader.useSchema(schemaOf(tables));
  reader.openSnapshot();
  assert.deepEqual(find(reader.beginQuery(), "599").map((doc) => doc["body"]), ["note 599"]);
  assert.equal(find(reader.beginQuery(), "note").length, 600);
});
