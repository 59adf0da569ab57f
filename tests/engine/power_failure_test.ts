/** Power failures: commits that are synced separately, and rows that a cluster's server applies again. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import {
  checkDatabase,
  type JournalRow,
  markAsFollower,
  openWriterDatabase,
  startClusterHistory,
  type WriterDatabase,
  type WriterOptions,
} from "../../mod/engine/mod.ts";
import { anyTable, schemaOf, TemporaryDatabase } from "./support.ts";

const schema = schemaOf({ items: anyTable({ indexes: [{ name: "by_n", fields: ["n"] }] }) });
const PAGE_BYTES = 4_096;

/** `PRAGMA synchronous` of a writer: 2 syncs each commit, 1 only checkpoints. */
function synchronousOf(path: string, journal?: WriterOptions["journal"]): unknown {
  const { exec } = DatabaseSync.prototype;
  let opened: DatabaseSync | null = null;
  DatabaseSync.prototype.exec = function (sql) {
    opened = this;
    return exec.call(this, sql);
  };
  try {
    using _writer = openWriterDatabase(path, journal === undefined ? {} : { journal });
    const db = opened as DatabaseSync | null;
    return db?.prepare("PRAGMA synchronous").get()?.["synchronous"];
  } finally {
    DatabaseSync.prototype.exec = exec;
  }
}

Deno.test("[PG25] only a server of a cluster delays the sync of its commits", () => {
  using own = new TemporaryDatabase();
  assert.equal(synchronousOf(own.path), 2);
  assert.equal(synchronousOf(own.path, { pendingBytesMax: 2 ** 20 }), 2);
  using followed = new TemporaryDatabase();
  openWriterDatabase(followed.path)[Symbol.dispose]();
  markAsFollower(followed.path, "s3://a-replica");
  assert.equal(synchronousOf(followed.path, "external"), 2);
  using member = new TemporaryDatabase();
  openWriterDatabase(member.path)[Symbol.dispose]();
  startClusterHistory(member.path, { id: "one", now: 1 });
  assert.equal(synchronousOf(member.path, "external"), 1);
  assert.equal(synchronousOf(member.path, "external"), 1);
});

/** Commits of a leader with their rows, as in its cluster's log. */
function commit(
  db: WriterDatabase,
  { count, rows }: { readonly count: number; readonly rows: JournalRow[] },
) {
  for (let n = 0; n < count; n++) {
    db.openGroup();
    const tx = db.beginMutation({ at: 1_700_000_000_000 + n });
    tx.insert("items", { n: rows.length, text: "x".repeat(rows.length * 37 % 1_500) });
    db.releaseMutation();
    db.saveRecord({ sessionId: `s${n % 3}`, requestId: rows.length, principal: null }, `answer ${n}`);
    const row = db.prepareCommit("text") ?? assert.fail("a group that writes has a row");
    rows.push(row);
    db.commitGroup("text");
  }
}

function contents(path: string): unknown[] {
  using db = new DatabaseSync(path, { readOnly: true });
  return [
    ...db.prepare("SELECT * FROM syncline_tables").all(),
    ...db.prepare("SELECT ts, lastCreationTime FROM syncline_state").all(),
    ...documents(db),
  ];
}

function documents(db: DatabaseSync): unknown[] {
  const names = db.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '[di][0-9]*' ORDER BY name",
  )
    .all();
  assert.ok(names.length >= 2);
  return names.map(({ name }) => db.prepare(`SELECT * FROM ${name} ORDER BY 1`).all());
}

Deno.test("[PG25] the log restores all commits that a server's database loses in a power failure", () => {
  using folder = new TemporaryDatabase();
  const { path } = folder;
  openWriterDatabase(path)[Symbol.dispose]();
  startClusterHistory(path, { id: "one", now: 1 });
  const open = () => openWriterDatabase(path, { journal: "external", now: () => 1_700_000_000_000 });
  const rows: JournalRow[] = [];
  {
    // A checkpoint has synced the contents of the file.
    using before = open();
    const staged = before.stageSchema(schema);
    rows.push(staged.row ?? assert.fail("tables that are made have a row"));
    staged.commit();
    commit(before, { count: 30, rows });
  }
  const synced = rows.length;
  using leader = open();
  leader.applySchema(schema);
  commit(leader, { count: 60, rows });
  const file = Deno.readFileSync(path);
  const log = Deno.readFileSync(`${path}-wal`);
  const whole = contents(path);
  let random = 1;
  const pick = (below: number) => {
    random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
    return random % below;
  };
  const reached: number[] = [];
  for (let failure = 0; failure < 12; failure++) {
    using left = new TemporaryDatabase();
    Deno.writeFileSync(left.path, file);
    // Any part of unsynced writes may be lost: the log may end anywhere or lack a page.
    const torn = log.slice(0, failure % 2 === 0 ? pick(log.length) : log.length);
    const hole = pick(log.length - PAGE_BYTES);
    if (failure % 2 === 1) torn.fill(0, hole, hole + PAGE_BYTES);
    Deno.writeFileSync(`${left.path}-wal`, torn);
    {
      using follower = openWriterDatabase(left.path, { journal: "external" });
      const { seq = -1, sum } = follower.history ?? assert.fail("it has a history");
      assert.ok(seq >= synced && seq <= rows.length, `it is at row ${seq}`);
      assert.equal(sum, rows[seq - 1]?.sum, "one commit, and all before it");
      reached.push(seq);
      for (const row of rows.slice(seq)) {
        follower.openGroup();
        follower.applyRows([row]);
        follower.commitGroup(null);
      }
    }
    assert.deepEqual(contents(left.path), whole);
    assert.equal(checkDatabase(left.path).ts, leader.ts);
  }
  assert.ok(reached.some((seq) => seq < rows.length), "something was lost");
  assert.ok(new Set(reached).size > 3, "now more, now less");
});
