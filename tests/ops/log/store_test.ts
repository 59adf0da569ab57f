/** The log store: searches equal a full scan, old runs are removed, and it survives faults. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { logLimits } from "../../../mod/ops/limits.ts";
import type { RunFilter } from "../../../mod/ops/log/run_filter.ts";
import { packMessage } from "../../../mod/ops/log/packs/run_pack.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";
import { isDiskTrouble } from "../../../mod/ops/log/store/log_database.ts";
import { histogramOf } from "../../../mod/ops/log/store/histogram.ts";
import { LogStore, type Retention } from "../../../mod/ops/log/store/log_store.ts";
import { searchRuns } from "../../../mod/ops/log/store/search.ts";
import { LogKeeper } from "../../../mod/ops/log/process/log_keeper.ts";
import type { FromLogProcess, LogState } from "../../../mod/ops/log/process/messages.ts";
import { admitsRun, packed } from "./support/packed.ts";
import { filters, seeded, someRun, START } from "./support/some_runs.ts";

const forever: Retention = { keepMs: 365 * 86_400_000, bytesMax: 10 ** 12 };
const never = Infinity;

async function withStore(
  work: (store: LogStore, path: string) => void | Promise<void>,
  retention: Retention = forever,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "logs.db");
  try {
    using store = LogStore.open(path, { retention, now: START });
    await work(store, path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("[EL8] [EL9] for every filter pages contain exactly the matching runs, newest first", () =>
  withStore((store) => {
    const random = seeded(7);
    const kept: { id: number; record: RunRecord }[] = [];
    for (let at = START, id = 1; at < START + 3_000; at += 100) {
      const batch = Array.from({ length: 100 }, (_, i) => someRun(random, at + i));
      store.add(packed(batch), at);
      for (const record of batch) kept.push({ id: id++, record });
    }
    for (const filter of filters) {
      const wanted = kept.filter(({ record }) => admitsRun(filter, record)).map(({ id }) => id).toReversed();
      for (const limit of [7, 500]) {
        const found: number[] = [];
        for (let before: number | null = 10 ** 9; before !== null;) {
          const page = searchRuns(store, { filter, before, limit, deadline: never });
          found.push(...page.runs.map(({ id }) => id));
          before = page.next;
        }
        assert.deepEqual(found, wanted, JSON.stringify(filter));
      }
      const first = kept[0]?.record[0] ?? 0;
      for (const [bars, to] of [[10, START + 3_000], [2, START + 600_000]] as const) {
        const histogram = histogramOf(store, { filter, from: first, to, bars, deadline: never });
        const counted = histogram.bars.flat().reduce((sum, runs) => sum + runs, 0);
        const inside = filter.from === undefined ? wanted.length : null;
        if (inside !== null) assert.equal(counted, inside, `${bars} bars of ${JSON.stringify(filter)}`);
      }
    }
  }));

Deno.test("[EL8] [EL9] runs added one by one are found like those added together, also by later readers", () =>
  withStore((store, path) => {
    const random = seeded(11);
    const kept: { id: number; record: RunRecord }[] = [];
    for (let at = START, id = 1; at < START + 1_500;) {
      const batch = Array.from({ length: random(9) === 0 ? 40 : 1 + random(3) }, () => someRun(random, at++));
      store.add(packed(batch), at);
      for (const record of batch) kept.push({ id: id++, record });
    }
    using reader = LogStore.openReader(path);
    for (const filter of filters) {
      const wanted = kept.filter(({ record }) => admitsRun(filter, record)).toReversed();
      for (const log of [store, reader]) {
        const { runs } = searchRuns(log, { filter, limit: 10_000, deadline: never });
        assert.deepEqual(runs, wanted, JSON.stringify(filter));
      }
    }
    assert.deepEqual(reader.segments.map(({ facts }) => facts), store.segments.map(({ facts }) => facts));
    const packs = Number(store.database.value("SELECT count(*) FROM packs_1"));
    assert.ok(packs < 60, `${packs} packs of ${kept.length} runs`);
  }));

Deno.test("[EL8] runs of functions without numbers are found by name", () =>
  withStore((store) => {
    const random = seeded(5);
    const made = Array.from({ length: logLimits.functionsMax + 40 }, (_, i): RunRecord => {
      const [at, , kind, ...rest] = someRun(random, START + i);
      return [at, `made:up${i}`, kind, ...rest];
    });
    for (let from = 0; from < made.length; from += 4_000) {
      store.add(packed(made.slice(from, from + 4_000)), START);
    }
    for (const i of [3, logLimits.functionsMax + 1, logLimits.functionsMax + 39]) {
      const filter = { functions: [`made:up${i}`] };
      const { runs } = searchRuns(store, { filter, limit: 10, deadline: never });
      assert.deepEqual(runs.map(({ id, record }) => [id, record]), [[i + 1, made[i]]]);
      const histogram = histogramOf(store, {
        filter,
        from: START,
        to: START + 30_000,
        bars: 3,
        deadline: never,
      });
      assert.equal(histogram.bars.flat().reduce((sum, count) => sum + count), 1);
    }
  }));

Deno.test("[EL15] a search that times out reports it, and its cursor continues there", () =>
  withStore((store) => {
    const random = seeded(3);
    const rows = 2 * logLimits.searchStepRows;
    for (let done = 0; done < rows; done += 4_096) {
      store.add(packed(Array.from({ length: 4_096 }, (_, i) => someRun(random, START + done + i))), START);
    }
    const filter: RunFilter = { text: "zz" };
    let pages = 0;
    for (let before: number | null = 10 ** 9; before !== null; pages++) {
      const page = searchRuns(store, { filter, before, limit: 50, deadline: -Infinity });
      assert.deepEqual(page.runs, []);
      assert.equal(page.cut, page.next !== null);
      if (page.next !== null) assert.ok(page.next < before);
      before = page.next;
    }
    assert.ok(pages >= 2, `${pages} pages`);
  }));

Deno.test("[EL16] old runs are removed by partition, and newer ones stay", () =>
  withStore((store) => {
    const random = seeded(1);
    const hour = 3_600_000;
    for (let i = 0; i < 48; i++) store.add(packed([someRun(random, START + i * hour)]), START + i * hour);
    const now = START + 48 * hour;
    while (store.dropOne(now));
    const { runs } = searchRuns(store, { filter: {}, limit: 100, deadline: never });
    assert.ok(runs.length >= 24 && runs.length <= 24 + 24 / logLimits.segmentsMin + 1, `${runs.length} runs`);
    const ids = runs.map(({ id }) => id);
    assert.deepEqual(ids, Array.from({ length: ids.length }, (_, i) => 48 - i), "the newest, without a gap");
  }, { keepMs: 24 * 3_600_000, bytesMax: 10 ** 12 }));

Deno.test("[SE8] the current retention applies", () =>
  withStore((store) => {
    const random = seeded(1);
    const hour = 3_600_000;
    for (let i = 0; i < 48; i++) store.add(packed([someRun(random, START + i * hour)]), START + i * hour);
    const now = START + 48 * hour;
    assert.equal(store.dropOne(now), false);
    store.retain({ keepMs: 2 * hour, bytesMax: forever.bytesMax });
    while (store.dropOne(now));
    const { runs } = searchRuns(store, { filter: {}, limit: 100, deadline: never });
    assert.ok(runs.length < 48 && runs[0]?.id === 48, `${runs.length} runs`);
    store.retain(forever);
    assert.equal(store.dropOne(now), false);
  }, { ...forever, keepMs: 7 * 24 * 3_600_000 }));

Deno.test("[EL16] a log that grows too large loses its oldest runs", () => {
  const bytesMax = 2 * 1024 * 1024;
  return withStore((store) => {
    const lines = Array.from({ length: 16 }, (_, i) => `[INFO] ${i} ${"long line ".repeat(30)}`);
    for (let i = 0; i < 200; i++) {
      const batch = Array.from({ length: 10 }, (): RunRecord => {
        const run = [...someRun(seeded(i), START + i)] as unknown as unknown[];
        run[15] = lines;
        return run as unknown as RunRecord;
      });
      store.add(packed(batch), START + i);
      while (store.dropOne(START + i));
      assert.ok(store.bytes <= bytesMax, `${store.bytes} bytes after ${i} turns`);
    }
    assert.ok(store.rows > 0 && store.rows < 2_000);
    assert.equal(searchRuns(store, { filter: {}, limit: 1, deadline: never }).runs[0]?.id, 2_000);
  }, { keepMs: forever.keepMs, bytesMax });
});

Deno.test("[EL17] a full disk loses only the runs added in the meantime", () =>
  withStore((store) => {
    const random = seeded(2);
    const batch = () => Array.from({ length: 500 }, () => someRun(random, START));
    store.add(packed(batch()), START);
    const pages = Number(store.database.value("PRAGMA page_count"));
    store.database.value(`PRAGMA max_page_count = ${pages}`);
    assert.throws(() => store.add(packed(batch()), START), isDiskTrouble);
    assert.equal(searchRuns(store, { filter: {}, limit: 500, deadline: never }).runs.length, 500);
    store.database.value("PRAGMA max_page_count = 1000000");
    assert.equal(store.add(packed(batch()), START), 501);
    assert.equal(store.rows, 1_000);
  }));

Deno.test("[EL3] two processes with the log open keep all runs with unique ids", () =>
  withStore((store, path) => {
    const random = seeded(4);
    using other = LogStore.open(path, { retention: forever, now: START });
    const ids = [];
    for (let i = 0; i < 20; i++) {
      ids.push((i % 2 === 0 ? store : other).add(packed([someRun(random, START + i)]), START + i));
    }
    assert.deepEqual(ids, Array.from({ length: 20 }, (_, i) => i + 1));
    store.add(packed([]), START);
    assert.equal(store.rows, 20);
  }));

async function withKeeper(
  prepare: (path: string) => Promise<void>,
  work: (
    keeper: LogKeeper,
    told: { readonly says: string[]; state: LogState | null; answers: unknown[] },
    path: string,
  ) => Promise<void> | void,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "logs.db");
  const told: { says: string[]; state: LogState | null; answers: unknown[] } = {
    says: [],
    state: null,
    answers: [],
  };
  const say = (message: FromLogProcess) => {
    if (message.type === "Say") told.says.push(`${message.level}: ${message.message}`);
    if (message.type === "State") told.state = message.state;
    if (message.type === "Answer") told.answers.push(message.answer);
  };
  try {
    await prepare(path);
    using keeper = new LogKeeper({ path, retention: forever, now: () => START, say });
    await work(keeper, told, path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const page = { type: "Ask", ask: 1, kind: "page", asked: { filter: {}, limit: 10 } } as const;

Deno.test("[EL13] any other file is quarantined and a new log started", async () => {
  const files: Readonly<Record<string, (path: string) => Promise<void>>> = {
    "text": (path) => Deno.writeTextFile(path, "not a database ".repeat(500)),
    "zeros": (path) => Deno.writeFile(path, new Uint8Array(8_192).fill(7)),
    "another database": async (path) => {
      const { DatabaseSync } = await import("node:sqlite");
      const db = new DatabaseSync(path);
      db.exec("CREATE TABLE mine (a)");
      db.close();
    },
    "a newer log": (path) => {
      using store = LogStore.open(path, { retention: forever, now: START });
      store.database.execute("PRAGMA user_version = 99");
      return Promise.resolve();
    },
  };
  for (const [name, prepare] of Object.entries(files)) {
    await withKeeper(prepare, async (keeper, told, path) => {
      keeper.take({ type: "Runs", pack: packMessage(packed([someRun(seeded(1), START)])) });
      keeper.take(page);
      assert.equal((told.answers[0] as { runs: unknown[] }).runs.length, 1, name);
      assert.match(told.says.join("\n"), /unusable; moved to "logs\.db\.unusable"/, name);
      assert.equal((await Deno.stat(`${path}.unusable`)).isFile, true);
    });
  }
});

Deno.test("[EL13] damage found later is quarantined too", async () => {
  await withKeeper(() => Promise.resolve(), (keeper, told, path) => {
    const runs = Array.from({ length: 2_000 }, (_, i) => someRun(seeded(i), START));
    keeper.take({ type: "Runs", pack: packMessage(packed(runs)) });
    keeper[Symbol.dispose]();
    const bytes = Deno.readFileSync(path);
    // Everything except the first page, with the schema.
    bytes.fill(0xff, 4_096);
    Deno.writeFileSync(path, bytes);
    const says = told.says.length;
    keeper.take({ type: "Runs", pack: packMessage(packed(runs)) });
    keeper.take(page);
    assert.equal((told.answers[0] as { runs: unknown[] }).runs.length, 10);
    assert.ok(told.says.length > says);
  });
});

Deno.test("[EL13] if the file of a running server's log is removed, a new one is started", async () => {
  await withKeeper(() => Promise.resolve(), async (keeper, told, path) => {
    const runs = packMessage(packed(Array.from({ length: 3 }, (_, i) => someRun(seeded(i), START))));
    keeper.take({ type: "Runs", pack: runs });
    for (const end of ["", "-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
    keeper.cleanUp();
    assert.deepEqual(told.says, [], "another server may be putting it aside");
    keeper.take({ type: "Runs", pack: runs });
    keeper.cleanUp();
    assert.deepEqual(told.says, ["warn: The execution log was removed; started a new one"]);
    keeper.take({ type: "Runs", pack: runs });
    keeper.cleanUp();
    keeper.cleanUp();
    assert.equal(told.says.length, 1);
    assert.deepEqual([told.state?.rows, told.state?.trouble], [3, null]);
    using other = LogStore.open(path, { retention: forever, now: START });
    assert.equal(other.rows, 3, "who opens the file finds them");
  });
});

Deno.test("[EL13] if no log can be created, runs are counted and the reason is logged once", async () => {
  await withKeeper(async (path) => {
    // Folders block both paths, so no file can be placed there.
    await Deno.mkdir(path);
    await Deno.mkdir(`${path}.unusable`);
    await Deno.writeTextFile(join(`${path}.unusable`, "kept"), "");
  }, (keeper, told) => {
    const runs = [someRun(seeded(1), START)];
    for (let i = 0; i < 5; i++) keeper.take({ type: "Runs", pack: packMessage(packed(runs)) });
    keeper.take(page);
    assert.deepEqual(told.answers, [null]);
    assert.equal(told.says.length, 1);
    assert.deepEqual([told.state?.lost, told.state?.rows], [5, 0]);
    assert.match(told.state?.trouble ?? "", /cannot create a new one/);
  });
});
