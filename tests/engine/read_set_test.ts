/** Read sets: writes inside the range always touch, others never, and memory is bounded. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { functionLimits } from "../../mod/limits.ts";
import { compareValues, readSetTouches } from "../../mod/engine/mod.ts";
import type { CommitEntry, Doc, IndexBounds, ReadSet, WriteTransaction } from "../../mod/engine/mod.ts";
import { ReadSetRecorder } from "../../mod/engine/read_set.ts";
import { anyTable, TestDatabase } from "./support.ts";

const tables = {
  items: anyTable({ indexes: [{ name: "by_n", fields: ["n"] }, { name: "by_m", fields: ["m"] }] }),
  others: anyTable(),
};

function compareDocs(a: Doc, b: Doc): number {
  return compareValues(a["n"], b["n"]) || compareValues(a._creationTime, b._creationTime) ||
    compareValues(a._id, b._id);
}

Deno.test("a scan is affected exactly by changes between its start and its end", () => {
  const small = fc.integer({ min: 0, max: 9 });
  const change = fc.record({ pick: fc.nat(), n: small, do: fc.constantFrom("insert", "patch", "delete") });
  using db = new TestDatabase(tables);
  const { result: ids } = db.commit((tx) =>
    Array.from({ length: 12 }, (_, index) => tx.insert("items", { n: index % 10, m: 0 }))
  );
  fc.assert(
    fc.property(
      small,
      small,
      fc.constantFrom("asc" as const, "desc" as const),
      fc.nat(8),
      change,
      (x, y, order, take, change) => {
        const [from, to] = [Math.min(x, y), Math.max(x, y)];
        const bounds: IndexBounds = {
          eq: [],
          lower: { value: from, inclusive: true },
          upper: { value: to, inclusive: false },
        };
        const { rows, readSet, ended } = db.query((tx) => {
          const rows: Doc[] = [];
          const scan = tx.scan("items", "by_n", bounds, { order });
          let ended = false;
          while (rows.length < take && !ended) {
            const next = scan.next();
            if (next.done === true) ended = true;
            else rows.push(next.value.doc);
          }
          return { rows, readSet: tx.readSet(), ended };
        });
        const { result: { before, after }, entry } = db.commit((tx) => {
          const id = ids[change.pick % ids.length] ?? "";
          if (change.do === "insert" || ids.length < 4) {
            const added = tx.insert("items", { n: change.n, m: 0 });
            ids.push(added);
            return { before: null, after: tx.get(added) };
          }
          const before = tx.get(id);
          if (change.do === "delete") {
            tx.delete(id);
            ids.splice(ids.indexOf(id), 1);
            return { before, after: null };
          }
          // Other fields count too, because the run has read the complete document.
          tx.patch(id, { n: change.n, m: change.pick });
          return { before, after: tx.get(id) };
        });
        const last = rows.at(-1);
        const inside = (doc: Doc | null) => {
          if (doc === null || take === 0) return false;
          const n = doc["n"] as number;
          if (n < from || n >= to) return false;
          if (ended) return true;
          if (last === undefined) return false;
          return order === "asc" ? compareDocs(doc, last) <= 0 : compareDocs(doc, last) >= 0;
        };
        if (entry === null) return assert.deepEqual(before, after);
        assert.equal(readSetTouches(readSet, entry), inside(before) || inside(after));
      },
    ),
    { numRuns: 600 },
  );
});

Deno.test("the first documents of a range are those of a scan that stops there, with its read set and usage", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => {
    for (let row = 0; row < 200; row++) {
      tx.insert("items", { n: row % 50, m: row, text: 'é,]"😀'[row % 5] ?? "" });
    }
  });
  fc.assert(
    fc.property(
      fc.nat(60),
      fc.nat(60),
      fc.constantFrom("by_n", "by_creation_time", "by_id"),
      fc.constantFrom("asc" as const, "desc" as const),
      fc.oneof(fc.integer({ min: 1, max: 220 }), fc.constant(Infinity)),
      (x, y, index, order, count) => {
        const bounds: IndexBounds = index === "by_n"
          ? { eq: [], lower: { value: x, inclusive: true }, upper: { value: y, inclusive: false } }
          : { eq: [] };
        const taken = db.query((tx) => {
          const docs = tx.take("items", index, bounds, { order, count });
          return { docs, readSet: tx.readSet(), usage: { ...tx.usage } };
        });
        const scanned = db.query((tx) => {
          const docs: Doc[] = [];
          for (const { doc } of tx.scan("items", index, bounds, { order, expected: count })) {
            if (docs.push(doc) === count) break;
          }
          return { docs, readSet: tx.readSet(), usage: { ...tx.usage } };
        });
        assert.deepEqual(taken, scanned);
      },
    ),
    { numRuns: 300 },
  );
});

function entryOf(db: TestDatabase, run: (tx: WriteTransaction) => unknown): CommitEntry {
  const { entry } = db.commit(run);
  assert.ok(entry !== null);
  return entry;
}

Deno.test("a lookup is affected only by changes of its document, even before the document exists", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("items", { n: 1 }));
  const readSet = db.query((tx) => (tx.get(id), tx.readSet()));
  assert.deepEqual(readSet, { t1: [[id]] });
  assert.ok(!readSetTouches(readSet, entryOf(db, (tx) => tx.insert("items", { n: 1 }))));
  assert.ok(readSetTouches(readSet, entryOf(db, (tx) => tx.patch(id, { n: 2 }))));
  assert.ok(readSetTouches(readSet, entryOf(db, (tx) => tx.delete(id))));
  const gone = db.query((tx) => (tx.get(id), tx.readSet()));
  assert.deepEqual(gone, { t1: [[id]] });
});

Deno.test("strings that are not ids, and unused scans, add nothing to the read set", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => tx.insert("items", { n: 1 }));
  const readSet = db.query((tx) => {
    tx.get("no id");
    tx.scan("items", "by_n", { eq: [] }, { order: "asc" });
    return tx.readSet();
  });
  assert.deepEqual(readSet, {});
});

Deno.test("an empty table is read to its end: the first insert touches it", () => {
  using db = new TestDatabase(tables);
  const readSet = db.query((tx) => {
    assert.equal([...tx.scan("items", "by_creation_time", { eq: [] }, { order: "desc" })].length, 0);
    return tx.readSet();
  });
  assert.ok(!readSetTouches(readSet, entryOf(db, (tx) => tx.insert("others", {}))));
  assert.ok(readSetTouches(readSet, entryOf(db, (tx) => tx.insert("items", {}))));
});

Deno.test("a mutation has no read set", () => {
  using db = new TestDatabase(tables);
  db.commit((tx) => {
    tx.get(tx.insert("items", {}));
    assert.deepEqual(tx.readSet(), {});
  });
});

Deno.test("overlapping and adjacent intervals are merged", () => {
  const recorder = new ReadSetRecorder();
  for (const [lo, hi] of [["a", "c"], ["b", "d"], ["d", "e"], ["x", "z"], ["x", "y"]] as const) {
    recorder.extendRange(recorder.beginRange("i1"), lo, hi);
  }
  recorder.point("i1", "b");
  recorder.point("i1", "m");
  recorder.point("i1", "m");
  assert.deepEqual(recorder.readSet(), { i1: [["a", "e"], ["m"], ["x", "z"]] });
});

Deno.test("a read set never exceeds its limit of intervals, and still covers everything read", () => {
  const recorder = new ReadSetRecorder();
  const points: [string, string][] = [];
  const growing = recorder.beginRange("i3");
  recorder.extendRange(growing, "0", "1");
  for (let index = 0; index < 3 * functionLimits.readSetIntervalsMax; index++) {
    const space = `i${index % 3 === 0 ? 1 : 2}`;
    const key = String(index * 7919 % 1_000_003).padStart(7, "0");
    points.push([space, key]);
    recorder.point(space, key);
    if (index % 2 === 0) recorder.extendRange(recorder.beginRange("i2"), `${key}a`, `${key}b`);
  }
  // A range that the recorder no longer tracks grows.
  recorder.extendRange(growing, "0", "9");
  const readSet: ReadSet = recorder.readSet();
  const intervals = Object.values(readSet).flat();
  assert.ok(intervals.length <= functionLimits.readSetIntervalsMax + Object.keys(readSet).length);
  assert.deepEqual(readSet["i3"], [["0", "9"]]);
  for (const [space, key] of points) {
    const covered = (readSet[space] ?? []).some((interval) =>
      interval.length === 1 ? interval[0] === key : interval[0] <= key && key < interval[1]
    );
    assert.ok(covered, `${space} ${key}`);
  }
});
