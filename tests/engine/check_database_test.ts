/** The complete check: a valid database passes, and each kind of damage is found and named. */
import assert from "node:assert/strict";
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite";
import {
  checkDatabase,
  checkDatabaseSchema,
  openWriterDatabase,
  UnusableDatabaseError,
} from "../../mod/engine/mod.ts";
import { anyTable, TemporaryDatabase, TestDatabase } from "./support.ts";

const DOCUMENTS = 300;
const PAGE_BYTES = 4096;
const tables = {
  empty: anyTable(),
  notes: anyTable({
    indexes: [{ name: "by_author", fields: ["author"] }, { name: "by_place", fields: ["place.x", "n"] }],
    searchIndexes: [{ name: "by_body", searchField: "body", filterFields: ["author"] }],
    vectorIndexes: [{ name: "by_vector", vectorField: "vector", dimensions: 3, filterFields: ["author"] }],
  }),
};

/** A database with documents in every kind of index; some are updated, deleted, or without text or vector. */
function filledDatabase(): TestDatabase {
  const db = new TestDatabase(tables);
  const ids = db.commit((tx) =>
    Array.from({ length: DOCUMENTS }, (_, n) =>
      tx.insert("notes", {
        n,
        author: `a${n % 7}`,
        ...(n % 3 > 0 && { body: `words and ${n}` }),
        ...(n % 2 > 0 && { vector: [n, 1, -n] }),
        place: { x: n / 3 },
      }))
  ).result;
  db.commit((tx) => {
    for (const [n, id] of ids.entries()) {
      if (n % 5 === 0) tx.delete(id);
      else if (n % 4 === 0) tx.patch(id, { author: "changed", body: "other" });
    }
  });
  return db;
}

/** Changes the file directly, without SQLite's protection. */
function tamper(path: string, sql: string): void {
  const options = { defensive: false } as DatabaseSyncOptions;
  using db = new DatabaseSync(path, options) as DatabaseSync & Disposable;
  db.exec(`PRAGMA trusted_schema = ON; ${sql}`);
}

function reasonFor(path: string): string {
  let reason = "";
  assert.throws(() => checkDatabase(path), (error) => {
    assert.ok(error instanceof UnusableDatabaseError, String(error));
    assert.equal(error.code, "unusable_database");
    reason = error.reason;
    return true;
  });
  return reason;
}

/** Returns the number of an index in a table of `filled`. */
function indexNumber(path: string, name: string): number {
  using db = new DatabaseSync(path, { readOnly: true }) as DatabaseSync & Disposable;
  const row = db.prepare(
    `SELECT i.number FROM syncline_indexes i JOIN syncline_tables t ON t.number = i.tableNumber
     WHERE i.name = ? AND t.name = 'notes'`,
  ).get(name);
  return Number(row?.["number"]);
}

/** Returns all pages except the free ones, whose contents do not matter. */
function pagesInUse(path: string): number[] {
  using db = new DatabaseSync(path, { readOnly: true }) as DatabaseSync & Disposable;
  return db.prepare("SELECT pageno FROM dbstat").all().map(({ pageno }) => Number(pageno));
}

Deno.test("[RS1] a valid database passes the check, which returns its ts, tables and documents", () => {
  using db = filledDatabase();
  assert.deepEqual(checkDatabase(db.path), { ts: 2, tables: 2, documents: DOCUMENTS * 4 / 5 });
});

Deno.test("[RS1] a new database passes the check", () => {
  using folder = new TemporaryDatabase();
  openWriterDatabase(folder.path)[Symbol.dispose]();
  assert.deepEqual(checkDatabase(folder.path), { ts: 0, tables: 0, documents: 0 });
});

Deno.test("[RS2] missing, foreign and newer files and files that are no database are refused with the reason", () => {
  using folder = new TemporaryDatabase();
  assert.match(reasonFor(folder.path), /unable to open/);
  Deno.writeTextFileSync(folder.path, "no database at all\n".repeat(300));
  assert.equal(reasonFor(folder.path), "it is not a database");
  Deno.removeSync(folder.path);
  tamper(folder.path, "CREATE TABLE theirs (x)");
  assert.equal(reasonFor(folder.path), "it is an SQLite database of another program");
  Deno.removeSync(folder.path);
  openWriterDatabase(folder.path)[Symbol.dispose]();
  tamper(folder.path, "PRAGMA user_version = 99");
  assert.match(reasonFor(folder.path), /a newer version of the server wrote it \(format 99/);
});

Deno.test("[RS2] truncated and overwritten pages are found", () => {
  using db = filledDatabase();
  tamper(db.path, "PRAGMA wal_checkpoint(TRUNCATE)");
  const bytes = Deno.readFileSync(db.path);
  using cut = new TemporaryDatabase();
  Deno.writeFileSync(cut.path, bytes.subarray(0, bytes.length - 2 * PAGE_BYTES));
  reasonFor(cut.path);
  const missed: number[] = [];
  for (const page of pagesInUse(db.path)) {
    using broken = new TemporaryDatabase();
    const copy = bytes.slice();
    crypto.getRandomValues(copy.subarray((page - 1) * PAGE_BYTES, (page - 1) * PAGE_BYTES + 512));
    Deno.writeFileSync(broken.path, copy);
    try {
      checkDatabase(broken.path);
      missed.push(page);
    } catch (error) {
      assert.ok(error instanceof UnusableDatabaseError, String(error));
    }
  }
  assert.deepEqual(missed, []);
});

const damages: readonly {
  readonly rule?: "FA13" | "FA14";
  readonly name: string;
  readonly sql: (number: (index: string) => number) => string;
  readonly reason: RegExp;
}[] = [
  {
    name: "a missing table of the engine",
    sql: () => "DROP TABLE syncline_records_1",
    reason: /table syncline_records_1 is missing/,
  },
  {
    name: "no newest commit",
    sql: () => "DELETE FROM syncline_state",
    reason: /the row with its newest commit is missing/,
  },
  {
    name: "missing documents of a table",
    sql: () => "DROP TABLE d1",
    reason: /the documents of table "empty" are missing/,
  },
  {
    name: "a missing field index",
    sql: (number) => `DROP TABLE i${number("by_author")}`,
    reason: /index "by_author" of table "notes" is missing/,
  },
  {
    name: "a missing search index",
    sql: (number) => `DROP TABLE s${number("by_body")}`,
    reason: /index "by_body" of table "notes" is missing/,
  },
  {
    name: "a missing table of a vector index",
    sql: (number) => `DROP TABLE w${number("by_vector")}`,
    reason: /index "by_vector" of table "notes" is missing/,
  },
  {
    name: "an index without a table",
    sql: () => "UPDATE syncline_indexes SET tableNumber = 77 WHERE name = 'by_author'",
    reason: /index "by_author" belongs to table 77, which does not exist/,
  },
  {
    name: "an index of an unknown kind",
    sql: () => "UPDATE syncline_indexes SET kind = 'magic' WHERE name = 'by_author'",
    reason: /unknown kind "magic"/,
  },
  {
    name: "a missing index entry",
    sql: (number) => `DELETE FROM i${number("by_place")} WHERE rid = (SELECT rid FROM d2 LIMIT 1 OFFSET 150)`,
    reason: /index "by_place" of table "notes" does not hold document "\w{26}" as it is/,
  },
  {
    name: "an extra index entry",
    sql: (number) =>
      `INSERT INTO i${number("by_author")} SELECT key || 'x', rid FROM i${number("by_author")} LIMIT 1`,
    reason: /index "by_author" of table "notes" has 241 entries and the documents require 240/,
  },
  {
    name: "an extra index entry without a key",
    sql: (number) =>
      `INSERT INTO i${number("by_author")} SELECT '', rid FROM i${number("by_author")} LIMIT 1`,
    reason: /index "by_author" of table "notes" has 241 entries and the documents require 240/,
  },
  {
    name: "an index entry of the wrong document",
    sql: (number) => `UPDATE i${number("by_author")} SET rid = rid + 1 WHERE rid = 299`,
    reason: /index "by_author" of table "notes" does not hold document/,
  },
  {
    name: "a document that changed without its index",
    sql: () => `UPDATE d2 SET doc = replace(doc, '"n":7', '"n":8') WHERE doc LIKE '%"n":7,%'`,
    reason: /index "by_place" of table "notes" does not hold document/,
  },
  {
    name: "a document without its entry in a search index",
    sql: (number) =>
      `DELETE FROM s${number("by_body")}_docsize WHERE id = (SELECT min(id) FROM s${
        number("by_body")
      }_docsize)`,
    reason: /index "by_body" of table "notes" does not hold document/,
  },
  {
    name: "a search index entry without a document",
    sql: (number) => `INSERT INTO s${number("by_body")} (rowid, text, filters) VALUES (9999, 'stray', '')`,
    reason: /index "by_body" of table "notes" has \d+ entries/,
  },
  {
    name: "a damaged search index",
    sql: (number) => `UPDATE s${number("by_body")}_data SET block = x'0000' WHERE id > 100`,
    reason: /fts5/,
  },
  {
    name: "a vector of another length",
    sql: (number) => `UPDATE v${number("by_vector")} SET vector = x'00000000'`,
    reason: /index "by_vector" of table "notes" does not hold document/,
  },
  {
    name: "a vector without a document",
    sql: (number) => `INSERT INTO v${number("by_vector")} VALUES (9999, x'000000000000000000000000', '[]')`,
    reason: /index "by_vector" of table "notes" has \d+ entries/,
  },
  {
    name: "a document that is not JSON",
    sql: () => "UPDATE d2 SET doc = '{' WHERE rid = 42",
    reason: /document "\w{26}" of table "notes" is not JSON/,
  },
  {
    name: "a document under another id",
    sql: () => "UPDATE d2 SET id = substr(id, 1, 24) || '00' WHERE rid = 42",
    reason: /document "\w{26}" of table "notes" has another id/,
  },
  {
    name: "a trigger, which would run with the next write",
    sql: () => "CREATE TRIGGER t AFTER INSERT ON d2 BEGIN DELETE FROM d2; END",
    reason: /it has the trigger "t"/,
  },
  {
    name: "other columns of documents",
    sql: () => "ALTER TABLE d2 RENAME COLUMN doc TO other",
    reason: /its table d2 differs from what the server creates/,
  },
  {
    name: "other columns of replay records",
    sql: () => "ALTER TABLE syncline_records_2 RENAME COLUMN answers TO other",
    reason: /its table syncline_records_2 differs from what the server creates/,
  },
  {
    name: "other columns of a vector index",
    sql: (number) => `ALTER TABLE w${number("by_vector")} RENAME COLUMN seq TO other`,
    reason: /its table w\d+ differs from what the server creates/,
  },
  {
    rule: "FA13",
    name: "an index with an expression, which is slow for each row",
    sql: () => "CREATE INDEX slow ON d2 (length(hex(zeroblob(length(doc)))))",
    reason: /it has the index "slow", which the server never creates/,
  },
  {
    rule: "FA13",
    name: "a plain index",
    sql: () => "CREATE INDEX more ON d2 (doc)",
    reason: /it has the index "more"/,
  },
  {
    rule: "FA13",
    name: "a view instead of a table that is read",
    sql: () =>
      `DROP TABLE syncline_tables; CREATE VIEW syncline_tables AS
       WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n)
       SELECT number, 'x' AS name, NULL AS fingerprint FROM n`,
    reason: /it has the view "syncline_tables"/,
  },
  {
    rule: "FA13",
    name: "a view",
    sql: () => "CREATE VIEW v AS SELECT * FROM d2",
    reason: /it has the view "v"/,
  },
  {
    rule: "FA13",
    name: "a generated column",
    sql: () => "ALTER TABLE d2 ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(doc)) VIRTUAL",
    reason: /its table d2 differs from what the server creates/,
  },
  {
    rule: "FA13",
    name: "a foreign column",
    sql: () => "ALTER TABLE syncline_state ADD COLUMN more TEXT",
    reason: /its table syncline_state differs from what the server creates/,
  },
  {
    rule: "FA13",
    name: "a foreign table",
    sql: () => "CREATE TABLE theirs (x)",
    reason: /it has the table "theirs"/,
  },
  {
    rule: "FA13",
    name: "a foreign virtual table",
    sql: () => "CREATE VIRTUAL TABLE theirs USING fts5 (x)",
    reason: /it has the table "theirs/,
  },
  {
    rule: "FA13",
    name: "a search index with other options",
    sql: (number) =>
      `DROP TABLE s${number("by_body")}; CREATE VIRTUAL TABLE s${
        number("by_body")
      } USING fts5 (text, filters)`,
    reason: /its table s\d+ differs from what the server creates/,
  },
  {
    rule: "FA14",
    name: "an invalid creation time",
    sql: () => `UPDATE d2 SET doc = json_set(doc, '$._creationTime', 1e300) WHERE rid = 42`,
    reason: /has 1e\+300 for its creation time/,
  },
  {
    rule: "FA14",
    name: "an invalid newest creation time",
    sql: () => "UPDATE syncline_state SET lastCreationTime = 1e300",
    reason: /newest commit is missing or invalid/,
  },
];

for (const { rule = "RS2", name, sql, reason } of damages) {
  Deno.test(`[${rule}] found by the check: ${name}`, () => {
    using db = filledDatabase();
    tamper(db.path, sql((index) => indexNumber(db.path, index)));
    assert.match(reasonFor(db.path), reason);
  });
}

Deno.test("[FA13] the schema of a database with a journal and all kinds of index is as expected", () => {
  using folder = new TemporaryDatabase();
  {
    using db = openWriterDatabase(folder.path, { journal: { pendingBytesMax: 1_000 } });
    db.applySchema(new Map(Object.entries(tables)));
    // Indexes that were dropped and created again, and a table that is no longer in the schema.
    db.applySchema(new Map(Object.entries({ empty: anyTable(), more: anyTable() })));
    db.applySchema(new Map(Object.entries(tables)));
  }
  checkDatabaseSchema(folder.path);
  assert.equal(checkDatabase(folder.path).tables, 3);
  tamper(folder.path, "CREATE TRIGGER t AFTER UPDATE ON syncline_state BEGIN DELETE FROM d1; END");
  assert.throws(() => checkDatabaseSchema(folder.path), /it has the trigger "t"/);
});
