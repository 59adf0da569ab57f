/** Vector search: compared with plain arithmetic, through writes and undoing, in the right snapshot. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { engineLimits } from "../../mod/engine/limits.ts";
import { EngineError, openWriterDatabase, readSetTouches } from "../../mod/engine/mod.ts";
import type { Doc, ReadTransaction, Value, WriteTransaction } from "../../mod/engine/mod.ts";
import { loadTables } from "../../mod/engine/catalog.ts";
import { Connection } from "../../mod/engine/connection.ts";
import { VectorSearcher } from "../../mod/engine/vectors/vector_search.ts";
import { encodeQuery, VectorStore } from "../../mod/engine/vectors/vector_store.ts";
import { unitVector, vectorIndex } from "../../mod/engine/vectors/vector_index.ts";
import { anyTable, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const DIMENSIONS = 5;
const by_place = { name: "by_place", vectorField: "place", dimensions: DIMENSIONS, filterFields: ["kind"] };
const tables = { things: anyTable({ vectorIndexes: [by_place] }) };
const vector = fc.array(
  fc.oneof(fc.constantFrom(0, 1, -1, 0.5), fc.double({ min: -1, max: 1, noNaN: true })),
  {
    minLength: DIMENSIONS,
    maxLength: DIMENSIONS,
  },
);
const direction = vector.filter((parts) => parts.some((part) => Math.abs(part) > 1e-100));

function cosine(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [unitVector(a), unitVector(b)];
  return x.reduce((sum, part, index) => sum + part * (y[index] ?? 0), 0);
}

function near(tx: ReadTransaction, query: {
  readonly vector: readonly number[];
  readonly limit: number;
  readonly kinds?: readonly (Value | undefined)[];
}) {
  const { vector, limit, kinds } = query;
  return tx.vectorSearch("things", "by_place", {
    vector,
    limit,
    filters: kinds === undefined ? [] : [["kind", kinds]],
  });
}

/** Compares a search with a simple computation over all documents. */
function check(tx: ReadTransaction, query: Parameters<typeof near>[1]): void {
  const docs = [...tx.scan("things", "by_creation_time", { eq: [] }, { order: "asc" })].map(({ doc }) => doc);
  const scores = new Map<string, number>();
  for (const doc of docs) {
    if (!Array.isArray(doc["place"])) continue;
    if (query.kinds !== undefined && !query.kinds.includes(doc["kind"])) continue;
    scores.set(doc._id, cosine(query.vector, doc["place"] as number[]));
  }
  const found = near(tx, query);
  assert.equal(found.length, Math.min(query.limit, scores.size));
  assert.equal(new Set(found.map(({ id }) => id)).size, found.length);
  const best = [...scores.values()].sort((a, b) => b - a);
  found.forEach(({ id, score }, place) => {
    assert.ok(Math.abs(score - (scores.get(id) ?? NaN)) < 1e-6, `score of ${id}`);
    assert.ok(Math.abs(score - (best[place] ?? NaN)) < 1e-6, `place ${place}`);
  });
}

const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("insert" as const), place: vector, kind: fc.nat(2) }) },
  fc.record({ do: fc.constant("patch" as const), pick: fc.nat(), place: vector, kind: fc.nat(2) }),
  fc.record({ do: fc.constant("hide" as const), pick: fc.nat() }),
  fc.record({ do: fc.constant("delete" as const), pick: fc.nat() }),
  fc.record({ do: fc.constant("search" as const), vector: direction, limit: fc.integer({ min: 1, max: 5 }) }),
);

Deno.test("a search returns exactly the nearest documents, through writes, undoing and commits", () => {
  const history = fc.array(
    fc.record({
      mutations: fc.array(
        fc.record({
          changes: fc.array(change, { maxLength: 10 }),
          undoFrom: fc.option(fc.nat(8), { nil: null }),
          release: fc.boolean(),
        }),
        { maxLength: 3 },
      ),
      commit: fc.boolean(),
      vector: direction,
      limit: fc.integer({ min: 1, max: 6 }),
      kinds: fc.option(fc.array(fc.nat(3), { maxLength: 2 }), { nil: undefined }),
    }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(history, (groups) => {
      using db = new TestDatabase(tables);
      const apply = (tx: WriteTransaction, step: typeof change extends fc.Arbitrary<infer T> ? T : never) => {
        if (step.do === "insert") return void tx.insert("things", { place: step.place, kind: step.kind });
        if (step.do === "search") return check(tx, step);
        const ids: Doc[] = [...tx.scan("things", "by_creation_time", { eq: [] }, { order: "asc" })].map((
          { doc },
        ) => doc);
        const id = ids[step.pick % Math.max(1, ids.length)]?._id;
        if (id === undefined) return;
        if (step.do === "patch") tx.patch(id, { place: step.place, kind: step.kind });
        else if (step.do === "hide") tx.patch(id, { place: undefined });
        else tx.delete(id);
      };
      for (const { mutations, commit, vector, limit, kinds } of groups) {
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
        db.query((tx) => check(tx, { vector, limit, ...(kinds === undefined ? {} : { kinds }) }));
      }
    }),
    { numRuns: 100 },
  );
});

Deno.test("the error bounds of the quantized comparison are correct for any vectors", () => {
  for (const dimensions of [1, 3, 384, 4096]) {
    const index = vectorIndex(1, { name: "x", vectorField: "v", dimensions, filterFields: [] });
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(0, 1, 6), (seed, spikes) => {
        let state = seed | 0;
        const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0) / 2 ** 31;
        const make = () =>
          Array.from({ length: dimensions }, (_, n) => n < spikes ? random() * 100 : random());
        const unit = unitVector(make());
        const row = new Float32Array(unitVector(make()));
        const store = new VectorStore(index);
        store.put(7, { vector: row, filters: "[]" });
        const { count, scores, margins } = store.compare(encodeQuery(unit), []);
        assert.equal(count, 1);
        const exact = row.reduce((sum, part, at) => sum + part * (unit[at] ?? 0), 0);
        assert.ok(Math.abs((scores[0] ?? NaN) - exact) <= (margins[0] ?? NaN));
      }),
      { numRuns: 200 },
    );
  }
});

Deno.test("a store with many rows keeps them through removals in any order", () => {
  const index = vectorIndex(1, { name: "x", vectorField: "v", dimensions: 3, filterFields: ["a"] });
  const store = new VectorStore(index);
  const rows = new Map<number, Float32Array<ArrayBuffer>>();
  let state = 42;
  const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  for (let step = 0; step < 12_000; step++) {
    const rid = 1 + Math.floor(random() * 4_000);
    if (random() < (step < 6_000 ? 0.2 : 0.6)) {
      store.remove(rid);
      rows.delete(rid);
    } else {
      const vector = new Float32Array(unitVector([random() - 0.5, random() - 0.5, random() - 0.5]));
      store.put(rid, { vector, filters: JSON.stringify([String(rid % 3)]) });
      rows.set(rid, vector);
    }
  }
  assert.equal(store.count, rows.size);
  const unit = unitVector([1, 2, 3]);
  for (const key of ["0", "1", "2"]) {
    const { count: found, scores, margins, rids } = store.compare(encodeQuery(unit), [{
      field: 0,
      keys: [key],
    }]);
    const wanted = [...rows.keys()].filter((rid) => String(rid % 3) === key).sort((a, b) => a - b);
    assert.deepEqual([...rids.subarray(0, found)].sort((a, b) => a - b), wanted);
    for (let row = 0; row < found; row++) {
      const exact = rows.get(rids[row] ?? 0)?.reduce((sum, part, at) => sum + part * (unit[at] ?? 0), 0) ??
        NaN;
      assert.ok(Math.abs((scores[row] ?? NaN) - exact) <= (margins[row] ?? NaN));
    }
  }
});

Deno.test("a reader that missed more changes than are kept reads the newest state", () => {
  using db = new TestDatabase(tables);
  const { result: [id = "", early = ""] } = db.commit((tx) => [
    tx.insert("things", { place: [1, 0, 0, 0, 0] }),
    tx.insert("things", { place: [-1, 0, 0, 0, 0] }),
  ]);
  db.query((tx) => check(tx, { vector: [1, 0, 0, 0, 0], limit: 3 }));
  db.commit((tx) => tx.patch(early, { place: [0, 0, 0, 0, 1] }));
  for (let round = 0; round < 3; round++) {
    db.commit((tx) => {
      for (let n = 0; n < 6_500; n++) tx.patch(id, { place: [1, n, 0, 0, round] });
    });
  }
  assert.ok(3 * 6_500 > engineLimits.vectorChangesKept);
  db.commit((tx) => tx.insert("things", { place: [0, 0, 1, 0, 0] }));
  db.query((tx) => {
    check(tx, { vector: [1, 1, 0, 0, 3], limit: 1 });
    check(tx, { vector: [0, 0, 1, 0, 0], limit: 3 });
    assert.equal(near(tx, { vector: [1, 1, 1, 1, 1], limit: 9 }).length, 3);
  });
});

Deno.test("an index too large for memory is read from disk with the same results, and others are evicted", () => {
  const other = { ...by_place, name: "by_other", vectorField: "other" };
  const schema = { things: anyTable({ vectorIndexes: [by_place, other] }) };
  using db = new TestDatabase(schema);
  db.commit((tx) => {
    for (let n = 0; n < 1_500; n++) {
      const place = [Math.sin(n), Math.cos(n), Math.sin(n * 3), n % 7, 1];
      tx.insert("things", { place, other: [...place].reverse(), kind: n % 3 });
    }
  });
  using connection = Connection.openReader(db.path);
  const tables = loadTables(connection, schemaOf(schema));
  const table = tables.named("things");
  const search = (searcher: VectorSearcher, name: string) =>
    searcher.search(table, {
      index: tables.vectorIndex(table, name),
      options: { vector: [1, 2, 3, 4, 5], limit: 20, filters: [["kind", [1, 2]]] },
    });
  const large = new VectorSearcher(connection);
  const small = new VectorSearcher(connection, { bytesMax: 1 });
  for (const name of ["by_place", "by_other"]) {
    assert.equal(search(large, name).length, 20);
    assert.deepEqual(search(small, name), search(large, name));
  }
  assert.equal(large.inMemory.length, 2);
  assert.equal(small.inMemory.length, 0);
  const one = new VectorSearcher(connection, { bytesMax: 400_000 });
  for (const name of ["by_place", "by_other", "by_place"]) {
    assert.deepEqual(search(one, name), search(large, name));
    assert.deepEqual(one.inMemory, [tables.vectorIndex(table, name).number]);
  }
});

Deno.test("a search is touched only by changes to vectors and filter fields", () => {
  using db = new TestDatabase(tables);
  const { result: id } = db.commit((tx) => tx.insert("things", { place: [1, 0, 0, 0, 0], kind: 1, note: 0 }));
  const touched = (run: (tx: WriteTransaction) => unknown) => {
    const readSet = db.query((tx) => (near(tx, { vector: [1, 1, 1, 1, 1], limit: 1 }).length, tx.readSet()));
    const { entry } = db.commit(run);
    assert.ok(entry !== null);
    return readSetTouches(readSet, entry);
  };
  assert.equal(touched((tx) => tx.patch(id, { note: 1 })), false);
  assert.equal(touched((tx) => tx.insert("things", { note: 1 })), false);
  assert.equal(touched((tx) => tx.patch(id, { kind: 2 })), true);
  assert.equal(touched((tx) => tx.patch(id, { place: [0, 1, 0, 0, 0] })), true);
  assert.equal(touched((tx) => tx.insert("things", { place: [0, 1, 0, 0, 0] })), true);
  assert.equal(touched((tx) => tx.delete(id)), true);
});

Deno.test("RP23 equal scores are ordered by creation time, then id, in memory and on disk", () => {
  using db = new TestDatabase(tables);
  const { result: ids } = db.commit((tx) =>
    Array.from({ length: 1_500 }, () => tx.insert("things", { place: [1, 2, 0, 0, 0] }))
  );
  db.commit((tx) => {
    for (const id of ids.slice(0, 700)) {
      const doc = tx.get(id) ?? assert.fail();
      tx.delete(id);
      tx.importDocument("things", doc, { mode: "insert" });
    }
  });
  using connection = Connection.openReader(db.path);
  const stored = loadTables(connection, db.schema);
  const table = stored.named("things");
  const index = stored.vectorIndex(table, "by_place");
  for (const bytesMax of [1, 2 ** 26]) {
    const searcher = new VectorSearcher(connection, { bytesMax });
    const options = { vector: [1, 2, 0, 0, 1], limit: 100, filters: [] };
    assert.deepEqual(searcher.search(table, { index, options }).map(({ id }) => id), ids.slice(0, 100));
  }
});

Deno.test("zeros rank before opposite vectors, and huge and tiny numbers keep their direction", () => {
  using db = new TestDatabase(tables);
  const places = [[0, 0, 0, 0, 0], [1e300, 1e300, 0, 0, 0], [1e-300, 0, 0, 0, 0], [-1, 0, 0, 0, 0]];
  const { result: ids } = db.commit((tx) => places.map((place) => tx.insert("things", { place })));
  db.query((tx) => {
    const found = near(tx, { vector: [1e200, 0, 0, 0, 0], limit: 4 });
    assert.deepEqual(found.map(({ id }) => ids.indexOf(id)), [2, 1, 0, 3]);
    assert.deepEqual(found.map(({ score }) => Math.round(score * 1000)), [1000, 707, 0, -1000]);
  });
});

Deno.test("mistakes get errors with advice", () => {
  using db = new TestDatabase(tables);
  const good = { vector: [1, 0, 0, 0, 0], limit: 1, filters: [] };
  const attempts: [(tx: ReadTransaction) => unknown, RegExp][] = [
    [(tx) => tx.vectorSearch("things", "by_place", { ...good, vector: [1] }), /the vector must be 5 numbers/],
    [
      (tx) => tx.vectorSearch("things", "by_place", { ...good, vector: [1, NaN, 0, 0, 0] }),
      /the vector must be 5 numbers/,
    ],
    [
      (tx) => tx.vectorSearch("things", "by_place", { ...good, vector: [0, 0, 0, 0, 0] }),
      /zeros has no direction/,
    ],
    [(tx) => tx.vectorSearch("things", "by_place", { ...good, limit: 0 }), /returns 1 to 256/],
    [(tx) => tx.vectorSearch("things", "by_place", { ...good, limit: 257 }), /returns 1 to 256/],
    [
      (tx) => tx.vectorSearch("things", "by_place", { ...good, filters: [["color", [1]]] }),
      /Cannot filter by "color".*kind/,
    ],
    [
      (tx) => tx.vectorSearch("things", "other", good),
      /no vector index "other"; its vector indexes are by_place/,
    ],
  ];
  for (const [attempt, message] of attempts) {
    db.query((tx) =>
      assert.throws(() => attempt(tx), (error) => error instanceof EngineError && message.test(error.message))
    );
  }
  db.commit((tx) => {
    for (const place of [[1, 2], "x", [1, 2, 3, 4, "5"]]) {
      assert.throws(
        () => tx.insert("things", { place }),
        /vector index "by_place" needs a list of 5 numbers/,
      );
    }
    tx.insert("things", { place: null });
  });
  using folder = new TemporaryDatabase();
  using writer = openWriterDatabase(folder.path);
  for (const dimensions of [0, 1.5, 5_000]) {
    const schema = schemaOf({ things: anyTable({ vectorIndexes: [{ ...by_place, dimensions }] }) });
    assert.throws(() => writer.applySchema(schema), /it needs 1 to 4096/);
  }
});

Deno.test("temporary filter values do not accumulate in memory", () => {
  const index = vectorIndex(1, by_place);
  const store = new VectorStore(index);
  const row = new Float32Array(DIMENSIONS).fill(1);
  for (let kind = 0; !store.cluttered; kind++) {
    assert.ok(kind < 100_000, "a store with one row and a hundred thousand values is cluttered");
    store.put(1, { vector: row, filters: JSON.stringify([`kind ${kind}`]) });
  }
  using db = new TestDatabase(tables);
  const place = [1, 0, 0, 0, 0];
  const { result: id } = db.commit((tx) => tx.insert("things", { place, kind: 0 }));
  for (let step = 1; step <= 6; step++) {
    db.commit((tx) => {
      for (let kind = 1; kind <= 700; kind++) tx.patch(id, { kind: step * 1000 + kind });
    });
    db.commit((tx) => check(tx, { vector: place, limit: 3, kinds: [step * 1000 + 700, 0] }));
    check(db.reader.openSnapshot() > 0 ? db.reader.beginQuery() : assert.fail(), { vector: place, limit: 3 });
    db.reader.closeSnapshot();
  }
});
