/** The journal: chained rows with all changes of a group, and how they are applied. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import {
  checkDatabase,
  EngineError,
  forgetHistory,
  type JournalRow,
  openDatabaseSnapshot,
  openHistoryReplay,
  openJournalReader,
  openWriterDatabase,
  type RecordKey,
  type SchemaDefinition,
  type WriterDatabase,
} from "../../mod/engine/mod.ts";
import { replayLimits } from "../../mod/engine/limits.ts";
import { anyTable, schemaOf, TemporaryDatabase } from "./support.ts";

const by_n = { name: "by_n", fields: ["n"] };
const by_text = { name: "by_text", searchField: "text", filterFields: ["n"] };
const by_place = { name: "by_place", vectorField: "place", dimensions: 2, filterFields: [] };
const schemas: SchemaDefinition[] = [
  schemaOf({ items: anyTable({ indexes: [by_n], fingerprint: "1" }) }),
  schemaOf({ items: anyTable({ indexes: [by_n], searchIndexes: [by_text] }), others: anyTable() }),
  schemaOf({ items: anyTable({ vectorIndexes: [by_place], fingerprint: "2" }), others: anyTable() }),
  schemaOf({ items: anyTable({ indexes: [by_n], vectorIndexes: [by_place], searchIndexes: [by_text] }) }),
];

const journal = { pendingBytesMax: 64 * 1024 * 1024 } as const;

/** Returns the contents of all tables except the journal's own, as a restored database needs them. */
function contents(path: string): Record<string, unknown[]> {
  using db = new DatabaseSync(path, { readOnly: true });
  const names = db.prepare(
    `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'syncline_journal%'
     AND name NOT LIKE 's%\\_%' ESCAPE '\\' AND name NOT LIKE 'syncline_record%'`,
  ).all().map(({ name }) => String(name));
  const all: Record<string, unknown[]> = {};
  for (const name of names) {
    // Row ids and their references differ between databases.
    const rows = db.prepare(`SELECT * FROM ${name}`).all().map(({ rid: _, rowid: __, ...row }) =>
      JSON.stringify(row, (_key, value) => value instanceof Uint8Array ? [...value] : value)
    );
    if (!/^w\d+$/.test(name)) all[name] = rows.sort();
  }
  const state = db.prepare("SELECT ts, lastCreationTime FROM syncline_state").all();
  return { ...all, state };
}

/** A seeded writer that inserts, changes and deletes documents, records answers and changes its schema. */
class Workload {
  readonly #random: () => number;
  readonly ids: string[] = [];
  now = 1_700_000_000_000;
  /** Next request ids by caller: some records are consecutive. */
  readonly #requests = new Map<string, number>();
  /** Committed records with their time. */
  readonly records: { readonly key: RecordKey; readonly at: number }[] = [];

  constructor(seed: number) {
    let state = seed;
    this.#random = () => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state / 2 ** 31;
    };
  }

  pick(count: number): number {
    return Math.floor(this.#random() * count);
  }

  group(db: WriterDatabase): void {
    db.openGroup();
    const saved: typeof this.records = [];
    for (let call = this.pick(4); call >= 0; call--) {
      this.now += this.pick(3) === 0 ? 150_000 : 7;
      const tx = db.beginMutation({ at: this.now });
      for (let write = this.pick(4); write > 0; write--) this.#write(tx);
      if (this.pick(5) === 0) db.rollbackMutation();
      else db.releaseMutation();
      const principal = this.pick(2) === 0 ? null : "someone";
      const sessionId = `s${this.pick(3)}`;
      const caller = `${sessionId} ${principal}`;
      const requestId = this.#requests.get(caller) ?? 0;
      this.#requests.set(caller, requestId + 1);
      const key = { sessionId, requestId, principal };
      if (this.pick(2) > 0) continue;
      db.saveRecord(key, `{"ts":${db.ts},"value":null}`);
      saved.push({ key, at: this.now });
    }
    if (this.pick(8) === 0) return db.rollbackGroup();
    db.commitGroup("text");
    this.records.push(...saved);
  }

  #write(tx: ReturnType<WriterDatabase["beginMutation"]>): void {
    const fields = {
      n: this.pick(9),
      text: ["word", "two words", "line\nbreak", "\ud800"][this.pick(4)],
      place: [this.pick(5) + 1, -1],
    };
    const id = this.ids[this.pick(this.ids.length)];
    const kind = this.pick(4);
    if (id === undefined || kind < 2 || tx.get(id) === null) this.ids.push(tx.insert("items", fields));
    else if (kind === 2) tx.patch(id, fields);
    else tx.delete(id);
  }
}

function rowsOf(path: string, after = 0): JournalRow[] {
  using reader = openJournalReader(path);
  const rows: JournalRow[] = [];
  for (let seq = after;;) {
    const more = reader.read(seq).rows;
    if (more.length === 0) return rows;
    rows.push(...more);
    seq = rows.at(-1)?.seq ?? seq;
  }
}

async function copyOf(path: string, target: string): Promise<void> {
  using held = openDatabaseSnapshot(path);
  await held.copyTo(target);
}

/** Applies rows as a follower does, this many in one transaction. */
function applyAll(path: string, rows: readonly JournalRow[], atOnce: number): void {
  let at = 0;
  using db = openWriterDatabase(path, { journal: "external", now: () => at });
  for (let from = 0; from < rows.length; from += atOnce) {
    const some = rows.slice(from, from + atOnce);
    at = some.at(-1)?.at ?? at;
    db.openGroup();
    db.applyRows(some);
    db.commitGroup(null);
  }
}

/** Applies rows as a restore does, merging this many at a time. */
async function replayAll(path: string, rows: readonly JournalRow[], atOnce: number): Promise<void> {
  using copy = openHistoryReplay(path);
  for (const [index, row] of rows.entries()) {
    copy.take(row);
    if (index % atOnce === 0) await Array.fromAsync(copy.write());
  }
  await Array.fromAsync(copy.write());
  assert.equal(copy.history?.sum, rows.at(-1)?.sum);
}

Deno.test("RP1 a database that applies the rows has the same tables, through schema changes and restarts", async () => {
  for (const seed of [1, 2, 3, 4]) {
    using origin = new TemporaryDatabase();
    using other = new TemporaryDatabase();
    const work = new Workload(seed);
    const open = () => openWriterDatabase(origin.path, { journal, now: () => work.now });
    let db = open();
    db.applySchema(schemas[0] ?? new Map());
    for (let group = 0; group < 20; group++) work.group(db);
    await copyOf(origin.path, other.path);
    const from = db.history?.seq ?? 0;
    for (let step = 0; step < 120; step++) {
      if (work.pick(15) === 0) {
        db[Symbol.dispose]();
        db = open();
        db.applySchema(schemas[work.pick(schemas.length)] ?? new Map());
      }
      work.group(db);
    }
    const generation = db.history?.generation;
    const recent = work.records.filter(({ at }) => at > work.now - replayLimits.recordMs);
    const answers = recent.map(({ key }) => db.findRecord(key));
    assert.ok(recent.length > 0 && !answers.includes(null));
    db[Symbol.dispose]();
    const rows = rowsOf(origin.path, from);
    assert.ok(rows.length > 50);
    const atOnce = work.pick(100) + 1;
    for (
      const way of ["row by row", `${atOnce} rows in one transaction`, `${atOnce} rows replayed at once`]
    ) {
      using copy = new TemporaryDatabase();
      await Deno.copyFile(other.path, copy.path);
      if (way === "row by row") applyAll(copy.path, rows, 1);
      else if (way.endsWith("transaction")) applyAll(copy.path, rows, atOnce);
      else await replayAll(copy.path, rows, atOnce);
      assert.deepEqual(contents(copy.path), contents(origin.path), `seed ${seed}, ${way}`);
      checkDatabase(copy.path);
      using followed = openWriterDatabase(copy.path, { journal: "external" });
      assert.equal(followed.history?.generation, generation);
      assert.deepEqual(recent.map(({ key }) => followed.findRecord(key)), answers);
    }
  }
});

Deno.test("RP16 a gap, a repetition, a swapped or a changed row is refused, and the database is not changed", async () => {
  using origin = new TemporaryDatabase();
  using other = new TemporaryDatabase();
  const work = new Workload(7);
  {
    using db = openWriterDatabase(origin.path, { journal, now: () => work.now });
    db.applySchema(schemas[1] ?? new Map());
    await copyOf(origin.path, other.path);
    for (let group = 0; group < 12; group++) work.group(db);
  }
  const [schemaRow, first, second, third] = rowsOf(origin.path);
  assert.ok(schemaRow && first && second && third);
  using replayed = new TemporaryDatabase();
  await Deno.copyFile(other.path, replayed.path);
  using db = openWriterDatabase(other.path, { journal: "external" });
  const refused = (row: JournalRow) => {
    const before = db.history;
    db.openGroup();
    assert.throws(
      () => db.applyRows([row]),
      (error) => error instanceof EngineError && error.code === "bad_entry",
    );
    db.rollbackGroup();
    assert.deepEqual(db.history, before);
  };
  {
    using copy = openHistoryReplay(replayed.path);
    const stands = copy.history;
    for (const row of [second, { ...first, at: first.at + 1 }, { ...first, ts: first.ts + 1 }]) {
      assert.throws(
        () => copy.take(row),
        (error) => error instanceof EngineError && error.code === "bad_entry",
      );
    }
    assert.deepEqual(copy.history, stands);
    copy.take(first);
    assert.throws(() => copy.take(first), /does not follow row/);
  }
  refused(second);
  refused({ ...first, body: first.body.replace("word", "work") });
  refused({ ...first, at: first.at + 1 });
  refused({ ...first, ts: first.ts + 1 });
  db.openGroup();
  db.applyRows([first]);
  db.commitGroup(null);
  refused(first);
  refused(third);
  refused({ ...third, seq: second.seq });
  db.openGroup();
  db.applyRows([second, third]);
  db.commitGroup(null);
  assert.equal(db.history?.seq, third.seq);
});

Deno.test("PT2 some commits of a row can be applied, with the answers up to them", async () => {
  using origin = new TemporaryDatabase();
  using other = new TemporaryDatabase();
  using db = openWriterDatabase(origin.path, { journal });
  db.applySchema(schemas[0] ?? new Map());
  await copyOf(origin.path, other.path);
  db.openGroup();
  for (let n = 0; n < 3; n++) {
    db.beginMutation({ at: 1_000 + n }).insert("items", { n });
    db.releaseMutation();
    db.saveRecord({ sessionId: "s", requestId: n, principal: null }, `answer ${n}`);
  }
  db.commitGroup("");
  const [row] = rowsOf(origin.path, 1);
  assert.ok(row);
  using replayed = new TemporaryDatabase();
  await Deno.copyFile(other.path, replayed.path);
  {
    using copy = openHistoryReplay(replayed.path);
    assert.deepEqual(copy.take(row, { untilTs: 2 }), { commits: 2, at: 1_001 });
    await Array.fromAsync(copy.write());
  }
  using restored = openWriterDatabase(replayed.path, { journal: "external", now: () => 1_000 });
  assert.equal(restored.ts, 2);
  const record = (requestId: number) => restored.findRecord({ sessionId: "s", requestId, principal: null });
  assert.deepEqual([0, 1, 2].map(record), ["answer 0", "answer 1", null]);
  // Creation times after that ts do not count, however far ahead.
  restored.openGroup();
  const transaction = restored.beginMutation({ at: 1_001 });
  const next = transaction.get(transaction.insert("items", { n: 2 }));
  restored.rollbackGroup();
  assert.equal(next?._creationTime, 1_001 + 2 ** -10);
});

Deno.test("RP2 confirmed rows are removed in bounded steps, and the history continues after a restart", () => {
  using origin = new TemporaryDatabase();
  const work = new Workload(5);
  let db = openWriterDatabase(origin.path, { journal, now: () => work.now });
  db.applySchema(schemas[0] ?? new Map());
  for (let group = 0; group < 30; group++) work.group(db);
  const before = db.history;
  const generation = before?.generation ?? "";
  const rows = rowsOf(origin.path);
  const middle = rows[Math.floor(rows.length / 2)];
  assert.ok(middle);
  assert.equal(db.confirmJournal({ generation: "another", seq: middle.seq }), false);
  assert.equal(rowsOf(origin.path).length, rows.length, "rows of another generation stay");
  while (db.confirmJournal({ generation, seq: middle.seq }));
  assert.deepEqual(rowsOf(origin.path), rows.slice(rows.indexOf(middle) + 1));
  while (db.confirmJournal({ generation, seq: before?.seq ?? 0 }));
  assert.deepEqual(rowsOf(origin.path), []);
  db[Symbol.dispose]();
  db = openWriterDatabase(origin.path, { journal, now: () => work.now });
  assert.deepEqual(db.history, before);
  db.applySchema(schemas[0] ?? new Map());
  assert.deepEqual(db.history, before, "a schema that changes nothing makes no row");
  db[Symbol.dispose]();
});

Deno.test("RP9 a database that was written without the journal, or restored, starts a new generation", () => {
  using origin = new TemporaryDatabase();
  const work = new Workload(3);
  const schema = schemas[0] ?? new Map();
  const generationOf = () => {
    using db = openWriterDatabase(origin.path, { journal, now: () => work.now });
    db.applySchema(schema);
    for (let group = 0; group < 3; group++) work.group(db);
    return db.history;
  };
  const first = generationOf();
  assert.equal(first?.reason, "first");
  assert.equal(generationOf()?.generation, first?.generation);
  {
    // Opened without a write.
    using db = openWriterDatabase(origin.path, { now: () => work.now });
    db.applySchema(schema);
  }
  assert.equal(generationOf()?.generation, first?.generation);
  {
    using db = openWriterDatabase(origin.path, { now: () => work.now });
    db.applySchema(schema);
    db.openGroup();
    db.beginMutation({ at: work.now }).insert("items", { n: 1 });
    db.releaseMutation();
    db.commitGroup("");
  }
  const second = generationOf();
  assert.notEqual(second?.generation, first?.generation);
  assert.equal(second?.reason, "written");
  assert.equal(generationOf()?.generation, second?.generation);
  forgetHistory(origin.path);
  const third = generationOf();
  assert.equal(third?.reason, "restored");
  assert.notEqual(third?.generation, second?.generation);
  assert.ok((third?.firstSeq ?? 0) >= (second?.seq ?? 0), "rows are numbered on");
});

Deno.test("RP8 a journal that exceeds its limit is dropped, and the database continues in a new generation", () => {
  using origin = new TemporaryDatabase();
  let now = 1_700_000_000_000;
  using db = openWriterDatabase(origin.path, {
    journal: { pendingBytesMax: 50_000 },
    now: () => now,
  });
  db.applySchema(schemas[0] ?? new Map());
  const generations = new Set<string | null | undefined>();
  for (let group = 0; group < 40; group++) {
    now += 1_000;
    db.openGroup();
    db.beginMutation({ at: now }).insert("items", { text: "€".repeat(1_333) });
    db.releaseMutation();
    db.commitGroup("");
    generations.add(db.history?.generation);
    using reader = openJournalReader(origin.path);
    const { head, pending, rows } = reader.read(db.history?.firstSeq ?? 0);
    assert.ok(pending.bytes <= 50_000);
    const bytes = rows.reduce((sum, { body }) => sum + new TextEncoder().encode(body).length, 0);
    assert.equal(pending.bytes, bytes, "bytes are counted, not characters");
    assert.deepEqual(head, db.history);
  }
  assert.equal(db.ts, 40);
  assert.equal(generations.size, 4);
  assert.equal(db.history?.reason, "overflow");
  using file = new DatabaseSync(origin.path, { readOnly: true });
  const { bytes } = file.prepare("SELECT sum(octet_length(body)) AS bytes FROM syncline_journal").get() ?? {};
  assert.ok(Number(bytes) <= 50_000, "rows that were dropped are removed");
});
