/** Mutations and queries: ts, creation times, reads of own writes, use after the end, errors for common mistakes. */
import assert from "node:assert/strict";
import { decodeId, EngineError } from "../../mod/engine/mod.ts";
import type { EngineErrorCode, WriteTransaction } from "../../mod/engine/mod.ts";
import { anyTable, TestDatabase } from "./support.ts";

const tables = {
  items: anyTable({
    indexes: [{ name: "by_n", fields: ["n"] }, { name: "by_author", fields: ["author.name", "n"] }],
  }),
  others: anyTable({ searchIndexes: [{ name: "by_text", searchField: "text", filterFields: [] }] }),
};

function engineError(code: EngineErrorCode, message: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof EngineError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}

Deno.test("ts grows by one for each mutation that changes a document, and for no other", () => {
  using db = new TestDatabase(tables);
  const ts = (run: (tx: WriteTransaction) => unknown) => {
    const { entry } = db.commit(run);
    if (entry !== null) assert.equal(entry.ts, db.writer.ts);
    return [entry === null, db.writer.ts];
  };
  let id = "";
  assert.deepEqual(ts((tx) => id = tx.insert("items", { n: 1 })), [false, 1]);
  assert.deepEqual(ts(() => {}), [true, 1]);
  assert.deepEqual(ts((tx) => tx.get(id)), [true, 1]);
  assert.deepEqual(ts((tx) => tx.delete(tx.insert("items", {}))), [true, 1]);
  assert.deepEqual(ts((tx) => tx.patch(id, { n: 1 })), [true, 1]);
  assert.deepEqual(ts((tx) => (tx.patch(id, { n: 2 }), tx.patch(id, { n: 1 }))), [true, 1]);
  assert.deepEqual(ts((tx) => (tx.patch(id, { n: 2 }), tx.patch(id, { n: 3 }))), [false, 2]);
  assert.deepEqual(ts((tx) => tx.delete(id)), [false, 3]);
  db.writer.openGroup();
  db.writer.saveRecord({ sessionId: "s", requestId: 1, principal: null }, "answer");
  db.writer.commitGroup("text");
  assert.equal(db.writer.ts, 3);
  db.reopen();
  assert.equal(db.writer.ts, 3);
});

Deno.test("an entry has the keys of every index, changed or not, and the document's JSON", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("items", { n: 1 }));
  const { entry } = db.commit((tx) => tx.patch(id, { n: 2 }));
  const change = entry?.changes[0];
  assert.ok(change !== undefined && entry?.changes.length === 1);
  assert.deepEqual([change.table, change.tableNumber, change.id], ["items", decodeId(id)?.tableNumber, id]);
  assert.equal(entry?.at, db.now);
  assert.equal((JSON.parse(change.doc ?? "") as { n: number }).n, 2);
  const keys = new Map(change.keys.map(([space, before, after]) => [space, [before, after]]));
  assert.deepEqual([...keys.keys()], ["t1", "i1", "i2", "i3"]);
  assert.deepEqual(keys.get("t1"), [id, id]);
  const [[before, after], [timeBefore, timeAfter]] = [keys.get("i2") ?? [], keys.get("i1") ?? []];
  assert.ok(typeof before === "string" && typeof after === "string" && before < after);
  assert.equal(timeBefore, timeAfter);
});

Deno.test("creation times strictly increase with any clock, also after rollback and restart", () => {
  using db = new TestDatabase(tables);
  const times: number[] = [];
  const insert = () =>
    times.push(db.commit((tx) => tx.get(tx.insert("items", {}))?._creationTime ?? 0).result);
  insert();
  insert();
  db.now -= 60_000;
  insert();
  db.writer.openGroup();
  const undone = db.writer.beginMutation({ at: db.now + 1e6 });
  undone.insert("items", {});
  db.writer.rollbackMutation();
  db.writer.commitGroup("");
  insert();
  db.reopen();
  insert();
  db.now += 120_000;
  insert();
  const step = 2 ** -10;
  const first = 1_700_000_000_000;
  assert.deepEqual(times, [
    first,
    first + step,
    first + 2 * step,
    first + 3 * step,
    first + 4 * step,
    first + 60_000,
  ]);
});

Deno.test("a snapshot does not change while it is open", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("items", { n: 1 }));
  assert.equal(db.reader.openSnapshot(), 1);
  db.commit((tx) => tx.patch(id, { n: 2 }));
  assert.equal(db.reader.beginQuery().get(id)?.["n"], 1);
  db.reader.closeSnapshot();
  assert.equal(db.reader.openSnapshot(), 2);
  assert.equal(db.reader.beginQuery().get(id)?.["n"], 2);
  db.reader.closeSnapshot();
});

