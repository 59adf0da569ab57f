/** Rows in a real PostgreSQL: leases, fences, gaps, and rows whose answer was lost. */
import assert from "node:assert/strict";
import { AwayError, PostgresConnection } from "../../mod/cluster/postgres/connection.ts";
import { createCluster } from "../../mod/cluster/postgres/identity.ts";
import { Lease } from "../../mod/cluster/postgres/lease.ts";
import { Notifications } from "../../mod/cluster/postgres/database.ts";
import { parsePostgresUrl } from "../../mod/cluster/postgres/postgres_address.ts";
import { PostgresLog } from "../../mod/cluster/postgres/postgres_log.ts";
import { PostgresRows } from "../../mod/cluster/postgres/postgres_rows.ts";
import { Snapshots } from "../../mod/cluster/postgres/snapshots.ts";
import { statementsFor } from "../../mod/cluster/postgres/statements.ts";
import { chainedSum, firstSum, type JournalRow } from "../../mod/engine/mod.ts";
import { LogGapError } from "../../mod/ops/replication/mod.ts";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import { FakeClock, settled } from "../support/fake_clock.ts";
import type { Log } from "../../mod/kit/log.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause, until } from "../support/waiting.ts";
import { Gate } from "./support/gate.ts";
import { joinCluster, servedState } from "./support/joined.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";

const GENERATION = "20300101T000000Z-00000000";
const FIRST = { seq: 0, ts: 7, sum: firstSum(GENERATION) };

/** Name of the database of a URL. */
function nameOf(url: string | URL): string {
  return new URL(url).pathname.slice(1);
}

/** One server's view of a cluster without servers. */
class Side implements AsyncDisposable {
  readonly connection: PostgresConnection;
  readonly rowsConnection: PostgresConnection;
  readonly lease: Lease;
  readonly lost: string[] = [];
  readonly statements: ReturnType<typeof statementsFor>;
  #head: Pick<JournalRow, "seq" | "ts" | "sum"> = FIRST;

  constructor(
    url: string,
    { holder, leaseMs = 60_000 }: { readonly holder: string; readonly leaseMs?: number },
  ) {
    const place = parsePostgresUrl(url);
    this.statements = statementsFor(place.schema);
    this.connection = new PostgresConnection({ address: place });
    this.rowsConnection = new PostgresConnection({ address: place });
    const { connection, statements } = this;
    this.lease = new Lease({ connection, statements, holder, leaseMs });
  }

  static async make(url: string): Promise<void> {
    const place = parsePostgresUrl(url);
    await using connection = new PostgresConnection({ address: place });
    const identity = { id: "one", generation: GENERATION, first: FIRST, serviceKey: "key" };
    assert.equal(await createCluster(connection, identity, { address: place, secret: "a secret" }), true);
    assert.equal(await createCluster(connection, identity, { address: place, secret: "a secret" }), false);
  }

  rows({ waitMs = 60_000 } = {}): PostgresRows {
    return new PostgresRows({
      connection: this.rowsConnection,
      statements: this.statements,
      epoch: this.lease.epoch ?? assert.fail("it has no lease"),
      firstSeq: FIRST.seq,
      at: this.#head,
      waitMs,
      onLost: (reason) => this.lost.push(reason),
    });
  }

  /** The row after the last one. */
  next(body = "row"): JournalRow {
    const { seq, ts, sum } = this.#head;
    const row = { seq: seq + 1, tsBefore: ts, ts: ts + 1, at: 1.5, body };
    return this.#head = { ...row, sum: chainedSum(sum, row) } as JournalRow;
  }

  /** Continues from the last row. */
  stand(at: Pick<JournalRow, "seq" | "ts" | "sum">): void {
    this.#head = at;
  }

  async logged(): Promise<readonly Record<string, unknown>[]> {
    return await this.connection.query({
      name: "all",
      text: "select seq::int, epoch::int, convert_from(body, 'UTF8') as body from syncline.log order by seq",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection[Symbol.asyncDispose]();
    await this.rowsConnection[Symbol.asyncDispose]();
  }
}

Deno.test(
  needs(
    postgres,
    "[PG1] [PG3] [PG4] a lease ends by the database's clock, and its former holder appends no row after another server took it",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await Side.make(url);
    await using a = new Side(url, { holder: "a" });
    await using b = new Side(url, { holder: "b" });
    await b.connection.open();
    assert.equal(await a.lease.take(), true);
    assert.equal(await b.lease.take(), false);
    // It was long so that it does not end before on a busy machine.
    const shorten = () =>
      b.connection.query({
        name: "shorten",
        text: "update syncline.lease set until = clock_timestamp() + interval '1 second'",
      });
    await shorten();
    const rows = a.rows();
    const one = a.next("one");
    assert.equal(await rows.append(one), null);
    // Late, but still its own: no other server has acquired it.
    await until(async () => {
      const [lease] = await b.connection.query(b.statements.lease);
      return Number(lease?.["left_ms"]) < 0;
    }, { what: "the lease ends" });
    assert.deepEqual(await a.lease.renew(), { others: 0 });
    assert.equal(await b.lease.take(), false);
    const two = a.next("two");
    assert.equal(await rows.append(two), null);
    await shorten();
    await until(() => b.lease.take(), { what: "the other server acquires the lease" });
    assert.equal(b.lease.epoch, 2);
    assert.equal(await a.lease.renew(), null);
    const fenced = rows.append(a.next("three of the old epoch"));
    await until(() => Promise.resolve(a.lost.length === 1), { what: "the loss is detected" });
    rows.close();
    assert.equal((await fenced)?.known, true, "another row is in its place");
    b.stand(two);
    const ofB = b.rows();
    assert.equal(await ofB.append(b.next("three")), null);
    assert.deepEqual(await b.logged(), [
      { seq: 1, epoch: 1, body: "one" },
      { seq: 2, epoch: 1, body: "two" },
      { seq: 3, epoch: 2, body: "three" },
    ]);
    // A hole is refused, and so is a row that is another's.
    b.next("four, which is never sent");
    const hole = ofB.append(b.next("five"));
    await until(() => Promise.resolve(b.lost.length === 1), { what: "the gap is detected" });
    ofB.close();
    assert.equal((await hole)?.known, true, "the log takes no row behind a hole");
    assert.equal((await b.logged()).length, 3);
    await b.lease.release();
    // An earlier renewal that arrives later does not restore it.
    assert.deepEqual(await b.connection.query(b.statements.renew, 2, "b", 60_000, 0), []);
    await using c = new Side(url, { holder: "c" });
    assert.equal(await c.lease.take(), true);
  },
);

Deno.test(
  needs(
    postgres,
    "[PG26] a server that has lost its lease answers nothing, also for groups without a row, until it is closed",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await Side.make(url);
    await using a = new Side(url, { holder: "a", leaseMs: 1 });
    await using b = new Side(url, { holder: "b" });
    assert.equal(await a.lease.take(), true);
    const [ofA, alsoOfA] = [a.rows(), a.rows()];
    assert.equal(await ofA.append(null), null, "it leads");
    await until(() => b.lease.take(), { what: "the other server acquires the lease" });
    const answers: unknown[] = [];
    const ask = (rows: PostgresRows, row: JournalRow | null) =>
      rows.append(row).then((refusal) => void answers.push(refusal?.known));
    const asked = [ask(ofA, null)];
    await until(() => Promise.resolve(a.lost.length === 1), { what: "the loss is detected" });
    // Further rows are neither sent nor answered.
    asked.push(ask(ofA, null), ask(ofA, a.next("late")));
    await settled();
    assert.deepEqual(answers, []);
    ofA.close();
    await Promise.all(asked);
    assert.deepEqual(answers, [true, true, true], "nothing of it is in the log");
    assert.equal((await ofA.append(null))?.known, true);
    // A row that this server may have sent and does not have itself is as good as another's.
    const ofB = b.rows();
    assert.equal(await ofB.append(b.next("one")), null);
    assert.equal(await ofB.append(null), null);
    void alsoOfA.append(null);
    await until(() => Promise.resolve(a.lost.length === 2), { what: "the loss is detected" });
    alsoOfA.close();
    ofB.close();
  },
);

Deno.test(
  needs(postgres, "[PG8] a snapshot in progress is abandoned when its server stops leading"),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await Side.make(url);
    await using side = new Side(url, { holder: "a" });
    await side.lease.take();
    const dataDir = await Deno.makeTempDir();
    const begun = Promise.withResolvers<void>();
    const snapshots = new Snapshots({
      connection: side.connection,
      statements: side.statements,
      clusterId: "one",
      generation: GENERATION,
      epoch: side.lease.epoch ?? assert.fail("it has no lease"),
      dataDir,
      target: { kind: "folder", path: dataDir },
      makeBackup() {
        begun.resolve();
        return new Promise(() => {});
      },
      appended: () => ({ seq: 0, bytes: 0 }),
      log: (level, message) => assert.fail(`${level} ${message}`),
    });
    const made = snapshots.tend();
    await begun.promise;
    await snapshots[Symbol.asyncDispose]();
    await made;
    assert.deepEqual(await Array.fromAsync(Deno.readDir(dataDir)), []);
    await Deno.remove(dataDir);
  },
);

Deno.test("[PG5] waiting for a notification leaves no listener on the abort signal", async () => {
  const listening: (EventListenerOrEventListenerObject | null)[] = [];
  const { signal } = new AbortController();
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  Object.assign(signal, {
    addEventListener(...args: Parameters<typeof addEventListener>) {
      listening.push(args[1]);
      addEventListener.apply(signal, args);
    },
    removeEventListener(...args: Parameters<typeof removeEventListener>) {
      listening.splice(listening.indexOf(args[1]), 1);
      removeEventListener.apply(signal, args);
    },
  });
  const notifications = new Notifications();
  const waited = notifications.next("log", { ms: 60_000, signal });
  assert.equal(listening.length, 1);
  notifications.notify("log");
  await waited;
  assert.equal(listening.length, 0);
});

Deno.test("[PG5] a notification that arrives during a read is not waited for again", async () => {
  const { signal } = new AbortController();
  const notifications = new Notifications();
  const wait = { ms: 3_600_000, signal };
  for (const channel of ["log", null]) {
    const since = notifications.since("log");
    notifications.notify(channel);
    await since(wait);
  }
  // A notification that came earlier, or on another channel, does not affect later ones.
  const since = notifications.since("log");
  notifications.notify("lease");
  let over = false;
  const waiting = since(wait).then(() => over = true);
  await pause(20);
  assert.equal(over, false);
  notifications.notify("log");
  await waiting;
});

Deno.test(
  needs(
    postgres,
    "[PG3] a takeover waits for a row that is being added, and a later row is refused",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await Side.make(url);
    await using a = new Side(url, { holder: "a", leaseMs: 1 });
    await using b = new Side(url, { holder: "b" });
    await a.lease.take();
    const slow = await postgres.client(nameOf(url));
    // The row of a leader that was stopped inside its statement: added, and not committed.
    await slow.query("begin");
    const { seq, tsBefore, ts, at, sum, body } = a.next("open");
    const added = await slow.query(a.statements.append.text, [
      1,
      seq,
      tsBefore,
      ts,
      at,
      sum,
      new TextEncoder().encode(body),
      0,
    ]);
    assert.equal(added.rowCount, 1);
    let taken = false;
    const taking = b.lease.take().then((took) => taken = took);
    const waiting = async () => {
      const { rows } = await slow.query("select 1 from pg_locks where not granted");
      return rows.length > 0;
    };
    await until(waiting, { what: "the takeover waits" });
    assert.equal(taken, false);
    await slow.query("commit");
    await taking;
    assert.equal(taken, true);
    // The new leader reads the final end: the old one cannot append rows.
    const late = a.next("late");
    const { rowCount } = await slow.query(a.statements.append.text, [
      1,
      late.seq,
      late.tsBefore,
      late.ts,
      late.at,
      late.sum,
      new Uint8Array(),
      0,
    ]);
    assert.equal(rowCount, 0);
    await slow.end();
    assert.deepEqual((await b.logged()).map(({ seq }) => seq), [1]);
  },
);

Deno.test(
  needs(
    postgres,
    "[PG2] [PG6] a row whose answer was lost is looked up, exists once, and waits for an unreachable database",
  ),
  async () => {
    await using postgres = await TestPostgres.start();
    const url = await postgres.database();
    await Side.make(url);
    await using a = new Side(url, { holder: "a" });
    await a.lease.take();
    const rows = a.rows();
    const one = a.next("one");
    assert.equal(await rows.append(one), null);
    // Already sent before the connection broke: it is found, not sent again.
    assert.equal(await rows.append(one), null);
    assert.deepEqual(a.lost, []);
    // The other side cuts the connection while rows are in transit.
    const admin = await postgres.client("postgres");
    for (let round = 0; round < 20; round++) {
      const appending = rows.append(a.next(`round ${round}`));
      await admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and pid <> pg_backend_pid()",
      );
      assert.equal(await appending, null, `round ${round}`);
    }
    await admin.end();
    await postgres.down();
    const kept = rows.append(a.next("while it is away"));
    await until(() => Promise.resolve(rows.awaySince !== null), { what: "the failure is detected" });
    await postgres.up();
    assert.equal(await kept, null);
    assert.equal(rows.awaySince, null);
    const bodies = (await a.logged()).map(({ body }) => body);
    assert.equal(bodies.length, 22);
    assert.equal(new Set(bodies).size, 22);
    await postgres.down();
    // Never sent: the same call may succeed later.
    const impatient = a.rows({ waitMs: 0 });
    const refused = await impatient.append(a.next("too late"));
    assert.equal(refused?.known, true);
    assert.deepEqual(a.lost, []);
    await postgres.up();
  },
);

Deno.test(
  needs(
    postgres,
    "[PG5] a log is read from any row, with notifications of new rows, and missing rows are a gap",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await Side.make(url);
    await using a = new Side(url, { holder: "a" });
    await a.lease.take();
    const rows = a.rows();
    const large = "x".repeat(3 * 2 ** 20);
    const made = [a.next("ü\u{1f600}\u2028"), a.next(large), a.next(large), a.next(large), a.next("last")];
    for (const row of made) assert.equal(await rows.append(row), null);
    const { signal } = new AbortController();
    let waited = 0;
    await using log = new PostgresLog({
      connection: a.connection,
      statements: a.statements,
      location: "here",
      generation: GENERATION,
      more: () => async () => {
        if (waited++ === 0) await rows.append(a.next("came later"));
      },
    });
    let position = { generation: GENERATION, ...FIRST };
    const read: JournalRow[] = [];
    for (let parts = 0; read.length < made.length; parts++) {
      const { items, newestTs } = await log.read(position, { signal });
      assert.ok(items.length < made.length, "large ones come apart");
      assert.equal(newestTs, made.at(-1)?.ts);
      read.push(...items);
      const { seq, ts, sum } = items.at(-1) ?? assert.fail("nothing came");
      position = { ...position, seq, ts, sum };
      assert.ok(parts < 5);
    }
    assert.deepEqual(read, made);
    // A new row costs one statement.
    const { query } = PostgresConnection.prototype;
    const asked: string[] = [];
    PostgresConnection.prototype.query = function (statement, ...values) {
      if (/_(?:read|end)$/.test(statement.name)) asked.push(statement.name);
      return query.call(this, statement, ...values);
    };
    try {
      assert.deepEqual((await log.read(position, { signal })).items.map(({ body }) => body), ["came later"]);
      assert.deepEqual(asked, ["syncline_read"]);
    } finally {
      PostgresConnection.prototype.query = query;
    }
    const other = { ...position, sum: "of another history" };
    await assert.rejects(log.read(other, { signal }), LogGapError);
    await assert.rejects(log.read({ ...position, generation: "another" }, { signal }), LogGapError);
    await assert.rejects(log.read({ ...position, seq: 50 }, { signal }), LogGapError);
    // Rows before the oldest snapshot are removed.
    const trimmed = async (rows: number, bytes: number) =>
      (await a.connection.query(a.statements.trim, 4, rows, bytes)).length;
    assert.equal(
      await trimmed(2, 1),
      1,
      "one row of any size is removed, and none beyond the limit of bytes",
    );
    assert.deepEqual([await trimmed(1, 1_000), await trimmed(2, 1_000), await trimmed(2, 1_000)], [1, 1, 0]);
    await assert.rejects(log.read({ generation: GENERATION, ...FIRST }, { signal }), LogGapError);
    const third = made[2] ?? assert.fail();
    assert.equal(
      (await log.read({ ...position, seq: 3, ts: third.ts, sum: third.sum }, { signal })).items.length,
      3,
    );
  },
);

Deno.test(
  needs(postgres, "[PG5] a row that is larger than a read does not keep the next one from being read"),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await Side.make(url);
    await using a = new Side(url, { holder: "a" });
    await a.lease.take();
    const rows = a.rows();
    const made = [a.next("x".repeat(clusterLimits.rowBytesRead + 1)), a.next("behind it")];
    for (const row of made) assert.equal(await rows.append(row), null);
    await using log = new PostgresLog({
      connection: a.connection,
      statements: a.statements,
      location: "here",
      generation: GENERATION,
      more: () => () => Promise.resolve(),
    });
    let position = { generation: GENERATION, ...FIRST };
    for (const row of made) {
      const { items: [item] } = await log.read(position, new AbortController());
      assert.equal(item?.seq, row.seq);
      const { seq, ts, sum } = row;
      position = { ...position, seq, ts, sum };
    }
    // One that is no text leads to a snapshot, not to asking for ever.
    const [large] = made;
    assert.ok(large !== undefined);
    await a.connection.query({
      name: "spoil",
      text: "update syncline.log set body = decode('ff', 'hex') where seq = 2",
    });
    const { seq, ts, sum } = large;
    await assert.rejects(log.read({ ...position, seq, ts, sum }, new AbortController()), LogGapError);
  },
);

Deno.test("[PG5] after many commits, the next read waits for more rows for a bounded time", async () => {
  const clock = new FakeClock();
  const notifications = new Notifications(clock);
  let logged: readonly Record<string, unknown>[] = [];
  await using log = new PostgresLog({
    connection: {
      query: ({ name }, after) => {
        if (!name.endsWith("_read")) return Promise.resolve([{ seq: 0, ts: 0 }]);
        return Promise.resolve(logged.filter(({ seq }) => Number(seq) > Number(after)));
      },
    },
    statements: statementsFor("any"),
    location: "here",
    generation: GENERATION,
    more: () => notifications.since("log"),
    gathers: true,
    clock,
  });
  let position = { generation: GENERATION, seq: 0, ts: 0, sum: "" };
  const stopping = new AbortController();
  const { signal } = stopping;
  const add = (commits: number) => {
    const { seq, ts } = logged.at(-1) ?? { seq: 0, ts: 0 };
    const row = { seq: Number(seq) + 1, ts_before: Number(ts), ts: Number(ts) + commits, at: 1, sum: "s" };
    const end = { end_seq: row.seq, end_ts: row.ts };
    logged = [...logged, { ...row, text: "{}", bytes: null }].map((row) => ({ ...row, ...end }));
    notifications.notify("log");
  };
  const read = async () => {
    const { items } = await log.read(position, { signal });
    const { seq, ts, sum } = items.at(-1) ?? position;
    position = { ...position, seq, ts, sum };
    return items.length;
  };
  /** Continues reading while the clock runs, until only the clock is waited for. Returns the duration. */
  const readOn = async (then = () => {}) => {
    const from = clock.now();
    let ms: number | null = null;
    const reading = read().finally(() => ms = clock.now() - from);
    await settled();
    then();
    for (await settled(); ms === null; await settled()) clock.move(0.25);
    return { rows: await reading, ms };
  };
  const behind = async (commits: number) => {
    add(commits);
    await readOn();
  };
  await behind(1);
  add(1);
  assert.deepEqual(await readOn(), { rows: 1, ms: 0.25 }, "one commit causes little delay");
  await behind(40);
  add(1);
  assert.deepEqual(await readOn(() => add(1)), { rows: 2, ms: 10 });
  await behind(10_000);
  add(1);
  assert.equal((await readOn()).ms, clusterLimits.gatherMsMax);
  await behind(10_000);
  clock.move(clusterLimits.gatherMsMax);
  add(1);
  assert.equal((await readOn()).ms, 0, "later rows are read at once");
  await behind(10_000);
  add(1);
  const reading = read();
  await settled();
  stopping.abort();
  await assert.rejects(reading, { name: "AbortError" });
});

Deno.test(
  needs(postgres, "[PG5] a log is read alike from databases of any encoding"),
  async () => {
    const postgres = await TestPostgres.shared();
    for (const encoding of ["UTF8", "LATIN1", "SQL_ASCII"]) {
      const url = await postgres.database({ encoding });
      await Side.make(url);
      await using a = new Side(url, { holder: "a" });
      await a.lease.take();
      const rows = a.rows();
      const made = [a.next("ü\u{1f600}\u2028 \\u0000 \\x41"), a.next("\ufeff and more")];
      for (const row of made) assert.equal(await rows.append(row), null);
      await using log = new PostgresLog({
        connection: a.connection,
        statements: a.statements,
        location: "here",
        generation: GENERATION,
        more: () => () => Promise.resolve(),
      });
      const { signal } = new AbortController();
      const { items } = await log.read({ generation: GENERATION, ...FIRST }, { signal });
      assert.deepEqual(items, made, encoding);
    }
  },
);

Deno.test(
  needs(
    postgres,
    "[PG2] [PG6] a temporary error of the database, also one that is read-only, does not end leadership, and rows that were not sent are retryable",
  ),
  async () => {
    await using postgres = await TestPostgres.start();
    const url = await postgres.database();
    const name = nameOf(url);
    await Side.make(url);
    await using a = new Side(url, { holder: "a" });
    await a.lease.take();
    const rows = a.rows({ waitMs: 0 });
    assert.equal(await rows.append(a.next("one")), null);
    const locker = await postgres.client(name);
    await locker.query("begin");
    await locker.query("lock table syncline.lease in access exclusive mode");
    const head = a.next("sent, and the database dies");
    const sent = rows.append(head);
    const waiting = async () => {
      const { rows } = await locker.query("select 1 from pg_locks where not granted");
      return rows.length > 0;
    };
    await until(waiting, { what: "the row is in transit" });
    await postgres.down("immediate");
    assert.equal((await sent)?.known, false);
    // It was never sent, independently of the row before it.
    assert.equal((await rows.append({ ...head, body: "never sent" }))?.known, true);
    await postgres.up();
    await until(async () => await rows.append(head) === null, { what: "rows are appended again" });
    // Unavailable locks and canceled statements do not show which server owns the log.
    const client = await postgres.client(name);
    await client.query(`alter database ${name} set lock_timeout = 20`);
    await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and pid <> pg_backend_pid()",
    );
    await client.query("begin");
    await client.query("lock table syncline.lease in access exclusive mode");
    const locked = a.next("locked");
    await until(async () => {
      const refused = await rows.append(locked);
      assert.ok(refused !== null, "no server gets the lock");
      return refused.known;
    }, { what: "the row is refused temporarily" });
    await client.query("commit");
    await until(async () => await rows.append(locked) === null, { what: "rows are appended again" });
    // A database that is read-only, as a standby is, refuses rows as one that is away.
    await client.query(`alter database ${name} set default_transaction_read_only = on`);
    const cutOff = () =>
      client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and pid <> pg_backend_pid()",
      );
    await cutOff();
    const unwritten = a.next("read-only");
    await until(async () => (await rows.append(unwritten))?.known === true, {
      what: "the row is refused temporarily",
    });
    assert.ok(rows.awaySince !== null);
    await client.query("set default_transaction_read_only = off");
    await client.query(`alter database ${name} reset default_transaction_read_only`);
    await cutOff();
    await until(async () => await rows.append(unwritten) === null, { what: "rows are appended again" });
    assert.deepEqual(a.lost, []);
    assert.deepEqual((await a.logged()).map(({ seq }) => seq), [1, 2, 3, 4]);
    // A writer may start only at the end of the rows.
    assert.equal(await rows.begins(unwritten), null);
    const behind = rows.begins(head);
    await until(() => a.lost.length === 1, { what: "the failure is detected" });
    assert.match(a.lost[0] ?? "", /row 4 of the log is missing in this server's database/);
    rows.close();
    assert.equal((await behind)?.known, true, "nothing was sent");
    await client.end();
  },
);

Deno.test(
  needs(postgres, "[PG8] a server that stops ends its wait for the database"),
  async () => {
    await using postgres = await TestPostgres.start();
    await using folder = new TempFolder();
    const cluster = await joinCluster(await postgres.database(), { dataDir: folder.path, folder });
    await postgres.down();
    const began = assert.rejects(cluster.begin());
    await pause(300);
    cluster.stopping();
    await began;
    await cluster[Symbol.asyncDispose]();
  },
);

Deno.test(
  needs(
    postgres,
    "[PG12] an unreachable database, or one without free connections, is logged once",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    await using folder = new TempFolder();
    await Deno.mkdir(folder.at("a"));
    const printed: string[] = [];
    const log: Log = (level, message, { reason } = {}) => void printed.push(`${level} ${message}: ${reason}`);
    const parts = { dataDir: folder.at("a"), folder, leaseMs: 60_000, log };
    const unreachable = new URL(await postgres.database());
    using unused = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    unreachable.port = String(unused.addr.port);
    unused.close();
    await assert.rejects(joinCluster(unreachable.href, { ...parts, startMs: 500 }), /is unreachable/);
    const away = "warn The cluster's database is unreachable; retrying";
    assert.equal(printed.length, 1, printed.join("\n"));
    assert.match(printed.splice(0).join(), new RegExp(`^${away}: .*ECONNREFUSED`));

    await using admin = {
      it: await postgres.client("postgres"),
      [Symbol.asyncDispose]: () => admin.it.end(),
    };
    await admin.it.query("create role few login connection limit 1");
    await admin.it.query("create database small owner few");
    await using cluster = await joinCluster(postgres.url("small", "few"), parts);
    const began = cluster.begin();
    await until(() => printed.length > 0, { what: "it is logged" });
    await pause(4 * clusterLimits.reconnectMs);
    assert.deepEqual(printed.splice(0), [`${away}: too many connections for role "few"`]);
    await admin.it.query("alter role few connection limit 3");
    assert.equal(await began, "leader");
    assert.ok(
      printed.some((line) => line.startsWith("info The cluster's database is reachable again")),
      printed.join("\n"),
    );
  },
);

Deno.test(
  needs(
    postgres,
    "[PG7] a server far before the end of the log leaves the lease to others, and acquires it near the end",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await using folder = new TempFolder();
    const joined = (dataDir: string, leaseMs: number) => joinCluster(url, { dataDir, folder, leaseMs });
    await Deno.mkdir(folder.at("a"));
    await Deno.mkdir(folder.at("b"));
    // The first server keeps the lease until it is closed. The second checks it often.
    const a = await joined(folder.at("a"), 600_000);
    await using client = {
      it: await postgres.client(nameOf(url)),
      [Symbol.asyncDispose]: () => client.it.end(),
    };
    const rowsBehind = clusterLimits.takeRowsMax + 500;
    let renewed = 0;
    let seq = 0;
    const served = servedState({ position: () => ({ seq, ts: seq }), restart: () => void renewed++ });
    try {
      assert.equal(await a.begin(), "leader");
      await Deno.copyFile(folder.at("a/data.db"), folder.at("b/data.db"));
      await using b = await joined(folder.at("b"), 300);
      assert.equal(await b.begin(), "follower");
      await client.it.query(
        `insert into syncline.log (seq, epoch, ts_before, ts, at, sum, body)
       select n, 1, n - 1, n, 0, 'sum', '' from generate_series(1, ${rowsBehind}) n`,
      );
      b.serve(served);
      await a[Symbol.asyncDispose]();
      const looks = async () => {
        const { rows: [row] } = await client.it.query<{ seen: string }>(
          "select seen_at::text as seen from syncline.members where holder = $1",
          [b.name],
        );
        return row?.seen;
      };
      // It has checked the free lease repeatedly.
      for (let look = 0; look < 4; look++) {
        const before = await looks();
        await until(async () => await looks() !== before, { what: "it checks the lease again" });
      }
      assert.equal(b.figures.epoch, null);
      assert.equal(renewed, 0);
      seq = rowsBehind - 10;
      await until(() => b.figures.epoch !== null, { what: "it acquires the lease" });
      assert.equal(renewed, 0, "what is missing is applied first");
      seq = rowsBehind;
      await until(() => renewed > 0, { what: "it leads" });
    } finally {
      await a[Symbol.asyncDispose]();
    }
  },
);

Deno.test(
  needs(
    postgres,
    "[PG3] the holder of the lease renews it at the regular interval, independently of the previous holder",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await using folder = new TempFolder();
    // No lease ends by time, however slow the machine is.
    const leaseMs = 600_000;
    await Deno.mkdir(folder.at("a"));
    await Deno.mkdir(folder.at("b"));
    const a = await joinCluster(url, { dataDir: folder.at("a"), folder, leaseMs });
    let restarts = 0;
    const served = servedState({ restart: () => void restarts++ });
    const { holder, renew } = Lease.prototype;
    try {
      assert.equal(await a.begin(), "leader");
      await Deno.copyFile(folder.at("a/data.db"), folder.at("b/data.db"));
      await using b = await joinCluster(url, { dataDir: folder.at("b"), folder, leaseMs });
      assert.equal(await b.begin(), "follower");
      // The follower expects the other lease to end soon.
      Lease.prototype.holder = async function () {
        const read = await holder.call(this);
        return read === null || read.isThis ? read : { ...read, leftMs: 20 };
      };
      let seen = false;
      b.onLeader((leader) => seen ||= leader !== null);
      b.serve(served);
      await until(() => seen, { what: "it has read the end of the other lease" });
      await a[Symbol.asyncDispose]();
      await until(() => restarts > 0, { what: "it acquires the lease" });
      await b.unserve();
      assert.equal(await b.begin(), "leader");
      let [renewals, renewedAt, longestMs] = [0, Infinity, 0];
      Lease.prototype.renew = function () {
        const now = performance.now();
        longestMs = Math.max(longestMs, now - renewedAt);
        renewedAt = now;
        renewals++;
        return renew.call(this);
      };
      b.serve(served);
      // Some renewals follow notifications.
      const isRegular = () => longestMs >= 0.9 * clusterLimits.renewMs;
      await until(() => isRegular() || renewals > 20, { what: "it renews the lease" });
      assert.ok(isRegular(), `${renewals} renewals, at most ${longestMs} ms apart`);
    } finally {
      Object.assign(Lease.prototype, { holder, renew });
      await a[Symbol.asyncDispose]();
    }
  },
);

Deno.test(
  needs(
    postgres,
    "[PG4] clocks of servers that are off by an hour, either way and while they run, change nothing",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await using folder = new TempFolder();
    for (const name of ["a", "b"]) await Deno.mkdir(folder.at(name));
    const { now } = Date;
    const hour = 3_600_000;
    const off = (ms: number) => Date.now = () => now() + ms;
    try {
      off(hour);
      await using a = await joinCluster(url, { dataDir: folder.at("a"), folder, leaseMs: 60_000 });
      assert.equal(await a.begin(), "leader");
      await Deno.copyFile(folder.at("a/data.db"), folder.at("b/data.db"));
      off(-hour);
      await using b = await joinCluster(url, { dataDir: folder.at("b"), folder, leaseMs: 60_000 });
      assert.equal(await b.begin(), "follower");
      await using client = {
        it: await postgres.client(nameOf(url)),
        [Symbol.asyncDispose]: () => client.it.end(),
      };
      const lease = async () =>
        (await client.it.query<{ epoch: string; until: string }>(
          "select epoch, until::text from syncline.lease",
        ))
          .rows[0];
      for (const ms of [hour, -hour, 0]) {
        off(ms);
        const before = await lease();
        await until(async () => (await lease())?.until !== before?.until, { what: "it is renewed" });
        assert.equal((await lease())?.epoch, before?.epoch);
        assert.equal(a.leadsSurely, true);
        assert.equal(await b.begin(), "follower");
      }
    } finally {
      Date.now = now;
    }
  },
);

Deno.test(
  needs(postgres, "[PG22] if its own connection is silent, a lease is renewed over another one"),
  async () => {
    const postgres = await TestPostgres.shared();
    await using gate = new Gate(postgres.port);
    const url = new URL(await postgres.database());
    await using client = {
      it: await postgres.client(nameOf(url)),
      [Symbol.asyncDispose]: () => client.it.end(),
    };
    await using folder = new TempFolder();
    await Deno.mkdir(folder.at("a"));
    url.port = String(gate.port);
    await using a = await joinCluster(url.href, { dataDir: folder.at("a"), folder, leaseMs: 60_000 });
    assert.equal(await a.begin(), "leader");
    await a.members();
    const portsOf = async (use: string) => {
      const { rows } = await client.it.query<{ client_port: number }>(
        "select client_port from pg_stat_activity where datname = current_database() and application_name = $1",
        [use],
      );
      return rows.map(({ client_port }) => client_port);
    };
    const [lease] = await portsOf("syncline lease");
    const [other] = await portsOf("syncline");
    assert.ok(lease !== undefined && gate.hold(lease));
    assert.ok(other !== undefined && gate.hold(other));
    const order: string[] = [];
    const asked = a.members().then(() => order.push("answered"), () => order.push("given up"));
    const end = async () =>
      (await client.it.query<{ until: string }>("select until::text from syncline.lease")).rows[0]?.until;
    // Data sent before the gate was shut has arrived.
    await pause(200);
    const before = await end();
    await until(async () => await end() !== before, { what: "it is renewed" });
    order.push("renewed");
    await asked;
    assert.deepEqual(order, ["renewed", "given up"]);
    assert.notEqual(a.figures.epoch, null);
  },
);

/** Records the statements of a lease with their times, on connections that answer, are silent or fail. */
class AskedLease {
  readonly clock = new FakeClock();
  readonly lease: Lease;
  readonly asked: string[] = [];
  readonly silent = new Set<string>();
  lapses = 0;
  ended = 0;

  constructor() {
    const by = (name: string) => ({
      query: ({ text }: { readonly text: string }) => {
        this.asked.push(`${name} ${this.clock.now() - this.#from}`);
        if (this.silent.has(name)) return new Promise<never>(() => {});
        return Promise.resolve([text.includes("epoch + 1") ? { epoch: 1 } : { epoch: 1, others: 2 }]);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(void this.ended++),
    });
    this.lease = new Lease({
      connection: by("own"),
      second: by("second"),
      fresh: () => by("fresh"),
      statements: statementsFor("syncline"),
      holder: "a",
      leaseMs: 3_000,
      onLapse: () => this.lapses++,
      clock: this.clock,
    });
  }

  #from = 1_000_000;

  /** Renews the lease while this much time passes. */
  async renew(ms: number) {
    this.asked.length = 0;
    this.#from = this.clock.now();
    const renewed = this.lease.renew();
    await this.clock.advance(ms);
    return await renewed;
  }
}

Deno.test("[PG22] a lease with a silent connection stays valid, counted from the time of the last confirmed request", async () => {
  const it = new AskedLease();
  assert.equal(await it.lease.take(), true);
  it.silent.add("own");
  for (let round = 0; round < 5; round++) {
    assert.deepEqual(await it.renew(clusterLimits.leaseAnswerMs), { others: 2 });
    assert.deepEqual(it.asked, ["own 0", `second ${clusterLimits.leaseAnswerMs}`]);
    await it.clock.advance(clusterLimits.reconnectMs);
    assert.ok(it.lease.isSure);
  }
  // Both are silent: a new connection answers before the lease ends.
  it.silent.add("second");
  assert.deepEqual(await it.renew(2 * clusterLimits.leaseAnswerMs), { others: 2 });
  assert.equal(it.asked.at(-1), `fresh ${2 * clusterLimits.leaseAnswerMs}`);
  assert.deepEqual([it.lapses, it.ended, it.lease.isSure], [0, 1, true]);
  // Any server that is notified releases it.
  it.asked.length = 0;
  const released = it.lease.release();
  await it.clock.advance(2 * clusterLimits.leaseAnswerMs);
  await released;
  assert.equal(it.asked.length, 3);
  assert.equal(it.lapses, 0);
});

Deno.test("[PG22] a lease lapses if no connection responds, and reports it once", async () => {
  const it = new AskedLease();
  assert.equal(await it.lease.take(), true);
  for (const name of ["own", "second", "fresh"]) it.silent.add(name);
  void it.lease.renew();
  await it.clock.advance(2_699);
  assert.deepEqual([it.lease.isSure, it.lapses], [true, 0]);
  await it.clock.advance(10_000);
  assert.deepEqual([it.lease.isSure, it.lapses], [false, 1]);
});

Deno.test("[PG22] when a connection is lost, the second one is used immediately, and the loss of both is an error", async () => {
  const clock = new FakeClock();
  const away = new AwayError("gone", { asked: true });
  const lost = { query: () => Promise.reject(away) };
  let answers = true;
  const other = {
    query: () => answers ? Promise.resolve([{ epoch: 1, others: 0 }]) : Promise.reject(away),
  };
  const more = { statements: statementsFor("syncline"), holder: "a", clock };
  const taker = new Lease({ ...more, connection: other });
  assert.equal(await taker.take(), true);
  let own: { query: () => Promise<{ epoch: number; others: number }[]> } = other;
  const lease = new Lease({ ...more, connection: { query: () => own.query() }, second: other });
  assert.equal(await lease.take(), true);
  own = lost;
  assert.deepEqual(await lease.renew(), { others: 0 });
  answers = false;
  await assert.rejects(lease.renew(), away);
  assert.equal(clock.nextAt, null, "nothing is waited for any more");
});

Deno.test(
  needs(
    postgres,
    "[PG12] a rejected report of a server is logged and has no other effect",
  ),
  async () => {
    const postgres = await TestPostgres.shared();
    const url = await postgres.database();
    await using folder = new TempFolder();
    const printed: string[] = [];
    const log: Log = (level, message, { error } = {}) => void printed.push(`${level} ${message}: ${error}`);
    await using cluster = await joinCluster(url, { dataDir: folder.path, folder, leaseMs: 600, log });
    assert.equal(await cluster.begin(), "leader");
    await using admin = {
      it: await postgres.client(nameOf(url)),
      [Symbol.asyncDispose]: () => admin.it.end(),
    };
    await admin.it.query("alter table syncline.members drop column lag_ms");
    let renewed = 0;
    cluster.serve(servedState({ restart: () => void renewed++ }));
    const logged = () => printed.filter((line) => line.includes("report of this server"));
    await until(() => logged().length > 0, { what: "it is logged" });
    const leaseEnd = async () => {
      const { rows: [row] } = await admin.it.query<{ ends: string }>(
        "select until::text as ends from syncline.lease",
      );
      return row?.ends;
    };
    for (let renewal = 0; renewal < 3; renewal++) {
      const before = await leaseEnd();
      await until(async () => await leaseEnd() !== before, { what: "the lease is renewed" });
    }
    assert.match(logged().join(), /^error The cluster's database rejected .*"lag_ms"/, "once");
    assert.equal(logged().length, 1);
    const { role, awayMs } = cluster.figures;
    assert.deepEqual({ role, awayMs, renewed }, { role: "leader", awayMs: null, renewed: 0 });
    // A rejection after a success is logged again.
    await admin.it.query("alter table syncline.members add column lag_ms double precision");
    await until(async () => (await cluster.members()).length === 1, { what: "the member is recorded" });
    await admin.it.query("alter table syncline.members drop column lag_ms");
    await until(() => logged().length === 2, { what: "it is logged again" });
  },
);
