/**
 * Declared aggregates against a model: random writes, rollbacks and reads, on ids chosen so that few documents make a tree of
 * all levels. Followers and restores have the same nodes, and checks find each kind of damage.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite";
import fc from "fast-check";
import {
  type AggregateRange,
  checkDatabase,
  type CommitEntry,
  compareValues,
  type Doc,
  type IndexBounds,
  type JournalReader,
  type JournalRow,
  markAsFollower,
  type NewId,
  openHistoryReplay,
  openJournalReader,
  openReaderDatabase,
  openWriterDatabase,
  type ReaderDatabase,
  type ReadSet,
  readSetTouches,
  type ReadTransaction,
  type Value,
  type WriterDatabase,
  type WriteTransaction,
} from "../../mod/engine/mod.ts";
import { levelOf, LEVELS } from "../../mod/engine/aggregates/aggregate_index.ts";
import { anyTable, schemaOf, seededIds, TemporaryDatabase, TestDatabase } from "./support.ts";

const by_group = { name: "by_group", by: ["group", "points"], sum: ["points", "amount"] };
const withAggregate = schemaOf({ items: anyTable({ aggregates: [by_group] }), others: anyTable() });
/** Draws that find a few ids of the highest level. */
const IDS_DRAWN = 200_000;
/** Shares of ids by level, from 0. */
const SHARES = [0.6, 0.3];

/** Ids of the first table by their level, always the same ones. */
const idsByLevel: readonly string[][] = Array.from({ length: LEVELS + 1 }, () => []);
{
  const next = seededIds(42);
  for (let n = 0; n < IDS_DRAWN; n++) {
    const id = next(1);
    const ids = idsByLevel[levelOf(id)];
    if (ids !== undefined && ids.length < 500) ids.push(id);
  }
  assert.ok(idsByLevel.every(({ length }) => length > 1), "every level has ids");
}

/** Returns a generator of ids. Many of them start a node. */
function leveledIds(): NewId {
  const left = idsByLevel.map((ids) => [...ids]);
  const others = seededIds(43);
  let share = 0;
  return (table) => {
    if (table !== 1) return others(table);
    share = (share + 0.618) % 1;
    let level = 0;
    for (let rest = share; level < LEVELS && rest >= (SHARES[level] ?? 1); level++) {
      rest -= SHARES[level] ?? 1;
    }
    while (level > 0 && left[level]?.length === 0) level--;
    return left[level]?.pop() ?? others(1);
  };
}

type Documents = ReadonlyMap<string, Doc>;

/** Documents of a range in the order of the aggregate. */
function rangeOf(documents: Documents, { eq, lower }: IndexBounds): Doc[] {
  const fields = [...by_group.by, "_creationTime", "_id"];
  return [...documents.values()].filter((doc) =>
    eq.every((value, at) => compareValues(doc[fields[at] ?? ""], value) === 0) &&
    (lower === undefined ||
      compareValues(doc[fields[eq.length] ?? ""], lower.value) >= (lower.inclusive ? 0 : 1))
  ).sort((a, b) => {
    for (const field of fields) {
      const order = compareValues(a[field], b[field]);
      if (order !== 0) return order;
    }
    return 0;
  });
}

function totalsOf(rows: readonly Doc[]) {
  return {
    count: rows.length,
    fields: by_group.sum.map((field) => {
      const numbers = rows.map((row) => row[field]).filter((value) => typeof value === "number");
      return {
        sum: numbers.reduce((sum, value) => sum + value, 0),
        min: numbers.length === 0 ? null : Math.min(...numbers),
        max: numbers.length === 0 ? null : Math.max(...numbers),
      };
    }),
  };
}

const boundsToCheck: readonly IndexBounds[] = [
  { eq: [] },
  ...["a", "b", undefined].map((group): IndexBounds => ({ eq: [group] })),
  { eq: ["a"], lower: { value: 2, inclusive: true } },
  { eq: ["a", 1] },
  { eq: [], lower: { value: "a", inclusive: false } },
];

/** Compares all reads of a transaction with the model. */
function checkReads(tx: ReadTransaction, documents: Documents): void {
  for (const bounds of boundsToCheck) {
    const rows = rangeOf(documents, bounds);
    const range = () => tx.aggregate("items", "by_group", bounds);
    assert.deepEqual(range().totals(), totalsOf(rows));
    for (const [position, doc] of rows.entries()) {
      assert.deepEqual(range().at(position), doc);
      assert.deepEqual(range().at(position - rows.length), doc);
      assert.equal(range().indexOf(doc._id), position);
    }
    for (const outside of [rows.length, -rows.length - 1]) assert.equal(range().at(outside), null);
    const other = [...documents.values()].find((doc) => !rows.includes(doc));
    if (other !== undefined) assert.equal(range().indexOf(other._id), -1);
  }
}

const group = fc.constantFrom<Value | undefined>("a", "a", "b", undefined);
const amount = fc.constantFrom<Value | undefined>(1, 10, 100, null);
const numbers = [1, 2, 3, -4, "none", undefined];
/** Small integers, whose sums have no rounding, and other numbers. */
const exactFields = fc.record({ group, points: fc.constantFrom<Value | undefined>(...numbers), amount });
const anyFields = fc.record({
  group,
  points: fc.constantFrom<Value | undefined>(0.25, 2 ** 33, ...numbers),
  amount,
});
const writeOf = (fields: typeof anyFields) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("insert" as const), fields }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("patch" as const), pick: fc.nat(), fields }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("delete" as const), pick: fc.nat() }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("import" as const), pick: fc.nat(), fields, time: fc.nat(3) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("read" as const) }) },
  );
const historyOf = (fields: typeof anyFields) =>
  fc.array(
    fc.record({
      mutations: fc.array(
        fc.record({
          writes: fc.array(writeOf(fields), { maxLength: 12 }),
          isUndone: fc.integer({ max: 3 }).map((n) => n === 3),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      isUndone: fc.nat(4).map((n) => n === 4),
    }),
    { minLength: 1, maxLength: 8 },
  );

/** Runs a write, or compares all reads. Returns the documents after it. */
function step(
  tx: WriteTransaction,
  documents: Documents,
  step: ReturnType<typeof writeOf> extends fc.Arbitrary<infer T> ? T : never,
): Documents {
  if (step.do === "read") {
    checkReads(tx, documents);
    return documents;
  }
  if (step.do === "insert") {
    const id = tx.insert("items", step.fields);
    return new Map([...documents, [id, tx.get(id) ?? assert.fail()]]);
  }
  const ids = [...documents.keys()];
  const id = ids[step.pick % ids.length];
  if (id === undefined) return documents;
  if (step.do === "delete") {
    tx.delete(id);
    return new Map([...documents].filter(([other]) => other !== id));
  }
  if (step.do === "patch") tx.patch(id, step.fields);
  else tx.importDocument("items", { ...step.fields, _id: id, _creationTime: step.time }, { mode: "upsert" });
  return new Map([...documents, [id, tx.get(id) ?? assert.fail()]]);
}

/** Entries and nodes as stored, without row ids, which copies do not share. */
function storedNodes(path: string): unknown {
  using db = new DatabaseSync(path, { readOnly: true }) as DatabaseSync & Disposable;
  const numbers = db.prepare("SELECT number FROM syncline_indexes WHERE kind = 'aggregate'").all();
  return numbers.map(({ number }) =>
    [`SELECT key, v0, v1 FROM a${number} ORDER BY key`, `SELECT * FROM b${number} ORDER BY level, key`]
      .map((sql) => db.prepare(sql).all().map((row) => Object.values(row)))
  );
}

/** Reads in the newest snapshot, each with its read set. */
function watch(db: ReaderDatabase, id: string): { readonly result: string; readonly readSet: ReadSet }[] {
  const reads = boundsToCheck.flatMap((bounds) =>
    [
      (range: AggregateRange) => range.totals(),
      (range: AggregateRange) => range.indexOf(id),
      ...[0, 2, -1, -3].map((position) => (range: AggregateRange) => range.at(position)),
    ].map((read) => (tx: ReadTransaction) => read(tx.aggregate("items", "by_group", bounds)))
  );
  db.openSnapshot();
  try {
    return reads.map((read) => {
      const tx = db.beginQuery();
      return { result: JSON.stringify(read(tx)), readSet: tx.readSet() };
    });
  } finally {
    db.closeSnapshot();
  }
}

/** Replays all rows onto a copy, and returns them. */
async function restore(journal: JournalReader, path: string): Promise<readonly JournalRow[]> {
  using replay = openHistoryReplay(path);
  const { rows } = journal.read(replay.history?.seq ?? 0);
  for (const row of rows) replay.take(row);
  await Array.fromAsync(replay.write());
  return rows;
}

Deno.test("CN3: random histories match the model, on followers and in restores too", async () => {
  const histories = fc.oneof(
    ...[exactFields, anyFields].map((fields) =>
      fc.tuple(historyOf(fields), fc.array(fields, { maxLength: 80 }))
    ),
  );
  await fc.assert(
    fc.asyncProperty(histories, async ([groups, first]) => {
      using folder = new TemporaryDatabase();
      using followerFolder = new TemporaryDatabase();
      using restoredFolder = new TemporaryDatabase();
      const newId = leveledIds();
      let now = 1_700_000_000_000;
      const open = () => {
        const db = openWriterDatabase(folder.path, {
          journal: { pendingBytesMax: 2 ** 26 },
          now: () => now,
          newId,
        });
        db.applySchema(withAggregate);
        return db;
      };
      open()[Symbol.dispose]();
      for (const copy of [followerFolder, restoredFolder]) Deno.copyFileSync(folder.path, copy.path);
      markAsFollower(followerFolder.path, "the other");
      using db = open();
      using reader = openReaderDatabase(folder.path);
      reader.useSchema(withAggregate);
      let documents: Documents = new Map();
      const all = [
        {
          mutations: [{
            writes: first.map((fields) => ({ do: "insert" as const, fields })),
            isUndone: false,
          }],
          isUndone: false,
        },
        ...groups,
      ];
      for (const { mutations, isUndone } of all) {
        const atGroup = documents;
        const [someId = ""] = documents.keys();
        const watched = watch(reader, someId);
        const entries: (CommitEntry | null)[] = [];
        db.openGroup();
        for (const { writes, isUndone } of mutations) {
          const before = documents;
          const tx = db.beginMutation({ at: now++ });
          for (const one of writes) documents = step(tx, documents, one);
          if (isUndone) {
            db.rollbackMutation();
            documents = before;
          } else entries.push(db.releaseMutation());
        }
        if (isUndone) {
          db.rollbackGroup();
          documents = atGroup;
          entries.length = 0;
        } else db.commitGroup("");
        for (const [at, { result }] of watch(reader, someId).entries()) {
          if (result === watched[at]?.result) continue;
          const { readSet } = watched[at] ?? assert.fail();
          assert.ok(
            entries.some((entry) => entry !== null && readSetTouches(readSet, entry)),
            "a result changed though its read set was not touched",
          );
        }
      }
      reader.openSnapshot();
      checkReads(reader.beginQuery(), documents);
      reader.closeSnapshot();
      checkDatabase(folder.path);

      using journal = openJournalReader(folder.path);
      const rows = await restore(journal, restoredFolder.path);
      using follower: WriterDatabase = openWriterDatabase(followerFolder.path, {
        journal: "external",
        now: () => now,
      });
      for (const row of rows) {
        follower.openGroup();
        follower.applyRows([row]);
        follower.commitGroup(null);
      }
      const expected = storedNodes(folder.path);
      assert.deepEqual(storedNodes(restoredFolder.path), expected);
      assert.deepEqual(storedNodes(followerFolder.path), expected);
    }),
    { numRuns: 30 },
  );
});

Deno.test("CN4: an aggregate that is added to a table has the nodes of one that was kept from the start", () => {
  const plain = schemaOf({ items: anyTable(), others: anyTable() });
  const [late, early] = [plain, withAggregate].map((schema) => {
    const folder = new TemporaryDatabase();
    using db = openWriterDatabase(folder.path, { newId: leveledIds(), now: () => 1_000 });
    db.applySchema(schema);
    db.openGroup();
    const tx = db.beginMutation({ at: 1_000 });
    for (let n = 0; n < 400; n++) tx.insert("items", { group: `g${n % 3}`, points: n % 17, amount: n / 4 });
    db.releaseMutation();
    db.commitGroup("");
    if (schema === plain) assert.deepEqual(db.applySchema(withAggregate).createdIndexes, ["items.by_group"]);
    return folder;
  });
  assert.ok(late !== undefined && early !== undefined);
  using _late = late;
  using _early = early;
  assert.deepEqual(storedNodes(late.path), storedNodes(early.path));
  checkDatabase(late.path);
  using db = openWriterDatabase(late.path);
  assert.deepEqual(db.applySchema(plain).droppedIndexes, ["items.by_group"]);
});

Deno.test("CN3: sums have the rounding of a computation in order, however their parts were written", () => {
  using folder = new TemporaryDatabase();
  {
    using db = openWriterDatabase(folder.path, { newId: leveledIds() });
    db.applySchema(withAggregate);
    const numbers = [1, 2, 3, 0.1, 0.7, 2 ** 53, 0.2, -(2 ** 53), 4, 1e300, 0.3, -1e300, 5];
    for (let n = 0; n < 300; n++) {
      db.openGroup();
      const tx = db.beginMutation({ at: 1_000 + n * 7 % 300 });
      // The first 100 groups add integers only.
      const points = numbers[n % (n < 100 ? 3 : numbers.length)];
      const id = tx.insert("items", { group: "abc"[n % 3], points, amount: n });
      if (n % 10 === 9) tx.delete(id);
      db.releaseMutation();
      if (n % 20 === 19) db.rollbackGroup();
      else db.commitGroup("");
    }
  }
  checkDatabase(folder.path);
});

Deno.test("CN2: a read depends on its range only, and a write that changes no entry touches nothing", () => {
  using db = new TestDatabase(Object.fromEntries(withAggregate));
  const { result: [a1 = "", a2 = "", b1 = ""] } = db.commit((tx) =>
    [["a", 1], ["a", 2], ["b", 1]].map(([group, points]) => tx.insert("items", { group, points }))
  );
  const inA = { eq: ["a"] };
  const reads: Record<string, (tx: ReadTransaction) => unknown> = {
    totals: (tx) => tx.aggregate("items", "by_group", inA).totals(),
    first: (tx) => tx.aggregate("items", "by_group", inA).at(0),
    last: (tx) => tx.aggregate("items", "by_group", inA).at(-1),
    indexOfLast: (tx) => tx.aggregate("items", "by_group", inA).indexOf(a2),
    beyond: (tx) => tx.aggregate("items", "by_group", inA).at(2),
  };
  const touchedBy = (change: (tx: WriteTransaction) => unknown) => {
    const sets = Object.entries(reads).map(([name, read]) =>
      [name, db.query((tx) => (read(tx), tx.readSet()))] as const
    );
    const { entry } = db.commit(change);
    assert.ok(entry !== null);
    return sets.filter(([, readSet]) => readSetTouches(readSet, entry)).map(([name]) => name);
  };
  assert.deepEqual(touchedBy((tx) => tx.insert("items", { group: "b", points: 5 })), []);
  assert.deepEqual(touchedBy((tx) => tx.patch(b1, { points: 9 })), []);
  assert.deepEqual(touchedBy((tx) => tx.patch(a1, { text: "other" })), ["first"]);
  assert.deepEqual(touchedBy((tx) => tx.patch(a1, { amount: 5 })), [
    "totals",
    "first",
    "indexOfLast",
    "beyond",
  ]);
  assert.deepEqual(touchedBy((tx) => tx.insert("items", { group: "a", points: 3 })), [
    "totals",
    "last",
    "beyond",
  ]);
});

Deno.test("CN6: a large group is deleted in mutations of bounded work, and leaves nothing behind", () => {
  const [documents, count] = [40_000, 1_000];
  const by_points = { name: "by_points", fields: ["group", "points"] };
  const schema = schemaOf({ items: anyTable({ indexes: [by_points], aggregates: [by_group] }) });
  using folder = new TemporaryDatabase();
  {
    using db = openWriterDatabase(folder.path);
    db.applySchema(schema);
    /** Runs a mutation. Returns its processor time, which other work of the machine does not change. */
    const mutate = (run: (tx: WriteTransaction) => void): number => {
      const before = process.cpuUsage();
      db.openGroup();
      run(db.beginMutation({ at: 1_000 }));
      db.releaseMutation();
      db.commitGroup("");
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    const inGroup = { eq: ["a"] };
    for (let from = 0; from < documents; from += count) {
      mutate((tx) => {
        for (let n = from; n < from + count; n++) {
          tx.insert("items", { group: "a", points: n * 7_919 % documents });
        }
      });
    }
    mutate((tx) => tx.insert("items", { group: "b", points: 1 }));
    const times: number[] = [];
    for (let left = documents; left > 0; left -= count) {
      times.push(mutate((tx) => {
        const range = () => tx.aggregate("items", "by_group", inGroup);
        assert.equal(range().totals().count, left);
        // From the beginning, the end and the middle of the group.
        const positions = [0, left - count, Math.floor((left - count) / 2)];
        const value = range().at(positions[left / count % 3] ?? 0)?.["points"];
        const lower = { value, inclusive: true };
        const bounds = { ...inGroup, lower };
        for (const { _id } of tx.take("items", "by_points", bounds, { order: "asc", count })) tx.delete(_id);
      }));
    }
    mutate((tx) => {
      assert.equal(tx.aggregate("items", "by_group", inGroup).totals().count, 0);
      assert.equal(tx.aggregate("items", "by_group", { eq: [] }).totals().count, 1);
    });
    const sorted = times.toSorted((a, b) => a - b);
    const [typical = 0, longest = 0] = [sorted[sorted.length >> 1], sorted.at(-1)];
    assert.ok(longest < 10 * typical, `${longest} us, typically ${typical} us`);
  }
  checkDatabase(folder.path);
  const [[entries, nodes]] = storedNodes(folder.path) as [[unknown[], unknown[]]];
  assert.equal(entries.length, 1);
  assert.ok(nodes.length <= 2 * LEVELS, `${nodes.length} nodes are left`);
});

Deno.test("CN5: damage of entries and nodes is found and named", () => {
  const damages: readonly (readonly [sql: string, reason: RegExp])[] = [
    ["UPDATE a$ SET v1 = 99 WHERE rid = 7", /index "by_group" of table "items" does not hold document/],
    ["DELETE FROM a$ WHERE rid = 7", /index "by_group" of table "items" does not hold document/],
    ["UPDATE b$ SET x1 = 7 WHERE level = 1 AND key = ''", /totals of a node do not match its entries/],
    ["UPDATE b$ SET count = count + 1 WHERE level = 2 AND key = ''", /totals of a node do not match/],
    ["DELETE FROM b$ WHERE level = 1 AND key <> ''", /a node is missing/],
    ["DELETE FROM b$ WHERE level = 2 AND key = ''", /a first node is missing/],
    ["INSERT INTO b$ (level, key, count) VALUES (2, '~', 0)", /totals of a node do not match/],
  ];
  for (const [sql, reason] of damages) {
    using folder = new TemporaryDatabase();
    {
      using db = openWriterDatabase(folder.path, { newId: leveledIds() });
      db.applySchema(withAggregate);
      db.openGroup();
      const tx = db.beginMutation({ at: 1_000 });
      for (let n = 0; n < 60; n++) tx.insert("items", { group: "a", points: n, amount: 1 });
      db.releaseMutation();
      db.commitGroup("");
    }
    checkDatabase(folder.path);
    {
      using raw = new DatabaseSync(folder.path, { defensive: false } as DatabaseSyncOptions) as
        & DatabaseSync
        & Disposable;
      const number = raw.prepare("SELECT number FROM syncline_indexes WHERE kind = 'aggregate'").get()
        ?.["number"];
      raw.exec(sql.replaceAll("$", String(number)));
    }
    assert.throws(() => checkDatabase(folder.path), reason, sql);
  }
});

Deno.test("unknown aggregates, invalid bounds and invalid definitions are refused", () => {
  using db = new TestDatabase(Object.fromEntries(withAggregate));
  db.query((tx) => {
    assert.throws(() => tx.aggregate("items", "by_x", { eq: [] }), {
      code: "unknown_index",
      message:
        'Table "items" has no aggregate "by_x"; its aggregates are by_group (group, points, _creationTime)',
    });
    assert.throws(() => tx.aggregate("others", "by_group", { eq: [] }), /its aggregates are none/);
    assert.throws(() => tx.aggregate("items", "by_group", { eq: [1, 2, 3, 4] }), { code: "bad_bounds" });
    assert.throws(
      () => tx.scan("items", "by_group", { eq: [] }, { order: "asc" }),
      /"by_group" of table "items" is an aggregate: read it with ctx\.db\.aggregate/,
    );
  });
  const apply = (aggregate: { readonly by: string[]; readonly sum: string[] }) => () =>
    db.writer.applySchema(schemaOf({ items: anyTable({ aggregates: [{ name: "one", ...aggregate }] }) }));
  assert.throws(apply({ by: [], sum: [] }), /Index "one" of table "items" has 0 fields/);
  assert.throws(apply({ by: ["a", "a"], sum: [] }), /"one" of table "items" names a field twice/);
  assert.throws(apply({ by: ["a"], sum: Array.from("123456789") }), /sums more than 8 fields/);
});
