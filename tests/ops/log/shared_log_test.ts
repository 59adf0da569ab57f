/** The log file with concurrent processes and failed writes: nothing is lost or reported twice. */
import assert from "node:assert/strict";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { join } from "node:path";
import { LogFile } from "../../../mod/ops/log/log_file.ts";
import { packMessage } from "../../../mod/ops/log/packs/run_pack.ts";
import { LogKeeper } from "../../../mod/ops/log/process/log_keeper.ts";
import type { FromLogProcess, LogState, PageAnswer } from "../../../mod/ops/log/process/messages.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";
import { isDiskTrouble, LogDatabase } from "../../../mod/ops/log/store/log_database.ts";
import { LogStore, type Retention } from "../../../mod/ops/log/store/log_store.ts";
import { searchRuns } from "../../../mod/ops/log/store/search.ts";
import { packed } from "./support/packed.ts";

const START = Date.UTC(2030, 0, 1);
const DAY = 86_400_000;
const retention: Retention = { keepMs: 7 * DAY, bytesMax: 10 ** 12 };

async function inFolder(work: (path: string) => void | Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await work(join(folder, "logs.db"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function open(path: string): LogStore {
  return LogStore.open(path, { retention, now: START });
}

function runs(count: number, lines: readonly string[] = []): RunRecord[] {
  return Array.from(
    { length: count },
    () => [START, "a:b", 1, null, 0, 0, 7, null, 1, 0, 1, 2, 3, 4, null, lines],
  );
}

function add(store: LogStore, ...counts: readonly number[]): void {
  for (const count of counts) store.add(packed(runs(count)), START);
}

function singles(count: number): number[] {
  return Array.from({ length: count }, () => 1);
}

function found(store: LogStore, limit = 10_000): number[] {
  return searchRuns(store, { filter: {}, limit, deadline: Infinity }).runs.map(({ id }) => id);
}

function newestFirst(last: number): number[] {
  return Array.from({ length: last }, (_, i) => last - i);
}

function packSizes({ database }: LogStore): number[] {
  return database.all("SELECT runs FROM packs_1 ORDER BY first").map(([size]) => size as number);
}

/** Does something once, after a number of statements that read batches. */
function afterLooks(looks: number, inBetween: () => void): Disposable & { readonly done: boolean } {
  const { all } = LogDatabase.prototype;
  let done = false;
  let count = 0;
  LogDatabase.prototype.all = function (sql: string, ...parameters: SQLInputValue[]) {
    const rows = all.call(this, sql, ...parameters);
    if (!done && sql.startsWith("SELECT") && sql.includes("packs_1") && ++count === looks) {
      done = true;
      inBetween();
    }
    return rows;
  };
  return {
    get done() {
      return done;
    },
    [Symbol.dispose]() {
      LogDatabase.prototype.all = all;
    },
  };
}

interface Told {
  readonly says: string[];
  state: LogState | null;
  answer: unknown;
}

function keeperOf(path: string, now: () => number = () => START): { keeper: LogKeeper; told: Told } {
  const told: Told = { says: [], state: null, answer: null };
  const say = (message: FromLogProcess) => {
    if (message.type === "Say") told.says.push(message.message);
    if (message.type === "State") told.state = message.state;
    if (message.type === "Answer") told.answer = message.answer;
  };
  return { keeper: new LogKeeper({ path, retention, now, say }), told };
}

const page = { type: "Ask", ask: 1, kind: "page", asked: { filter: {}, limit: 100 } } as const;

// While the second batch is searched for, and after the last one was read.
for (const looks of [3, 31]) {
  Deno.test(`[EL3] a log merged by another process after ${looks} reads is opened completely, without duplicate ids`, () =>
    inFolder((path) => {
      using old = open(path);
      add(old, ...singles(15));
      using merging = afterLooks(looks, () => add(old, 1, 1, 1));
      using next = open(path);
      assert.equal(merging.done, true);
      assert.equal(next.add(packed(runs(1)), START), 19);
      assert.deepEqual(found(next), newestFirst(19));
      assert.equal(next.rows, 19);
    }));
}

Deno.test("[EL3] [EL8] a page is complete while another process merges batches", () =>
  inFolder((path) => {
    using old = open(path);
    add(old, ...singles(15));
    const { keeper, told } = keeperOf(path);
    using _keeper = keeper;
    using merging = afterLooks(1, () => add(old, 1));
    keeper.take(page);
    assert.equal(merging.done, true);
    assert.deepEqual((told.answer as PageAnswer).runs.map(({ id }) => id), newestFirst(15));
    keeper.take(page);
    assert.equal((told.answer as PageAnswer).runs.length, 16, "the next page has what came meanwhile");
    assert.deepEqual(told.says, []);
  }));

Deno.test("[EL3] a follower of the log file sees each run once despite merges", () =>
  inFolder((path) => {
    using old = open(path);
    add(old, ...singles(15));
    using file = LogFile.open(path, new URLSearchParams());
    add(old, 1);
    assert.equal(file.newest(100).length, 16);
    assert.equal(file.more().runs.length, 0);
    add(old, ...singles(15));
    using merging = afterLooks(1, () => add(old, 1));
    assert.equal(file.more().runs.length, 15);
    assert.equal(merging.done, true);
    assert.equal(file.more().runs.length, 1);
  }));

Deno.test("[EL8] a batch merged into a larger one is not damage", () =>
  inFolder((path) => {
    using store = open(path);
    add(store, ...singles(16));
    const packs = store.segments[0]?.packs;
    assert.equal(packs?.read(store.database, 1)?.count, 16);
    assert.equal(packs?.read(store.database, 2), null);
  }));

Deno.test("[EL8] sixteen small batches become one, and those one of 256: no run is written more than three times", () =>
  inFolder((path) => {
    using store = open(path);
    add(store, ...singles(31));
    assert.deepEqual(packSizes(store), [16, ...singles(15)]);
    const { run } = LogDatabase.prototype;
    let written = 0;
    LogDatabase.prototype.run = function (sql: string, ...parameters: SQLInputValue[]) {
      if (sql.startsWith("INSERT INTO packs_1")) written += Number(parameters[1]);
      run.call(this, sql, ...parameters);
    };
    try {
      add(store, ...singles(600));
    } finally {
      LogDatabase.prototype.run = run;
    }
    assert.ok(written <= 3 * 631, `${written} for 600`);
    assert.deepEqual(packSizes(store), [256, 256, ...Array.from({ length: 7 }, () => 16), ...singles(7)]);
  }));

Deno.test("[EL8] batches of mixed sizes stay few, also for readers that open the log in between", () =>
  inFolder((path) => {
    const counts = Array.from({ length: 300 }, (_, i) => i % 2 === 0 ? 20 : 1);
    for (let from = 0; from < counts.length; from += 50) {
      using store = open(path);
      add(store, ...counts.slice(from, from + 50));
    }
    using store = open(path);
    const sizes = packSizes(store);
    assert.ok(sizes.length < 3_150 / 256 + 30, `${sizes.length} packs: ${sizes}`);
    assert.deepEqual(found(store), newestFirst(3_150));
  }));

Deno.test("[EL17] failed writes leave no trace in memory, and earlier runs are found", () =>
  inFolder((path) => {
    using store = open(path);
    add(store, 100);
    const pages = Number(store.database.value("PRAGMA page_count"));
    store.database.value(`PRAGMA max_page_count = ${pages + 2}`);
    // After two days the runs need a new partition, whose tables cannot be created.
    const long = packed(runs(500, ["[INFO] a line of text that takes some room"]));
    assert.throws(() => store.add(long, START + 2 * DAY), isDiskTrouble);
    assert.deepEqual(store.segments.map(({ no }) => no), [1]);
    assert.deepEqual(found(store), newestFirst(100));
    assert.equal(store.rows, 100);
  }));

Deno.test("[EL17] a partition that could not be dropped is still searched", () =>
  inFolder((path) => {
    using store = open(path);
    add(store, 5);
    const later = runs(5).map(([at, ...rest]): RunRecord => [at + 2 * DAY, ...rest]);
    store.add(packed(later), START + 2 * DAY);
    assert.deepEqual(store.segments.map(({ no }) => no), [1, 2]);
    store.database.execute(
      "CREATE TEMP TRIGGER full BEFORE DELETE ON minutes BEGIN SELECT RAISE(FAIL, 'no'); END",
    );
    assert.throws(() => store.dropOne(START + 30 * DAY));
    assert.deepEqual(found(store), newestFirst(10));
    store.database.execute("DROP TRIGGER full");
    assert.equal(store.dropOne(START + 30 * DAY), true);
    assert.deepEqual(found(store), [10, 9, 8, 7, 6]);
  }));

/** A log of another version as left by a killed server: the newest runs are in the write-ahead log. */
function killedLog(path: string): void {
  using store = open(`${path}.killed`);
  add(store, 40);
  store.database.execute("PRAGMA user_version = 99");
  for (const end of ["", "-wal"]) Deno.copyFileSync(`${path}.killed${end}`, path + end);
}

function keptAside(path: string): unknown {
  using aside = new DatabaseSync(`${path}.unusable`);
  return Object.values(aside.prepare("SELECT sum(runs) FROM packs_1").get() ?? {})[0];
}

Deno.test("[EL13] the log of another version is quarantined with its newest runs, and removed after the retention time", () =>
  inFolder((path) => {
    killedLog(path);
    let now = START;
    const { keeper, told } = keeperOf(path, () => now);
    using _keeper = keeper;
    assert.equal(told.says.length, 1);
    assert.equal(keptAside(path), 40);
    now += retention.keepMs - 1_000;
    keeper.cleanUp();
    assert.equal(keptAside(path), 40);
    now += 2_000;
    keeper.cleanUp();
    assert.throws(() => Deno.statSync(`${path}.unusable`), Deno.errors.NotFound);
    assert.equal(told.state?.trouble, null);
  }));

Deno.test("[EL13] the log of another version is quarantined once its server has released it", () =>
  inFolder((path) => {
    let now = START;
    const message = { type: "Runs", pack: packMessage(packed(runs(1))) } as const;
    const old = open(path);
    old.database.execute("PRAGMA user_version = 99");
    const { keeper, told } = keeperOf(path, () => now);
    using _keeper = keeper;
    assert.match(told.state?.trouble ?? "", /another version .* still using it/);
    add(old, 3);
    keeper.take(message);
    assert.deepEqual([told.state?.lost, found(old).length], [1, 3]);
    old[Symbol.dispose]();
    now += 1_000;
    keeper.take(message);
    keeper.cleanUp();
    assert.deepEqual([told.state?.lost, told.state?.rows, told.state?.trouble], [1, 1, null]);
    assert.equal(keptAside(path), 3);
  }));

Deno.test("[EL13] waiting for a server to release the log of another version is bounded", () =>
  inFolder((path) => {
    let now = START;
    const old = open(path);
    add(old, 3);
    old.database.execute("PRAGMA user_version = 99");
    const { keeper, told } = keeperOf(path, () => now);
    using _keeper = keeper;
    now += 61_000;
    keeper.take({ type: "Runs", pack: packMessage(packed(runs(1))) });
    keeper.cleanUp();
    assert.deepEqual([told.state?.rows, told.state?.lost, told.state?.trouble], [1, 0, null]);
    add(old, 4);
    old[Symbol.dispose]();
    assert.equal(keptAside(path), 7);
  }));
