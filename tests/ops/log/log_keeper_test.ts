/** Logs that cannot be used, belong to another version, or disappear. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import { logLimits } from "../../../mod/ops/limits.ts";
import { LogFile } from "../../../mod/ops/log/log_file.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";
import { convertLog } from "../../../mod/ops/log/store/convert_log.ts";
import { LogStore, type Retention } from "../../../mod/ops/log/store/log_store.ts";
import { searchRuns } from "../../../mod/ops/log/store/search.ts";
import { LogKeeper } from "../../../mod/ops/log/worker/log_keeper.ts";
import type { FromLogWorker, LogState } from "../../../mod/ops/log/worker/messages.ts";
import { seeded, someRun, START } from "./support/some_runs.ts";

const DAY = 86_400_000;
const retention: Retention = { keepMs: 7 * DAY, bytesMax: 10 ** 12 };
const PAGE = { filter: {}, limit: 10 };

interface Reported {
  readonly messages: string[];
  state: LogState | null;
}

/** A log keeper with a controllable clock. */
function keeperOf(path: string): { keeper: LogKeeper; reported: Reported; clock: { now: number } } {
  const reported: Reported = { messages: [], state: null };
  const clock = { now: START };
  const send = (message: FromLogWorker) => {
    if (message.type === "Log") {
      reported.messages.push(`${message.level}: ${message.message} (${message.reason})`);
    }
    if (message.type === "State") reported.state = message.state;
  };
  return { keeper: new LogKeeper({ path, retention, now: () => clock.now, send }), reported, clock };
}

async function inFolder(work: (path: string) => void | Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await work(join(folder, "logs.db"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function store(keeper: LogKeeper, runs: readonly RunRecord[]): void {
  keeper.store(JSON.stringify(runs));
}

function someRuns(count: number): RunRecord[] {
  return Array.from({ length: count }, (_, i) => someRun(seeded(i), START));
}

/** Runs in the quarantined log. */
function quarantinedRuns(path: string): unknown {
  using log = new DatabaseSync(`${path}.unusable`);
  return Object.values(log.prepare("SELECT count(*) FROM runs").get() ?? {})[0];
}

/** A log of another version with three runs, still open. */
function otherLog(path: string): LogStore {
  const log = LogStore.open(path, { retention });
  log.add(someRuns(3));
  log.database.execute("PRAGMA user_version = 99");
  return log;
}

Deno.test("[EL13] any other file is quarantined and a new log started", async () => {
  const files: Readonly<Record<string, (path: string) => void>> = {
    "text": (path) => Deno.writeTextFileSync(path, "not a database ".repeat(500)),
    "zeros": (path) => Deno.writeFileSync(path, new Uint8Array(8_192).fill(7)),
    "another database": (path) => {
      using db = new DatabaseSync(path);
      db.exec("CREATE TABLE mine (a)");
    },
    "a newer log": (path) => otherLog(path)[Symbol.dispose](),
  };
  for (const [name, prepare] of Object.entries(files)) {
    await inFolder((path) => {
      prepare(path);
      const { keeper, reported } = keeperOf(path);
      using _keeper = keeper;
      store(keeper, someRuns(1));
      assert.equal(keeper.page(PAGE)?.runs.length, 1, name);
      assert.match(reported.messages.join("\n"), /unusable; moved to "logs\.db\.unusable"/, name);
      assert.equal(Deno.statSync(`${path}.unusable`).isFile, true);
    });
  }
});

Deno.test("[EL13] damage found later is quarantined too", () =>
  inFolder((path) => {
    const { keeper, reported } = keeperOf(path);
    using _keeper = keeper;
    store(keeper, someRuns(2_000));
    keeper[Symbol.dispose]();
    const bytes = Deno.readFileSync(path);
    // Everything except the first page, with the schema.
    bytes.fill(0xff, 4_096);
    Deno.writeFileSync(path, bytes);
    store(keeper, someRuns(20));
    assert.equal(keeper.page(PAGE)?.runs.length, 10);
    assert.match(reported.messages.join("\n"), /Execution log unusable/);
  }));

Deno.test("[EL13] a log with a damaged row is quarantined", () =>
  inFolder((path) => {
    const { keeper, reported } = keeperOf(path);
    using _keeper = keeper;
    store(keeper, someRuns(20));
    {
      using log = new DatabaseSync(path);
      log.exec("UPDATE runs SET lines = '[' WHERE id = 20");
    }
    assert.deepEqual(keeper.page(PAGE)?.runs, []);
    assert.match(reported.messages.join("\n"), /Execution log unusable/);
    assert.equal(quarantinedRuns(path), 20);
  }));

Deno.test("[EL13] if the file of a running server's log is removed, a new one is started", () =>
  inFolder((path) => {
    const { keeper, reported } = keeperOf(path);
    using _keeper = keeper;
    store(keeper, someRuns(3));
    for (const end of ["", "-wal", "-shm"]) Deno.removeSync(path + end);
    keeper.cleanUp();
    assert.deepEqual(reported.messages, [], "another server may be moving it");
    store(keeper, someRuns(3));
    keeper.cleanUp();
    assert.deepEqual(reported.messages, ["warn: The execution log was removed; started a new one ()"]);
    store(keeper, someRuns(3));
    keeper.cleanUp();
    keeper.cleanUp();
    assert.equal(reported.messages.length, 1);
    assert.deepEqual([reported.state?.rows, reported.state?.trouble], [3, null]);
    using other = LogStore.open(path, { retention });
    assert.equal(other.rows, 3, "other processes find them");
  }));

Deno.test("[EL13] if no log can be created, runs are counted and the reason is logged once", () =>
  inFolder((path) => {
    // The file is damaged, and cannot be moved because a folder has the name.
    Deno.writeTextFileSync(path, "no database");
    Deno.mkdirSync(`${path}.unusable`);
    Deno.writeTextFileSync(join(`${path}.unusable`, "kept"), "");
    const { keeper, reported } = keeperOf(path);
    using _keeper = keeper;
    for (let i = 0; i < 5; i++) store(keeper, someRuns(1));
    assert.equal(keeper.page(PAGE), null);
    assert.equal(reported.messages.length, 1);
    assert.deepEqual([reported.state?.lost, reported.state?.rows], [5, 0]);
    assert.match(reported.state?.trouble ?? "", /cannot create a new one/);
  }));

Deno.test("[EL13] a log that cannot be opened at the moment is kept and used later", async () => {
  const faults: Readonly<Record<string, (path: string) => () => void>> = {
    // SQLite's error is the one for too many open files.
    "unable to open": (path) => {
      Deno.mkdirSync(`${path}-wal`);
      return () => Deno.removeSync(`${path}-wal`);
    },
    "a folder has its name": (path) => {
      Deno.renameSync(path, `${path}.kept`);
      Deno.mkdirSync(path);
      return () => {
        Deno.removeSync(path);
        Deno.renameSync(`${path}.kept`, path);
      };
    },
  };
  for (const [name, begin] of Object.entries(faults)) {
    await inFolder((path) => {
      LogStore.open(path, { retention })[Symbol.dispose]();
      const end = begin(path);
      const { keeper, reported, clock } = keeperOf(path);
      using _keeper = keeper;
      store(keeper, someRuns(2));
      assert.deepEqual([reported.state?.lost, reported.messages.length], [2, 1], name);
      assert.match(reported.state?.trouble ?? "", /unable to open database file/, name);
      end();
      clock.now += 60_000;
      store(keeper, someRuns(3));
      assert.equal(keeper.page(PAGE)?.runs.length, 3, name);
      assert.throws(() => Deno.statSync(`${path}.unusable`), Deno.errors.NotFound);
    });
  }
});

Deno.test("[EL15] a search with a small share of the time ends early, and so does its histogram", () =>
  inFolder((path) => {
    const { keeper } = keeperOf(path);
    using _keeper = keeper;
    for (let i = 0; i < 10; i++) store(keeper, someRuns(1_000));
    const histogram = { from: START - 60_000, to: START + 60_000, bars: 120 };
    const page = keeper.page({ filter: { caller: "user:absent" }, limit: 10, share: 0, histogram });
    assert.deepEqual([page?.cut, page?.runs.length], [true, 0]);
    assert.equal(typeof page?.histogram?.countedFrom, "number");
  }));

Deno.test("[EL15] a histogram of a very long window has as many bars as asked, at most", () =>
  inFolder((path) => {
    const { keeper } = keeperOf(path);
    using _keeper = keeper;
    store(keeper, someRuns(3));
    for (const filter of [{}, { caller: "user:absent" }]) {
      const page = keeper.page({
        filter,
        limit: 1,
        share: 1,
        histogram: { from: 0, to: 8.64e15, bars: 120 },
      });
      const bars = page?.histogram?.bars.length ?? 0;
      assert.ok(bars >= 80 && bars <= 120, String(bars));
    }
  }));

Deno.test("[EL3] the log of the previous format is converted", () =>
  inFolder((path) => {
    const archive = Deno.readFileSync(new URL("support/format_2.db.gz", import.meta.url));
    Deno.writeFileSync(path, gunzipSync(archive));
    const { keeper, reported, clock } = keeperOf(path);
    using _keeper = keeper;
    assert.deepEqual(reported.messages, [
      "info: Execution log converted to a new format " +
      "(copied the 206 newest runs; the previous file is removed after the retention time)",
    ]);
    // The state at the file's creation.
    const random = seeded(7);
    let at = START;
    const wanted: RunRecord[] = [];
    for (const [count, gap] of [[1, 0], [1, 0], [120, 0], [1, DAY], [80, 0], [3, 0]] as const) {
      at += gap;
      for (let i = 0; i < count; i++) {
        const run = [...someRun(random, at++)] as unknown[];
        run[8] = random(1_000) / 100;
        run[7] = run[2] === 1 ? run[7] : null;
        wanted.push(run as unknown as RunRecord);
      }
    }
    using log = LogStore.openReader(path);
    const { runs } = searchRuns(log, { filter: {}, limit: 1_000, deadline: Infinity });
    assert.deepEqual(runs.toReversed(), wanted.map((record, i) => ({ id: i + 1, record })));
    const boom = searchRuns(log, { filter: { text: "BOOM" }, limit: 1_000, deadline: Infinity }).runs;
    assert.equal(boom.length, wanted.filter((run) => run[14] !== null).length);
    assert.deepEqual(log.loadFigures(START), [{ span: "minute", at: START, text: "{}" }]);
    assert.equal(Deno.statSync(`${path}.unusable`).isFile, true);
    clock.now += retention.keepMs + 1_000;
    keeper.cleanUp();
    assert.throws(() => Deno.statSync(`${path}.unusable`), Deno.errors.NotFound);
  }));

Deno.test("[EL3] of a log of the previous format with much text only the newest runs are copied", () =>
  inFolder((path) => {
    Deno.writeFileSync(
      path,
      gunzipSync(Deno.readFileSync(new URL("support/format_2.db.gz", import.meta.url))),
    );
    using log = LogStore.open(`${path}.new`, { retention });
    const copied = convertLog(path, log, { now: START, charsMax: 4_000 });
    assert.ok(copied > 0 && copied < 206, String(copied));
    const { runs } = searchRuns(log, { filter: {}, limit: 1_000, deadline: Infinity });
    assert.deepEqual(runs.map(({ id }) => id), Array.from({ length: copied }, (_, i) => 206 - i));
  }));

Deno.test("[EL13] a damaged log of the previous format is quarantined", () =>
  inFolder((path) => {
    const bytes = gunzipSync(Deno.readFileSync(new URL("support/format_2.db.gz", import.meta.url)));
    bytes.fill(0xff, 8_192);
    Deno.writeFileSync(path, bytes);
    const { keeper, reported } = keeperOf(path);
    using _keeper = keeper;
    store(keeper, someRuns(1));
    keeper.cleanUp();
    assert.equal(reported.messages.length, 1);
    assert.match(reported.messages[0] ?? "", /cannot be converted|unusable/);
    assert.deepEqual([reported.state?.lost, reported.state?.trouble], [0, null]);
  }));

Deno.test("[EL13] the log of another version is quarantined with its newest runs", () =>
  inFolder((path) => {
    {
      // As after a kill: the newest runs are in the write-ahead log.
      using _open = otherLog(`${path}.killed`);
      for (const end of ["", "-wal"]) Deno.copyFileSync(`${path}.killed${end}`, path + end);
    }
    const { keeper, reported } = keeperOf(path);
    using _keeper = keeper;
    assert.equal(reported.messages.length, 1);
    assert.equal(quarantinedRuns(path), 3);
  }));

Deno.test("[EL13] the log of another version is quarantined once its server has released it", () =>
  inFolder((path) => {
    const old = otherLog(path);
    const { keeper, reported, clock } = keeperOf(path);
    using _keeper = keeper;
    assert.match(reported.state?.trouble ?? "", /another version .* still using it/);
    old.add(someRuns(3));
    store(keeper, someRuns(1));
    assert.equal(reported.state?.lost, 1);
    old[Symbol.dispose]();
    clock.now += 1_000;
    store(keeper, someRuns(1));
    keeper.cleanUp();
    assert.deepEqual([reported.state?.lost, reported.state?.rows, reported.state?.trouble], [1, 1, null]);
    assert.equal(quarantinedRuns(path), 6);
  }));

Deno.test("[EL13] waiting for a server to release the log of another version is bounded", () =>
  inFolder((path) => {
    const old = otherLog(path);
    const { keeper, reported, clock } = keeperOf(path);
    using _keeper = keeper;
    clock.now += 61_000;
    store(keeper, someRuns(1));
    keeper.cleanUp();
    assert.deepEqual([reported.state?.rows, reported.state?.lost, reported.state?.trouble], [1, 0, null]);
    old.add(someRuns(4));
    old[Symbol.dispose]();
    assert.equal(quarantinedRuns(path), 7);
  }));

Deno.test("[EL16] a full page of deletions is followed by another one", () =>
  inFolder((path) => {
    const { keeper, reported, clock } = keeperOf(path);
    using _keeper = keeper;
    store(keeper, someRuns(logLimits.deletedRunsMax + 1));
    clock.now += retention.keepMs + 1_000;
    assert.deepEqual([keeper.cleanUp(), keeper.cleanUp(), keeper.cleanUp()], [true, true, false]);
    assert.equal(reported.state?.rows, 0);
  }));

Deno.test("[EL19] a follower of the log file sees each run once", () =>
  inFolder((path) => {
    using writer = LogStore.open(path, { retention });
    writer.add(someRuns(15));
    using file = LogFile.open(path, new URLSearchParams());
    writer.add(someRuns(1));
    assert.equal(file.newest(100).length, 16);
    assert.equal(file.more().runs.length, 0);
    writer.add(someRuns(15));
    assert.equal(file.more().runs.length, 15);
    assert.equal(file.more().runs.length, 0);
  }));
