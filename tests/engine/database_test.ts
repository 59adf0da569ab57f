/** The database file: reopening, groups, a full disk, and foreign files. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { EngineError, openReaderDatabase, openWriterDatabase } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const tables = { items: anyTable({ indexes: [{ name: "by_n", fields: ["n"] }] }) };

Deno.test("a database keeps everything when it is closed and opened again", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("items", { n: 1 }));
  assert.equal(db.writer.lastGroup(), "");
  db.writer.openGroup();
  db.writer.beginMutation({ at: 1 }).patch(id, { n: 2 });
  db.writer.releaseMutation();
  db.writer.commitGroup("the last group");
  db.reopen();
  assert.equal(db.writer.lastGroup(), "the last group");
  assert.equal(db.writer.ts, 2);
  assert.equal(db.commit((tx) => tx.get(id)?.["n"]).result, 2);
});

Deno.test("a group that only read writes nothing", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("items", { n: 1 }));
  const { size } = Deno.statSync(`${db.path}-wal`);
  db.writer.openGroup();
  assert.equal(db.writer.beginMutation({ at: 1 }).get(id)?.["n"], 1);
  assert.equal(db.writer.releaseMutation(), null);
  db.writer.commitGroup("read");
  assert.equal(db.writer.lastGroup(), "");
  assert.equal(Deno.statSync(`${db.path}-wal`).size, size);
  db.writer.openGroup();
  db.writer.saveRecord({ sessionId: "s", principal: "", requestId: 1 }, "answer");
  db.writer.commitGroup("recorded");
  assert.equal(db.writer.lastGroup(), "recorded");
});

Deno.test("a new database has no group and ts 0", () => {
  using folder = new TemporaryDatabase();
  using db = openWriterDatabase(folder.path);
  assert.equal(db.lastGroup(), null);
  assert.equal(db.ts, 0);
});

Deno.test("closing during an open group rolls it back", () => {
  using db = new TestDatabase(tables);
  db.writer.openGroup();
  db.writer.beginMutation({ at: 1 }).insert("items", { n: 1 });
  db.reopen();
  assert.equal(db.query((tx) => [...tx.scan("items", "by_n", { eq: [] }, { order: "asc" })].length), 0);
});

Deno.test("calls in the wrong order are refused", () => {
  using db = new TestDatabase(tables);
  assert.throws(() => db.writer.beginMutation({ at: 1 }), /No group is open/);
  assert.throws(() => db.writer.releaseMutation(), /No group is open/);
  assert.throws(() => db.writer.commitGroup(""), /No group is open/);
  assert.throws(() => db.reader.beginQuery(), /No snapshot is open/);
  db.writer.openGroup();
  assert.throws(() => db.writer.releaseMutation(), /No mutation is open/);
  assert.throws(() => db.writer.openGroup(), /open already/);
  assert.throws(() => db.writer.applySchema(db.schema), /inside an open group/);
  db.writer.beginMutation({ at: 1 });
  assert.throws(() => db.writer.beginMutation({ at: 1 }), /open already/);
  assert.throws(() => db.writer.commitGroup(""), /Release or roll back/);
  db.writer.rollbackGroup();
});

Deno.test("a full disk fails the group even if app code catches the error, and the database works after the rollback", () => {
  using db = new TestDatabase(tables, { pagesMax: 60 });
  const { result: kept } = db.commit((tx) => tx.insert("items", { n: 1 }));
  db.writer.openGroup();
  const tx = db.writer.beginMutation({ at: db.now });
  assert.throws(() => {
    for (let n = 0;; n++) tx.insert("items", { n, text: "x".repeat(1_000) });
  }, /full/);
  assert.throws(() => tx.patch(kept, { n: 2 }), (error) => {
    assert.ok(error instanceof EngineError);
    assert.equal(error.code, "failed_group");
    return true;
  });
  assert.throws(() => db.writer.releaseMutation(), /failed to write/);
  assert.throws(
    () => db.writer.saveRecord({ sessionId: "s", requestId: 1, principal: null }, ""),
    /failed to write/,
  );
  assert.throws(() => db.writer.commitGroup(""), /failed to write/);
  db.writer.rollbackGroup();
  assert.equal(db.writer.ts, 1);
  assert.deepEqual(
    db.query((tx) => [...tx.scan("items", "by_n", { eq: [] }, { order: "asc" })].map(({ doc }) => doc._id)),
    [kept],
  );
  db.commit((tx) => tx.patch(kept, { n: 2 }));
  assert.equal(db.query((tx) => tx.get(kept))?.["n"], 2);
});

Deno.test("a full disk during the records or the commit fails the group too", () => {
  using db = new TestDatabase(tables, { pagesMax: 60 });
  const big = "x".repeat(300_000);
  db.writer.openGroup();
  db.writer.beginMutation({ at: db.now }).insert("items", { n: 1 });
  db.writer.releaseMutation();
  db.writer.saveRecord({ sessionId: "s", requestId: 1, principal: null }, big);
  assert.throws(() => db.writer.commitGroup(""), /full/);
  db.writer.rollbackGroup();
  assert.equal(db.writer.findRecord({ sessionId: "s", requestId: 1, principal: null }), null);
  db.writer.openGroup();
  db.writer.beginMutation({ at: db.now }).insert("items", { n: 1 });
  db.writer.releaseMutation();
  assert.throws(() => db.writer.commitGroup(big), /full/);
  db.writer.rollbackGroup();
  assert.equal(db.writer.ts, 0);
  const { entry } = db.commit((tx) => tx.insert("items", { n: 3 }));
  assert.equal(entry?.ts, 1);
});

Deno.test("a reader refuses a database that no writer has set up", () => {
  using folder = new TemporaryDatabase();
  new DatabaseSync(folder.path).close();
  assert.throws(() => openReaderDatabase(folder.path), /no writer has opened it yet/);
});

function refusal(path: string): string {
  let message = "";
  for (const open of [openWriterDatabase, openReaderDatabase]) {
    assert.throws(() => open(path), (error) => {
      assert.ok(error instanceof EngineError, String(error));
      assert.equal(error.code, "unusable_database");
      message = error.message;
      return true;
    });
  }
  return message;
}

Deno.test("files of other programs, of newer versions, and files that are not databases are refused with their path", () => {
  using folder = new TemporaryDatabase();
  Deno.writeTextFileSync(folder.path, "hello, this is not a database\n".repeat(200));
  assert.match(refusal(folder.path), /it is not a database; restore a backup/);
  Deno.removeSync(folder.path);
  const foreign = new DatabaseSync(folder.path);
  foreign.exec("CREATE TABLE theirs (x)");
  assert.match(refusal(folder.path), /another program/);
  foreign.exec("DROP TABLE theirs");
  foreign.close();
  openWriterDatabase(folder.path)[Symbol.dispose]();
  const newer = new DatabaseSync(folder.path);
  newer.exec("PRAGMA user_version = 99");
  newer.close();
  assert.match(refusal(folder.path), /newer version of the server wrote it \(format 99/);
});

Deno.test("a damaged file is refused with advice", () => {
  using folder = new TemporaryDatabase();
  {
    using db = openWriterDatabase(folder.path);
    db.applySchema(schemaOf(tables));
  }
  using file = Deno.openSync(folder.path, { read: true, write: true });
  file.seekSync(100, Deno.SeekMode.Start);
  file.writeSync(new Uint8Array(2_000).fill(0xaa));
  assert.match(refusal(folder.path), /the database is damaged; restore a backup/);
});

Deno.test("an index that does not match its table stops the write", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("items", { n: 1 }));
  const other = new DatabaseSync(db.path);
  other.exec("DELETE FROM i2");
  other.close();
  assert.throws(
    () => db.commit((tx) => tx.patch(id, { n: 2 })),
    /table "items" and its indexes do not agree/,
  );
  assert.equal(db.query((tx) => tx.get(id))?.["n"], 1);
});
