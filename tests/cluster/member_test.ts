/** `PostgresCluster` without a server: notifications of rows, and starts with an older database. */
import assert from "node:assert/strict";
import type { PostgresCluster } from "../../mod/cluster/postgres/cluster.ts";
import { PostgresConnection } from "../../mod/cluster/postgres/connection.ts";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import { Notifications } from "../../mod/cluster/postgres/database.ts";
import { parsePostgresUrl } from "../../mod/cluster/postgres/postgres_address.ts";
import { type JournalRow, openWriterDatabase, type WriterDatabase } from "../../mod/engine/mod.ts";
import { anyTable, schemaOf } from "../engine/support.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { joinCluster, servedState } from "./support/joined.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";

const schema = schemaOf({ items: anyTable() });

/** The writer of a leader, which commits rows that the log contains. */
class Leading implements Disposable {
  readonly #cluster: PostgresCluster;
  readonly #db: WriterDatabase;

  constructor(cluster: PostgresCluster, dataDir: string) {
    this.#cluster = cluster;
    this.#db = openWriterDatabase(`${dataDir}/data.db`, { journal: "external" });
  }

  async begin(): Promise<void> {
    const staged = this.#db.stageSchema(schema);
    if (staged.row !== null) await this.#append(staged.row);
    staged.commit();
  }

  async insert(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      this.#db.openGroup();
      this.#db.beginMutation({ at: n }).insert("items", { n });
      this.#db.releaseMutation();
      await this.#append(this.#db.prepareCommit(null));
      this.#db.commitGroup(null);
    }
  }

  async #append(row: JournalRow | null): Promise<void> {
    assert.ok(row !== null, "it changes something");
    assert.equal(await this.#cluster.rows?.append(row), null);
  }

  [Symbol.dispose](): void {
    this.#db[Symbol.dispose]();
  }
}

Deno.test(needs(postgres, "[PG1] [PG5] [PG8] [PG25] a server's part in its cluster"), async (t) => {
  await using postgres = await TestPostgres.start();
  await t.step(
    "a server whose disk lost its newest commits follows until it has applied them, and then leads",
    () => beginsBehind(postgres),
  );
  await t.step(
    "followers are notified of rows, a former leader included; the leader is not notified of its own",
    () => notifiedOfRows(postgres),
  );
  await t.step("a row is appended even if its notification fails", () => failedNotifications(postgres));
  await t.step(
    "a new server waits for the first snapshot, which is retried soon, and stops waiting at shutdown",
    () => waitsForSnapshot(postgres),
  );
  await t.step(
    "asynchronous commits are disabled for the session, and a database without fsync causes a warning",
    () => syncsWhatItConfirms(postgres),
  );
});

async function beginsBehind(postgres: TestPostgres): Promise<void> {
  const url = await postgres.database();
  await using folder = new TempFolder();
  const dataDir = folder.at("data");
  await Deno.mkdir(dataDir);
  let ts = 0;
  {
    await using cluster = await joinCluster(url, { dataDir, folder });
    assert.equal(await cluster.begin(), "leader");
    using leading = new Leading(cluster, dataDir);
    await leading.begin();
    await leading.insert(3);
    // The state after a power failure.
    for (const end of ["", "-wal"]) {
      await Deno.copyFile(`${dataDir}/data.db${end}`, folder.at(`left${end}`));
    }
    await leading.insert(4);
    ts = (await cluster.end())?.ts ?? 0;
  }
  for (const end of ["", "-wal"]) await Deno.copyFile(folder.at(`left${end}`), `${dataDir}/data.db${end}`);
  await Deno.remove(`${dataDir}/data.db-shm`).catch(() => {});
  await using cluster = await joinCluster(url, { dataDir, folder });
  assert.equal(
    await cluster.begin(),
    "follower",
    "a server that lacks a row does not lead, although the lease is free",
  );
  assert.equal(cluster.hasLease, false);
  {
    using follower = openWriterDatabase(`${dataDir}/data.db`, { journal: "external" });
    assert.ok(follower.ts < ts, "some commits are gone");
    const { generation = null, seq = 0, sum = "" } = follower.history ?? {};
    assert.ok(generation !== null);
    await using log = cluster.openLog();
    const { signal } = new AbortController();
    const { items } = await log.read({ generation, seq, sum, ts: follower.ts }, { signal });
    assert.equal(items.length, 4);
    follower.openGroup();
    follower.applyRows(items);
    follower.commitGroup(null);
    assert.equal(follower.ts, ts);
  }
  assert.equal(await cluster.begin(), "leader");
  using leading = new Leading(cluster, dataDir);
  await leading.begin();
  await leading.insert(1);
  assert.equal((await cluster.end())?.ts, ts + 1);
}

async function notifiedOfRows(postgres: TestPostgres): Promise<void> {
  const url = await postgres.database();
  await using folder = new TempFolder();
  const { notify } = Notifications.prototype;
  /** Number of notifications of rows by server. */
  const heard = new Map<Notifications, number>();
  Notifications.prototype.notify = function (channel) {
    if (channel === "syncline_log") heard.set(this, (heard.get(this) ?? 0) + 1);
    notify.call(this, channel);
  };
  try {
    for (const name of ["a", "b"]) await Deno.mkdir(folder.at(name));
    // The lease does not end while the other server starts, however slow the machine is.
    await using a = await joinCluster(url, { dataDir: folder.at("a"), folder, leaseMs: 600_000 });
    assert.equal(await a.begin(), "leader");
    const ofA = [...heard.keys()];
    await Deno.copyFile(folder.at("a/data.db"), folder.at("b/data.db"));
    await using b = await joinCluster(url, { dataDir: folder.at("b"), folder });
    assert.equal(await b.begin(), "follower");
    await until(() => heard.size > ofA.length, { what: "the follower reads earlier rows" });
    const [ofB] = [...heard.keys()].filter((notifications) => !ofA.includes(notifications));
    assert.ok(ofB !== undefined);
    heard.clear();
    {
      using leading = new Leading(a, folder.at("a"));
      await leading.begin();
      await leading.insert(3);
    }
    await until(() => (heard.get(ofB) ?? 0) >= 4, { what: "the follower is notified of each row" });
    // Earlier notifications would have arrived before this response.
    await a.members();
    assert.deepEqual([...heard.keys()], [ofB]);
    // Another server leads now.
    heard.clear();
    const other = await postgres.client(new URL(url).pathname.slice(1));
    await other.query(
      "update syncline.lease set until = now() + interval '1 minute', holder = 'other', epoch = epoch + 1",
    );
    assert.equal(await a.begin(), "follower");
    await until(() => heard.size > 0, { what: "the former leader reads missed rows" });
    heard.clear();
    await other.query("notify syncline_log");
    await until(() => heard.size === 2, { what: "both are notified" });
    await other.end();
  } finally {
    Notifications.prototype.notify = notify;
  }
}

async function failedNotifications(postgres: TestPostgres): Promise<void> {
  const url = await postgres.database();
  await using folder = new TempFolder();
  const { query } = PostgresConnection.prototype;
  let notifications = 0;
  PostgresConnection.prototype.query = function (statement, ...values) {
    if (!statement.name.endsWith("_notify")) return query.call(this, statement, ...values);
    return notifications++ % 2 === 0 ? new Promise(() => {}) : Promise.reject(new Error("The queue is full"));
  };
  try {
    await using cluster = await joinCluster(url, { dataDir: folder.path, folder });
    assert.equal(await cluster.begin(), "leader");
    using leading = new Leading(cluster, folder.path);
    await leading.begin();
    await leading.insert(4);
    assert.equal(notifications, 5);
    assert.equal((await cluster.end())?.seq, 5);
  } finally {
    PostgresConnection.prototype.query = query;
  }
}

async function syncsWhatItConfirms(postgres: TestPostgres): Promise<void> {
  const url = await postgres.database();
  const place = parsePostgresUrl(url);
  await using folder = new TempFolder();
  const client = await postgres.client(place.database);
  const setting = { name: "", text: "select current_setting('synchronous_commit') as is" };
  const seenBy = async (role: string) => {
    await client.query(`alter database ${place.database} set synchronous_commit = ${role}`);
    await using connection = new PostgresConnection({ address: place });
    return (await connection.query(setting))[0]?.["is"];
  };
  try {
    for (const kept of ["on", "local", "remote_write"]) assert.equal(await seenBy(kept), kept);
    assert.equal(await seenBy("off"), "on");
    const joined = async () => {
      const logged: string[] = [];
      const log = (level: string, message: string) => void logged.push(`${level} ${message}`);
      await using _cluster = await joinCluster(url, { dataDir: folder.path, folder, log });
      return logged;
    };
    assert.deepEqual(await joined(), []);
    await client.query("alter system set fsync = off");
    await client.query("select pg_reload_conf()");
    await until(async () => (await client.query("show fsync")).rows[0]?.fsync === "off");
    assert.deepEqual(await joined(), [
      "warn The cluster's database does not sync its disk: a power failure there loses commits",
    ]);
  } finally {
    await client.end();
  }
}

async function waitsForSnapshot(postgres: TestPostgres): Promise<void> {
  const url = await postgres.database();
  await using folder = new TempFolder();
  for (const name of ["a", "b"]) await Deno.mkdir(folder.at(name));
  const limits = clusterLimits as { firstSnapshotRetryMs: number };
  const { firstSnapshotRetryMs } = limits;
  limits.firstSnapshotRetryMs = 10;
  try {
    await using a = await joinCluster(url, { dataDir: folder.at("a"), folder });
    assert.equal(await a.begin(), "leader");
    let tries = 0;
    const makeBackup = () => Promise.reject(new Error(`No room, ${++tries}`));
    a.serve(servedState({ makeBackup }));
    const logged: string[] = [];
    const log = (level: string, message: string) => void logged.push(`${level} ${message}`);
    await using b = await joinCluster(url, { dataDir: folder.at("b"), folder, log });
    const begun = assert.rejects(b.begin(), { name: "AbortError" });
    await until(() => tries > 1 && logged.length > 0);
    assert.deepEqual(logged, [
      "info The cluster has no snapshot yet. Waiting for the first one of its leader",
    ]);
    b.stopping();
    await begun;
  } finally {
    limits.firstSnapshotRetryMs = firstSnapshotRetryMs;
  }
}
