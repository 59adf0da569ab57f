/** Applies rows of another database: the contents and the commit entries. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  chainedSum,
  checkDatabase,
  EngineError,
  type JournalRow,
  markAsFollower,
  newId,
  openDatabaseSnapshot,
  openHistoryReplay,
  openJournalReader,
  openReaderDatabase,
  openWriterDatabase,
  readRow,
  readSetTouches,
  rowEntries,
} from "../../mod/engine/mod.ts";
import type {
  AppliedRows,
  CommitEntry,
  EngineErrorCode,
  ReadTransaction,
  SchemaDefinition,
  TableDefinition,
  WriterDatabase,
  WriteTransaction,
} from "../../mod/engine/mod.ts";
import { AppliedGroup, packApplied } from "../../mod/functions/wire/applied_rows.ts";
import { entriesOf, packedEntries } from "../../mod/functions/host/packed_commits.ts";
import { storedTables } from "../../mod/engine/catalog.ts";
import { Connection } from "../../mod/engine/connection.ts";
import { DocumentWriter } from "../../mod/engine/documents/document_writer.ts";
import { anyTable, anyValue, schemaOf, seededIds, TemporaryDatabase } from "./support.ts";

const by_n = { name: "by_n", fields: ["n"] };
const by_text = { name: "by_text", searchField: "text", filterFields: ["n"] };
const by_place = { name: "by_place", vectorField: "place", dimensions: 2, filterFields: [] };
const tables = {
  items: anyTable({ indexes: [by_n], searchIndexes: [by_text], vectorIndexes: [by_place] }),
  others: anyTable({ indexes: [by_n] }),
  _rows: anyTable(),
};

const wrong = (code: EngineErrorCode, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

/** A database with a journal, and a follower that started as its copy. */
class Pair implements Disposable {
  readonly #folders = [new TemporaryDatabase(), new TemporaryDatabase(), new TemporaryDatabase()] as const;
  readonly origin: WriterDatabase;
  readonly follower: WriterDatabase;
  readonly schema: SchemaDefinition;
  now = 1_700_000_000_000;
  #rowsRead = 0;

  constructor(definitions: Record<string, TableDefinition> = tables, { seed = 1 } = {}) {
    const [origin, follower, restored] = this.#folders;
    const newId = seededIds(seed);
    this.schema = schemaOf(definitions);
    const open = () => {
      const db = openWriterDatabase(origin.path, {
        journal: { pendingBytesMax: 2 ** 26 },
        now: () => this.now,
        newId,
      });
      db.applySchema(this.schema);
      return db;
    };
    {
      using db = open();
      this.#rowsRead = db.history?.seq ?? 0;
    }
    Deno.copyFileSync(origin.path, follower.path);
    Deno.copyFileSync(origin.path, restored.path);
    markAsFollower(follower.path, "the other");
    this.origin = open();
    this.follower = openWriterDatabase(follower.path, {
      journal: "external",
      now: () => this.now,
    });
  }

  get followerPath(): string {
    return this.#folders[1].path;
  }

  /** Commits mutations as one group. Returns their entries. */
  group(...runs: readonly ((tx: WriteTransaction) => void)[]): CommitEntry[] {
    this.origin.openGroup();
    const entries = runs.flatMap((run) => {
      this.now++;
      run(this.origin.beginMutation({ at: this.now }));
      return this.origin.releaseMutation() ?? [];
    });
    this.origin.commitGroup("");
    return entries;
  }

  /** Applies rows in one transaction. Returns the commits as the main process receives them. */
  applyPacked(rows: readonly JournalRow[] = this.rows()): CommitEntry[] {
    const travelling = JSON.stringify(packApplied(applied(this.follower, rows)));
    return new AppliedGroup(rows, JSON.parse(travelling)).entries();
  }

  /** Returns the journal rows since the last call. */
  rows(): JournalRow[] {
    using reader = openJournalReader(this.#folders[0].path);
    const { rows } = reader.read(this.#rowsRead);
    this.#rowsRead += rows.length;
    return [...rows];
  }

  /** Applies rows in one transaction. Returns their commit entries. */
  apply(rows: readonly JournalRow[] = this.rows()): CommitEntry[] {
    return rowEntries(rows, applied(this.follower, rows));
  }

  /** Replays all rows onto the initial copy, as a restore does. */
  async restore(): Promise<string> {
    const [origin, , restored] = this.#folders;
    using reader = openJournalReader(origin.path);
    using replay = openHistoryReplay(restored.path);
    for (const row of reader.read(replay.history?.seq ?? 0).rows) replay.take(row);
    await Array.fromAsync(replay.write());
    return restored.path;
  }

  /** Reads one of the databases through every index. */
  contentsOf(path: string): unknown {
    using reader = openReaderDatabase(path);
    reader.useSchema(this.schema);
    reader.openSnapshot();
    return everything(reader.beginQuery());
  }

  /** Reads both through every index. */
  contents(): { readonly follower: unknown; readonly origin: unknown } {
    const [origin, follower] = this.#folders;
    return { follower: this.contentsOf(follower.path), origin: this.contentsOf(origin.path) };
  }

  [Symbol.dispose](): void {
    this.origin[Symbol.dispose]();
    this.follower[Symbol.dispose]();
    for (const folder of this.#folders) folder[Symbol.dispose]();
  }
}

function applied(db: WriterDatabase, rows: readonly JournalRow[]): AppliedRows {
  db.openGroup();
  try {
    const changes = db.applyRows(rows);
    db.commitGroup(null);
    return changes;
  } catch (error) {
    db.rollbackGroup();
    throw error;
  }
}

/** Changes the contents of rows and chains them again. */
function rewritten(
  rows: readonly JournalRow[],
  { before, change }: { readonly before: string; readonly change: (head: { s?: number[] }) => void },
): JournalRow[] {
  let sum = before;
  return rows.map((row) => {
    const end = row.body.indexOf("\n");
    const head = JSON.parse(row.body.slice(0, end));
    change(head);
    const other = { ...row, body: JSON.stringify(head) + row.body.slice(end) };
    sum = chainedSum(sum, other);
    return { ...other, sum };
  });
}

/** Returns the marks of each change: whether index entries are unchanged. */
function marks(rows: readonly JournalRow[]): boolean[] {
  return rows.flatMap((row) =>
    readRow(row).commits.flatMap(({ changes }) => changes.map(({ same }) => same))
  );
}

/** Reads all tables through each index. */
function everything(tx: ReadTransaction): unknown {
  const scanned = (table: string, index: string) => [...tx.scan(table, index, { eq: [] }, { order: "asc" })];
  return {
    items: scanned("items", "by_creation_time"),
    byId: scanned("items", "by_id"),
    byN: scanned("items", "by_n"),
    othersByN: scanned("others", "by_n"),
    rows: scanned("_rows", "by_id"),
    found: [...tx.search("items", "by_text", { query: "word", filters: [] })],
    near: tx.vectorSearch("items", "by_place", { vector: [1, 0], limit: 10, filters: [] }),
    others: scanned("others", "by_creation_time"),
  };
}

/** A step of the property: inserts, changes or deletes one of a few documents, or ends a mutation or a group. */
const commands = fc.array(
  fc.record({
    kind: fc.constantFrom("insert", "patch", "patch", "touch", "delete", "again", "mutation", "group"),
    table: fc.constantFrom("items", "others", "_rows"),
    which: fc.nat(3),
    n: anyValue,
    text: fc.constantFrom("word", "a word or two", "none"),
  }),
  { maxLength: 40 },
);

/** Groups of mutations, each a list of writes. */
function groupsOf(
  steps: typeof commands extends fc.Arbitrary<infer Steps> ? Steps : never,
): ((tx: WriteTransaction) => void)[][] {
  const ids: string[] = [];
  const groups: ((tx: WriteTransaction) => void)[][] = [[]];
  let writes: ((tx: WriteTransaction) => void)[] = [];
  const endMutation = () => {
    const these = writes;
    writes = [];
    if (these.length > 0) groups.at(-1)?.push((tx) => these.forEach((write) => write(tx)));
  };
  for (const { kind, table, which, n, text } of steps) {
    if (kind === "mutation" || kind === "group") {
      endMutation();
      if (kind === "group") groups.push([]);
      continue;
    }
    writes.push((tx) => {
      const id = ids[which];
      const doc = id === undefined ? null : tx.get(id);
      if (kind === "insert" || id === undefined || doc === null) {
        ids.unshift(tx.insert(table, { n, text, place: [1, which], more: 0 }));
      } else if (kind === "patch") tx.patch(id, { n, text });
      else if (kind === "touch") tx.patch(id, { more: text + which });
      else {
        tx.delete(id);
        // Some are stored again unchanged.
        if (kind === "again") tx.importDocument(tx.tableOf(id) ?? "", doc, { mode: "insert" });
      }
    });
  }
  endMutation();
  return groups;
}

/** The parts of a commit that read sets are compared with. */
function entryKeys({ ts, changes }: CommitEntry): unknown {
  return { ts, changes: changes.map(({ id, keys }) => ({ id, keys })) };
}

/** Queries whose read sets must detect every change of their results. */
const queries: ((tx: ReadTransaction) => unknown)[] = [
  ...["items", "others", "_rows"].flatMap((table) => [
    (tx: ReadTransaction) => [...tx.scan(table, "by_creation_time", { eq: [] }, { order: "asc" })],
    (tx: ReadTransaction) => [...tx.scan(table, "by_id", { eq: [] }, { order: "desc" })].slice(0, 2),
  ]),
  ...["items", "others"].flatMap((table) => [
    (
      tx: ReadTransaction,
    ) => [...tx.scan(table, "by_n", { eq: [], lower: { value: 0, inclusive: true } }, { order: "asc" })],
    (tx: ReadTransaction) => [...tx.scan(table, "by_n", { eq: [null] }, { order: "asc" })],
  ]),
  (tx) => [...tx.search("items", "by_text", { query: "two", filters: [] })],
  (tx) => tx.vectorSearch("items", "by_place", { vector: [1, 0], limit: 10, filters: [] }),
];

Deno.test("RP1 RP23 a follower and a restored database return the same as the writer, and affected queries are found", async () => {
  await fc.assert(
    fc.asyncProperty(commands, fc.nat(3), fc.nat(), async (steps, atOnce, seed) => {
      using pair = new Pair(tables, { seed });
      using reader = openReaderDatabase(pair.followerPath);
      reader.useSchema(pair.schema);
      const asked = () => {
        reader.openSnapshot();
        const answers = queries.map((query) => {
          const tx = reader.beginQuery();
          return { result: JSON.stringify(query(tx)), readSet: tx.readSet() };
        });
        reader.closeSnapshot();
        return answers;
      };
      const rows: JournalRow[] = [];
      const committed: CommitEntry[] = [];
      for (const group of groupsOf(steps)) {
        committed.push(...pair.group(...group));
        rows.push(...pair.rows());
      }
      let ts = pair.follower.ts;
      while (rows.length > 0) {
        const before = asked();
        const entries = pair.applyPacked(rows.splice(0, atOnce + 1));
        for (const entry of entries) assert.equal(entry.ts, ++ts);
        assert.deepEqual(entries.map(entryKeys), committed.splice(0, entries.length).map(entryKeys));
        for (const [at, { result }] of asked().entries()) {
          const old = before[at] ?? assert.fail();
          if (result === old.result) continue;
          assert.ok(
            entries.some((entry) => readSetTouches(old.readSet, entry)),
            `query ${at} is not touched`,
          );
        }
        // Listeners read the contents of the service's tables.
        for (const { changes } of entries) {
          for (const { table, doc } of changes) {
            assert.equal(doc === undefined, !table.startsWith("_"));
          }
        }
      }
      assert.equal(pair.follower.ts, pair.origin.ts);
      const { follower, origin } = pair.contents();
      assert.deepEqual(follower, origin);
      checkDatabase(pair.followerPath);
      assert.deepEqual(pair.contentsOf(await pair.restore()), origin);
    }),
    { numRuns: 40 },
  );
});

Deno.test("RP1 a row marks changes that leave index entries unchanged, and these are written without a read", () => {
  using pair = new Pair();
  const ids: Record<string, string> = {};
  pair.group((tx) => {
    for (const table of ["items", "others"]) {
      ids[table] = tx.insert(table, { n: 1, text: "word", place: [1, 2], more: 0 });
    }
  });
  const { items = "", others = "" } = ids;
  assert.deepEqual(marks(pair.rows()), [false, false]);
  const markOf = (run: (tx: WriteTransaction) => void) => {
    pair.group(run);
    return marks(pair.rows());
  };
  assert.deepEqual(markOf((tx) => tx.patch(others, { more: 1 })), [true]);
  assert.deepEqual(markOf((tx) => tx.patch(others, { n: 2 })), [false]);
  assert.deepEqual(markOf((tx) => tx.patch(items, { more: 1 })), [true]);
  assert.deepEqual(markOf((tx) => tx.patch(items, { text: "another" })), [false], "words");
  assert.deepEqual(markOf((tx) => tx.patch(items, { place: [2, 1] })), [false], "a vector");
  assert.deepEqual(
    markOf((tx) => {
      tx.patch(others, { more: 2 });
      tx.insert("others", { n: 3 });
      tx.patch(items, { more: 2 });
    }),
    [true, false, true],
  );
  assert.deepEqual(
    markOf((tx) => {
      tx.delete(items);
      tx.patch(others, { more: 3 });
    }),
    [false, true],
  );
});

Deno.test("RP1 rows of a version without these marks are applied", async () => {
  using pair = new Pair();
  using replayed = new TemporaryDatabase();
  Deno.copyFileSync(pair.followerPath, replayed.path);
  const { sum = "" } = pair.follower.history ?? {};
  let id = "";
  pair.group((tx) => id = tx.insert("others", { n: 1, more: 0 }));
  pair.group(
    (tx) => tx.patch(id, { more: 1 }),
    (tx) => tx.patch(id, { more: 2 }),
    (tx) => tx.patch(id, { n: 5 }),
  );
  pair.group((tx) => tx.patch(id, { more: 3 }));
  const rows = pair.rows();
  assert.ok(marks(rows).includes(true));
  const old = rewritten(rows, { before: sum, change: (head) => delete head.s });
  assert.ok(!marks(old).includes(true));
  pair.apply(old.slice(0, 2));
  const [entry] = pair.apply(old.slice(2));
  assert.equal(entry?.changes[0]?.unchanged, undefined);
  assert.ok(entry?.changes[0]?.keys.every(([, before, after]) => before !== null && before === after));
  const { follower, origin } = pair.contents();
  assert.deepEqual(follower, origin);
  {
    using copy = openHistoryReplay(replayed.path);
    for (const row of old) copy.take(row);
    await Array.fromAsync(copy.write());
  }
  checkDatabase(replayed.path);
  using reader = openReaderDatabase(replayed.path);
  reader.useSchema(pair.schema);
  reader.openSnapshot();
  const { n, more } = reader.beginQuery().get(id) ?? assert.fail();
  assert.deepEqual({ n, more }, { n: 5, more: 3 });
});

Deno.test("[PG5] each commit of a document that changes in every commit has its own keys, and other commits have none of them", () => {
  using pair = new Pair();
  let id = "";
  pair.group((tx) => id = tx.insert("others", { n: 0, more: 0 }));
  pair.apply();
  const committed = Array.from({ length: 20 }, (_, n) =>
    pair.group(
      (tx) => tx.patch(id, { n: n + 1 }),
      (tx) => tx.patch(id, { more: n + 1 }),
    )).flat();
  const entries = pair.applyPacked();
  assert.deepEqual(entries.map(entryKeys), committed.map(entryKeys));
  const reported = entries.flatMap(({ changes }) => changes.map(({ keys }) => keys.length));
  assert.deepEqual(reported, new Array(40).fill(3));
});

Deno.test("[PG5] unchanged keys count the whole row in memory, however few of its changes have them", () => {
  using pair = new Pair();
  const ids: string[] = [];
  pair.group((tx) => {
    for (let n = 0; n < 2; n++) ids.push(tx.insert("others", { n }));
  });
  pair.apply();
  const text = "x".repeat(1000);
  pair.group((tx) => {
    for (let n = 0; n < 20; n++) tx.insert("others", { text });
    for (let n = 0; n < 20; n++) tx.insert("_rows", { text });
    for (const id of ids) tx.patch(id, { more: 1 });
  });
  const rows = pair.rows();
  const entries = pair.applyPacked(rows);
  const kept = entries.flatMap(({ changes }) => changes.flatMap(({ unchanged: kept }) => kept ?? []));
  assert.equal(kept.length, 2);
  assert.equal(kept.reduce((sum, { chars }) => sum + chars, 0), rows[0]?.body.length);
});

Deno.test("a text is written only to the row of its document", () => {
  using folder = new TemporaryDatabase();
  const ids: string[] = [];
  {
    using db = openWriterDatabase(folder.path);
    db.applySchema(schemaOf(tables));
    db.openGroup();
    const tx = db.beginMutation({ at: 1_700_000_000_000 });
    for (let n = 0; n < 2; n++) ids.push(tx.insert("others", { n }));
    db.releaseMutation();
    db.commitGroup("");
  }
  using connection = Connection.openScratch(folder.path);
  const table = storedTables(connection).named("others");
  const [own = "", other = ""] = ids;
  const [rid, text] = connection.statement(table.sql.get).get(own) as [number, string];
  const writer = new DocumentWriter(connection);
  assert.throws(
    () => writer.updateText({ table, rid, id: other, text }),
    wrong("unusable_database", /damaged/),
  );
  writer.updateText({ table, rid, id: own, text: text.replace('"n":0', '"n":7') });
  const n = ids.map((id) =>
    JSON.parse((connection.statement(table.sql.get).get(id) as [number, string])[1]).n
  );
  assert.deepEqual(n, [7, 1]);
});

Deno.test("[PG5] unchanged keys are computed on demand", () => {
  using pair = new Pair();
  let id = "";
  pair.group((tx) => id = tx.insert("others", { n: 7, more: 0 }));
  pair.apply();
  pair.group((tx) => tx.patch(id, { more: 1 }));
  const [entry] = pair.apply();
  const [change] = entry?.changes ?? [];
  assert.ok(change?.unchanged !== undefined && change.doc === undefined);
  const { spaces, key } = {
    spaces: change.unchanged.spaces,
    key: (place: number) => change.unchanged?.key(place),
  };
  assert.equal(spaces.length, 3);
  assert.equal(key(0), id);
  assert.deepEqual(change.keys, spaces.map((space, place) => [space, key(place), key(place)]));
  const reader = openReaderDatabase(pair.followerPath);
  reader.useSchema(pair.schema);
  reader.openSnapshot();
  const tx = reader.beginQuery();
  assert.equal([...tx.scan("others", "by_n", { eq: [7] }, { order: "asc" })].length, 1);
  assert.ok(entry && readSetTouches(tx.readSet(), entry));
  reader[Symbol.dispose]();
});

Deno.test("[PG5] a query of an intermediate state between two rows applied together is touched, too", () => {
  using pair = new Pair();
  let moved = "";
  pair.group((tx) => moved = tx.insert("items", { n: 1, text: "one", place: [1, 1] }));
  pair.apply();
  using reader = openReaderDatabase(pair.followerPath);
  reader.useSchema(pair.schema);
  const readSets = [
    (tx: ReadTransaction) => [...tx.scan("items", "by_n", { eq: [2] }, { order: "asc" })],
    (tx: ReadTransaction) => [...tx.search("items", "by_text", { query: "two", filters: [] })],
  ].map((query) => {
    reader.openSnapshot();
    const tx = reader.beginQuery();
    assert.deepEqual(query(tx), []);
    reader.closeSnapshot();
    return tx.readSet();
  });
  const reported = (entries: readonly CommitEntry[]) =>
    readSets.map((readSet) => entries.map((entry) => readSetTouches(readSet, entry)));
  // A document that exists neither before nor after them, and one that returns to its original state.
  let gone = "";
  const twice = [
    [
      (tx: WriteTransaction) => gone = tx.insert("items", { n: 2, text: "two" }),
      (tx: WriteTransaction) => tx.delete(gone),
    ],
    [
      (tx: WriteTransaction) => tx.patch(moved, { n: 2, text: "two" }),
      (tx: WriteTransaction) => tx.patch(moved, { n: 1, text: "one" }),
    ],
  ] as const;
  for (const [first, second] of twice) {
    for (const together of [true, false]) {
      if (together) pair.group((tx) => void first(tx), (tx) => void second(tx));
      else {
        pair.group((tx) => void first(tx));
        pair.group((tx) => void second(tx));
      }
      assert.deepEqual(reported(pair.applyPacked()), [[true, true], [true, true]]);
      assert.deepEqual(pair.contents().follower, pair.contents().origin);
    }
  }
});

Deno.test("[PG5] an import that makes the newest document older affects queries for it, on leader and follower", () => {
  using pair = new Pair();
  const ids: string[] = [];
  pair.group((tx) => {
    for (let n = 0; n < 4; n++) ids.push(tx.insert("others", { n }));
  });
  pair.apply();
  using reader = openReaderDatabase(pair.followerPath);
  reader.useSchema(pair.schema);
  reader.openSnapshot();
  const tx = reader.beginQuery();
  const newest = tx.scan("others", "by_creation_time", { eq: [] }, { order: "desc" });
  const shown = [newest.next().value, newest.next().value].map((row) => row?.doc._id);
  newest.return?.();
  assert.deepEqual(shown, [ids[3], ids[2]]);
  const readSet = tx.readSet();
  reader.closeSnapshot();
  const [, , second = "", first = ""] = ids;
  const upserts = (tx: WriteTransaction) =>
    tx.importDocument("others", { _id: first, _creationTime: 1000, n: 3 }, { mode: "upsert" });
  const replaces = (tx: WriteTransaction) => {
    tx.delete(second);
    tx.importDocument("others", { _id: second, _creationTime: 0.5, n: 2 }, { mode: "insert" });
  };
  for (const older of [upserts, replaces]) {
    const reported = entriesOf(packedEntries(pair.group(older)));
    const follows = pair.applyPacked();
    const touched = (entries: readonly CommitEntry[]) =>
      entries.map((entry) => readSetTouches(readSet, entry));
    assert.deepEqual([touched(reported), touched(follows)], [[true], [true]]);
    assert.deepEqual(follows.map(entryKeys), reported.map(entryKeys));
  }
});

Deno.test("RP16 a row that does not continue the history rolls back the rows before it in its transaction", () => {
  using pair = new Pair();
  for (let n = 0; n < 4; n++) pair.group((tx) => tx.insert("items", { n, text: "word", place: [1, n] }));
  const rows = pair.rows();
  const before = pair.follower.history;
  const last = rows.at(-1) ?? assert.fail();
  for (
    const bad of [
      { ...last, body: last.body.replace("word", "work") },
      { ...last, seq: last.seq + 1 },
    ]
  ) {
    assert.throws(() => pair.apply([...rows.slice(0, -1), bad]), wrong("bad_entry", /does not follow row/));
    assert.deepEqual(pair.follower.history, before);
    assert.equal(pair.follower.ts, 0);
  }
  // Even if the caller ignores the error, nothing can be committed.
  pair.follower.openGroup();
  assert.throws(() => pair.follower.applyRows([last]), wrong("bad_entry", /does not follow/));
  assert.throws(() => pair.follower.commitGroup(null), wrong("failed_group", /failed to write/));
  pair.follower.rollbackGroup();
  pair.apply(rows);
  assert.equal(pair.follower.ts, 4);
});

Deno.test("RP16 rows are validated: unknown table, invalid JSON, another document, a missing document", () => {
  using pair = new Pair();
  const { sum = "" } = pair.follower.history ?? {};
  let id = "";
  pair.group((tx) => id = tx.insert("others", { n: 1 }));
  const [row] = pair.rows();
  assert.ok(row);
  const other = (from: string, to: string): JournalRow => {
    const changed = { ...row, body: row.body.replaceAll(from, to) };
    return { ...changed, sum: chainedSum(sum, changed) };
  };
  const doc = row.body.slice(row.body.indexOf("\n") + 1);
  const refused: [JournalRow, EngineErrorCode, RegExp][] = [
    [other(id, newId(99)), "bad_entry", /No table has document/],
    [other(doc, "{"), "bad_entry", /it is not JSON/],
    [other(doc, doc.replace(id, newId(2))), "bad_entry", /it is another document/],
    [other(`${doc}`, ""), "bad_entry", /it is not JSON/],
    [other(`\n${doc}`, ""), "bad_entry", /it ends too early/],
    // The row claims that the document exists.
    [
      rewritten([row], { before: sum, change: (head) => head.s = [1] })[0] ?? row,
      "unusable_database",
      /damaged/,
    ],
  ];
  for (const [bad, code, message] of refused) {
    assert.throws(() => pair.apply([bad]), wrong(code, message));
    assert.equal(pair.follower.ts, 0);
  }
  pair.apply([row]);
  const { follower, origin } = pair.contents();
  assert.deepEqual(follower, origin);
});

Deno.test("a row with wrong flags causes errors that the check finds", async () => {
  for (const way of ["applied", "replayed"]) {
    using pair = new Pair();
    let id = "";
    pair.group((tx) => id = tx.insert("others", { n: 1 }));
    pair.apply();
    const { sum = "" } = pair.follower.history ?? {};
    pair.group((tx) => tx.patch(id, { n: 2 }));
    const rows = rewritten(pair.rows(), { before: sum, change: (head) => head.s = [1] });
    using copied = new TemporaryDatabase();
    {
      using held = openDatabaseSnapshot(pair.followerPath);
      await held.copyTo(copied.path);
    }
    if (way === "applied") {
      using db = openWriterDatabase(copied.path, { journal: "external" });
      applied(db, rows);
    } else {
      using copy = openHistoryReplay(copied.path);
      for (const row of rows) copy.take(row);
      await Array.fromAsync(copy.write());
    }
    assert.throws(() => checkDatabase(copied.path), /index/, way);
  }
});

Deno.test("RP1 tables and indexes that change between the rows of a transaction are those of the last row", () => {
  using pair = new Pair({ others: anyTable() });
  let id = "";
  pair.group((tx) => id = tx.insert("others", { n: 1, more: 0 }));
  pair.origin.applySchema(schemaOf({ ...tables, others: anyTable({ indexes: [by_n] }) }));
  pair.group((tx) => {
    tx.patch(id, { more: 1 });
    tx.insert("items", { n: 4, text: "word", place: [1, 1] });
  });
  pair.origin.applySchema(schemaOf({ ...tables, others: anyTable() }));
  pair.group((tx) => tx.patch(id, { n: 2 }), (tx) => tx.delete(id));
  applied(pair.follower, pair.rows());
  checkDatabase(pair.followerPath);
  using reader = openReaderDatabase(pair.followerPath);
  reader.useSchema(schemaOf({ ...tables, others: anyTable() }));
  reader.openSnapshot();
  const tx = reader.beginQuery();
  assert.equal(tx.get(id), null);
  assert.equal([...tx.scan("items", "by_n", { eq: [4] }, { order: "asc" })].length, 1);
});
