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

Deno.test("a savepoint undoes later writes and ends later scans", () => {
  using db = new TestDatabase(tables);
  const { entry, result: id } = db.commit((tx) => {
    const id = tx.insert("items", { n: 1 });
    const outer = tx.savepoint();
    tx.patch(id, { n: 2 });
    const inner = tx.savepoint();
    tx.delete(id);
    const scan = tx.scan("items", "by_n", { eq: [] }, { order: "asc" });
    tx.insert("items", { n: 7 });
    assert.equal(scan.next().value?.doc["n"], 7);
    inner.rollback();
    assert.throws(() => scan.next(), engineError("ended", /undone/));
    assert.equal(tx.get(id)?.["n"], 2);
    const kept = tx.savepoint();
    tx.patch(id, { m: 1 });
    kept.release();
    kept.rollback();
    assert.deepEqual([tx.get(id)?.["n"], tx.get(id)?.["m"]], [2, 1]);
    outer.rollback();
    assert.deepEqual([tx.get(id)?.["n"], tx.get(id)?.["m"]], [1, undefined]);
    return id;
  });
  assert.deepEqual(entry?.changes.map((change) => change.id), [id]);
});

Deno.test("a scan returns the rows of its start although the loop inserts, moves and deletes", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => {
    for (let n = 0; n < 200; n++) tx.insert("items", { n });
    for (const order of ["asc", "desc"] as const) {
      const seen: unknown[] = [];
      for (const { doc } of tx.scan("items", "by_n", { eq: [] }, { order })) {
        seen.push(doc["n"]);
        tx.patch(doc._id, { n: (doc["n"] as number) + (order === "asc" ? 1_000 : -1_000) });
        tx.insert("others", {});
      }
      assert.equal(seen.length, 200);
      assert.equal(new Set(seen).size, 200);
    }
    let count = 0;
    for (const { doc } of tx.scan("others", "by_creation_time", { eq: [] }, { order: "asc" })) {
      count++;
      tx.delete(doc._id);
      tx.insert("others", {});
    }
    assert.equal(count, 400);
  });
});

Deno.test("a document that moves ahead of a scan twice is returned once, in its original state", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => {
    const ids = Array.from({ length: 100 }, (_, n) => tx.insert("items", { n }));
    const seen: unknown[] = [];
    for (const { doc } of tx.scan("items", "by_n", { eq: [] }, { order: "asc" })) {
      if (seen.length === 0) { for (const n of [50.5, 70.5, 60.5]) tx.patch(ids[99] ?? "", { n }); }
      seen.push(doc["n"]);
    }
    assert.deepEqual(seen, Array.from({ length: 100 }, (_, n) => n));
  });
});

Deno.test("transactions cannot be used after they end", () => {
  using db = new TestDatabase(tables);
  let leaked: WriteTransaction | undefined;
  const { result: id } = db.commit((tx) => (leaked = tx).insert("items", { n: 1 }));
  const ended = engineError("ended", /has ended/);
  assert.throws(() => leaked?.get(id), ended);
  assert.throws(() => leaked?.patch(id, { n: 2 }), ended);
  assert.throws(() => leaked?.insert("items", {}), ended);
  const query = db.query((tx) => tx);
  assert.throws(() => query.get(id), ended);
  const scan = db.query((tx) => {
    const scan = tx.scan("items", "by_n", { eq: [] }, { order: "asc" });
    return scan;
  });
  assert.throws(() => scan.next(), ended);
});

Deno.test("cursors continue after a key that was removed, and pages end where they ended", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => {
    for (let n = 0; n < 10; n++) tx.insert("items", { n });
  });
  const page = (options: { order: "asc" | "desc"; after?: string; until?: string }) =>
    db.query((tx) =>
      [...tx.scan("items", "by_n", { eq: [] }, options)].map(({ key, doc }) => ({
        key,
        n: doc["n"],
        id: doc._id,
      }))
    );
  for (const order of ["asc", "desc"] as const) {
    const rows = page({ order });
    const [third, sixth] = [rows[3], rows[6]];
    assert.ok(third !== undefined && sixth !== undefined);
    const between = () => page({ order, after: third.key, until: sixth.key }).map(({ n }) => n);
    assert.deepEqual(between(), rows.slice(4, 7).map(({ n }) => n));
    db.commit((tx) => (tx.delete(third.id), tx.delete(sixth.id)));
    assert.deepEqual(between(), rows.slice(4, 6).map(({ n }) => n));
    db.commit((tx) => (tx.insert("items", { n: third.n }), tx.insert("items", { n: sixth.n })));
  }
});

Deno.test("by_id accepts any bound and returns only ids within it", () => {
  using db = new TestDatabase(tables);
  const { result: ids } = db.commit((tx) => [1, 2, 3].map((n) => tx.insert("items", { n })).sort());
  const [low = "", middle = "", high = ""] = ids;
  const scan = (bounds: Parameters<WriteTransaction["scan"]>[2]) =>
    db.query((tx) => [...tx.scan("items", "by_id", bounds, { order: "asc" })].map(({ doc }) => doc._id));
  assert.deepEqual(scan({ eq: [middle] }), [middle]);
  assert.deepEqual(scan({ eq: [], lower: { value: low, inclusive: false } }), [middle, high]);
  assert.deepEqual(scan({ eq: [], upper: { value: middle, inclusive: true } }), [low, middle]);
  assert.deepEqual(scan({ eq: [], upper: { value: middle, inclusive: false } }), [low]);
  for (const value of [undefined, null, 5, true, "", "\u0000", " "]) {
    assert.deepEqual(scan({ eq: [], lower: { value, inclusive: true } }), ids, String(value));
    assert.deepEqual(scan({ eq: [], upper: { value, inclusive: true } }), [], String(value));
    assert.deepEqual(scan({ eq: [value] }), [], String(value));
  }
  for (const value of [[], {}, "\uffff", "~"]) {
    assert.deepEqual(scan({ eq: [], lower: { value, inclusive: true } }), []);
    assert.deepEqual(scan({ eq: [], upper: { value, inclusive: true } }), ids);
  }
  assert.deepEqual(scan({ eq: [], lower: { value: `${low}\u0000`, inclusive: true } }), [middle, high]);
});

Deno.test("a getter that writes the document being written gets an error, and the group continues", () => {
  using db = new TestDatabase({ items: anyTable({ indexes: [{ name: "by_a", fields: ["a"] }] }) });
  const { result: id } = db.commit((tx) => tx.insert("items", { a: 1 }));
  const meanwhile: Record<string, (tx: WriteTransaction) => void> = {
    deleted: (tx) => tx.delete(id),
    patched: (tx) => tx.patch(id, { a: 3 }),
  };
  for (const [what, write] of Object.entries(meanwhile)) {
    db.writer.openGroup();
    const tx = db.writer.beginMutation({ at: db.now });
    const fields = {
      get a(): number {
        write(tx);
        return 2;
      },
    };
    assert.throws(() => tx.patch(id, fields), /a getter or a validator wrote it/, what);
    db.writer.rollbackMutation();
    const other = db.writer.beginMutation({ at: db.now });
    assert.equal(other.get(id)?.["a"], 1);
    other.insert("items", { a: 9 });
    assert.notEqual(db.writer.releaseMutation(), null);
    db.writer.commitGroup("");
  }
});

Deno.test("a mutation whose index entries exceed a commit entry gets an error", () => {
  const indexes = Array.from({ length: 16 }, (_, n) => ({ name: `by_${n}`, fields: ["text", `f${n}`] }));
  using db = new TestDatabase({ items: anyTable({ indexes }) });
  assert.throws(
    () =>
      db.commit((tx) => {
        for (let n = 0; n < 1_000; n++) tx.insert("items", { text: "\u4e00".repeat(4_000) });
      }),
    engineError(
      "limit",
      /characters of index entries written by one call: the limit is 67108864 and this one used/,
    ),
  );
  assert.equal(db.writer.ts, 0);
});
