/** Replay records: found by their complete key during their lifetime, after restart and rollback, and then removed. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { replayLimits } from "../../mod/engine/limits.ts";
import { openWriterDatabase, type RecordKey, startClusterHistory } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase, TestDatabase } from "./support.ts";

const tables = { items: anyTable() };
const { recordMs } = replayLimits;

function key(requestId: number, parts: Partial<RecordKey> = {}): RecordKey {
  return { sessionId: "s1", requestId, principal: null, ...parts };
}

function save(db: TestDatabase, records: readonly (readonly [RecordKey, string])[]): void {
  db.writer.openGroup();
  for (const [key, answer] of records) db.writer.saveRecord(key, answer);
  db.writer.commitGroup("");
}

Deno.test("a record is found by session, request and principal together", () => {
  using db = new TestDatabase(tables);
  save(db, [[key(1), "anonymous"], [key(1, { principal: "u1" }), "user"], [key(2), "second"]]);
  for (let round = 0; round < 2; round++) {
    assert.equal(db.writer.findRecord(key(1)), "anonymous");
    assert.equal(db.writer.findRecord(key(1, { principal: "u1" })), "user");
    assert.equal(db.writer.findRecord(key(1, { principal: "u2" })), null);
    assert.equal(db.writer.findRecord(key(1, { principal: "" })), null);
    assert.equal(db.writer.findRecord(key(1, { sessionId: "s2" })), null);
    assert.equal(db.writer.findRecord(key(2)), "second");
    assert.equal(db.writer.findRecord(key(3)), null);
    db.reopen();
  }
});

Deno.test("requests out of order keep their own records", () => {
  using db = new TestDatabase(tables);
  save(db, [[key(5), "five"]]);
  assert.equal(db.writer.findRecord(key(3)), null);
  save(db, [[key(3), "three"]]);
  assert.deepEqual([3, 4, 5, 6].map((id) => db.writer.findRecord(key(id))), ["three", null, "five", null]);
});

Deno.test("exactly the requested records are found, in any order and number", () => {
  const requests = fc.uniqueArray(fc.integer({ min: 0, max: 300 }), { maxLength: 200 });
  fc.assert(
    fc.property(
      requests,
      fc.array(fc.nat({ max: 40 }), { maxLength: 8 }),
      fc.boolean(),
      (ids, cuts, reopens) => {
        using db = new TestDatabase(tables);
        const sorted = reopens ? ids : ids.toSorted((a, b) => a - b);
        for (let from = 0, group = 0; from < sorted.length; group++) {
          const size = (cuts[group] ?? 40) + 1;
          save(db, sorted.slice(from, from + size).map((id) => [key(id), `answer ${id}`] as const));
          from += size;
        }
        if (reopens) db.reopen();
        for (let id = -1; id <= 301; id++) {
          assert.equal(db.writer.findRecord(key(id)), ids.includes(id) ? `answer ${id}` : null);
        }
      },
    ),
    { numRuns: 60 },
  );
});

Deno.test("records of one group are found before it commits", () => {
  using db = new TestDatabase(tables);
  db.writer.openGroup();
  for (const id of [5, 6, 3, 4, 9]) db.writer.saveRecord(key(id), `answer ${id}`);
  for (const id of [3, 4, 5, 6, 9]) assert.equal(db.writer.findRecord(key(id)), `answer ${id}`);
  for (const id of [2, 7, 8, 10]) assert.equal(db.writer.findRecord(key(id)), null);
  db.writer.commitGroup("");
});

Deno.test("a record of a group that was rolled back does not exist", () => {
  using db = new TestDatabase(tables);
  db.writer.openGroup();
  db.writer.saveRecord(key(1), "lost");
  assert.equal(db.writer.findRecord(key(1)), "lost");
  db.writer.rollbackGroup();
  assert.equal(db.writer.findRecord(key(1)), null);
  save(db, [[key(1), "kept"]]);
  assert.equal(db.writer.findRecord(key(1)), "kept");
});

Deno.test("every record lives at least its minimum lifetime, and at most about twice that", () => {
  const gap = fc.integer({ min: 0, max: recordMs / 3 });
  fc.assert(
    fc.property(fc.array(gap, { minLength: 5, maxLength: 40 }), (gaps) => {
      using db = new TestDatabase(tables);
      const saved: { readonly id: number; readonly at: number }[] = [];
      let id = 0;
      for (const wait of gaps) {
        db.now += wait;
        save(db, [[key(++id), `answer ${id}`]]);
        saved.push({ id, at: db.now });
        for (const { id, at } of saved) {
          const found = db.writer.findRecord(key(id));
          if (db.now - at <= recordMs) assert.equal(found, `answer ${id}`);
          if (db.now - at > 3 * recordMs) assert.equal(found, null);
        }
      }
    }),
    {
      numRuns: 40,
      // The oldest record is at exactly its minimum lifetime.
      examples: [[[0, recordMs / 3, recordMs / 3, 0, recordMs / 3, 0, 0, 0, 0, 0, 0]]],
    },
  );
});

Deno.test("expired records are removed in small steps, before their table is reused", () => {
  using db = new TestDatabase(tables);
  const count = 3_000;
  // Request ids with gaps: each record is a separate row.
  save(db, Array.from({ length: count }, (_, index) => [key(-2 * index), "old"] as const));
  const left = () => {
    let found = 0;
    for (let index = 0; index < count; index++) if (db.writer.findRecord(key(-2 * index)) !== null) found++;
    return found;
  };
  for (let turn = 1; turn <= 2; turn++) {
    db.now += recordMs / 2;
    save(db, [[key(count + turn), "younger"]]);
    save(db, [[key(count + 10 + turn), "younger"]]);
  }
  db.now += recordMs / 2;
  const before = left();
  assert.ok(before > 0);
  save(db, [[key(count + 20), "young"]]);
  const removed = before - left();
  assert.ok(
    removed > 0 && removed <= replayLimits.runsRemovedPerGroup + replayLimits.runsRemovedPerRun,
  );
  for (let group = 0; group < 100; group++) save(db, [[key(count + 30 + group), "young"]]);
  assert.equal(left(), 0);
  assert.equal(db.writer.findRecord(key(count + 20)), "young");
});

Deno.test("setting back the clock loses no record and stops nothing", () => {
  using db = new TestDatabase(tables);
  save(db, [[key(1), "one"]]);
  db.now -= 10 * recordMs;
  save(db, [[key(2), "two"]]);
  assert.deepEqual([1, 2].map((id) => db.writer.findRecord(key(id))), ["one", "two"]);
  for (let turn = 0; turn < 8; turn++) {
    db.now += recordMs / 2;
    save(db, [[key(10 + turn), "later"]]);
    save(db, [[key(20 + turn), "later"]]);
  }
  assert.equal(db.writer.findRecord(key(2)), null);
});

Deno.test("sessions that are no longer in memory still get their recorded responses", () => {
  using db = new TestDatabase(tables);
  const count = replayLimits.sessionsRememberedMax + 1_000;
  save(
    db,
    Array.from({ length: count }, (_, n) => [key(1, { sessionId: `session ${n}` }), `answer ${n}`] as const),
  );
  for (const n of [0, 500, 999, 1_000, count - 1]) {
    assert.equal(db.writer.findRecord(key(1, { sessionId: `session ${n}` })), `answer ${n}`);
    assert.equal(db.writer.findRecord(key(2, { sessionId: `session ${n}` })), null);
  }
});

Deno.test("[PG7] a writer that waited has the records that another one has written, and commits no row that was not appended", () => {
  using folder = new TemporaryDatabase();
  const now = 1_700_000_000_000;
  openWriterDatabase(folder.path)[Symbol.dispose]();
  startClusterHistory(folder.path, { id: "one", now });
  const open = () => openWriterDatabase(folder.path, { now: () => now, journal: "external" });
  using waits = open();
  const saved = (writer: typeof waits, requestId: number) => {
    writer.openGroup();
    writer.saveRecord(key(requestId), `answer ${requestId}`);
    assert.throws(() => writer.commitGroup(""), RangeError, "its row was not appended");
    writer.rollbackGroup();
    writer.openGroup();
    writer.saveRecord(key(requestId), `answer ${requestId}`);
    writer.prepareCommit("");
    writer.commitGroup("");
  };
  {
    using other = open();
    other.applySchema(schemaOf(tables));
    // The record tables have rotated since the first one.
    for (const requestId of [1, 2]) saved(other, requestId);
  }
  waits.reload();
  waits.applySchema(schemaOf(tables));
  saved(waits, 3);
  for (const requestId of [1, 2, 3]) assert.equal(waits.findRecord(key(requestId)), `answer ${requestId}`);
});
