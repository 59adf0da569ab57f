/** The log store: searches equal a full scan, and old and excess runs are deleted. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { RunFilter } from "../../../mod/ops/log/run_filter.ts";
import { loggedRun, type RunRecord, VERSION_INDEX } from "../../../mod/ops/log/run_record.ts";
import { histogramOf } from "../../../mod/ops/log/store/histogram.ts";
import { isDiskError } from "../../../mod/ops/log/store/log_database.ts";
import { LogStore, type Retention } from "../../../mod/ops/log/store/log_store.ts";
import { searchRuns } from "../../../mod/ops/log/store/search.ts";
import { filters, isWanted, seeded, someRun, START } from "./support/some_runs.ts";

const forever: Retention = { keepMs: 365 * 86_400_000, bytesMax: 10 ** 12 };
const never = Infinity;
const HOUR = 3_600_000;

async function withStore(
  work: (store: LogStore, path: string) => void | Promise<void>,
  retention: Retention = forever,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "logs.db");
  try {
    using store = LogStore.open(path, { retention });
    await work(store, path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** IDs of all matching runs, by pages. */
function pages(store: LogStore, filter: RunFilter, { limit = 500, deadline = never } = {}): number[] {
  const found: number[] = [];
  for (let before: number | null = 10 ** 9; before !== null;) {
    const { runs, next } = searchRuns(store, { filter, before, limit, deadline });
    found.push(...runs.map(({ id }) => id));
    before = next;
  }
  return found;
}

Deno.test("[EL8] [EL9] [EL11] for every filter pages contain exactly the matching runs, newest first", () =>
  withStore((store, path) => {
    const random = seeded(7);
    const kept: { id: number; record: RunRecord }[] = [];
    for (let at = START; at < START + 3_000;) {
      const size = random(9) === 0 ? 400 : 1 + random(3);
      const batch = Array.from({ length: size }, () => someRun(random, at++));
      const first = store.add(batch);
      for (const [i, record] of batch.entries()) kept.push({ id: first + i, record });
    }
    using reader = LogStore.openReader(path);
    for (const filter of filters) {
      const wanted = kept.filter(({ record }) => isWanted(filter, record)).toReversed();
      const ids = wanted.map(({ id }) => id);
      for (const limit of [7, 500]) {
        assert.deepEqual(pages(store, filter, { limit }), ids, JSON.stringify(filter));
      }
      assert.deepEqual(pages(store, filter, { deadline: -Infinity }), ids, "also if each search ends early");
      const { runs } = searchRuns(reader, { filter, limit: 10_000, deadline: never });
      assert.deepEqual(runs, wanted, JSON.stringify(filter));
      if (filter.from !== undefined) continue;
      for (const [bars, to] of [[10, START + 5_000], [2, START + 600_000]] as const) {
        const histogram = histogramOf(store, { filter, from: START, to, bars, deadline: never });
        const counted = histogram.bars.flat().reduce((sum, runs) => sum + runs, 0);
        assert.equal(counted, ids.length, `${bars} bars of ${JSON.stringify(filter)}`);
      }
    }
  }));

Deno.test("[EL8] the last bar of a histogram ends with its window", () =>
  withStore((store) => {
    const random = seeded(5);
    store.add([0, 1, 60, 1_439, 10_079].map((minutes) => someRun(random, START + minutes * 60_000)));
    // The window of a week in 60 bars of whole minutes.
    const to = START + 10_080 * 60_000;
    const { bars, ...histogram } = histogramOf(store, {
      filter: {},
      from: START,
      to,
      bars: 60,
      deadline: never,
    });
    assert.equal(histogram.to, to);
    assert.equal(histogram.from + bars.length * histogram.barMs, to);
    assert.ok(histogram.from <= START && histogram.from > START - 3_600_000 / 4, `${START - histogram.from}`);
    const counts = bars.map((runs) => runs.reduce((sum, count) => sum + count, 0));
    assert.deepEqual([counts[0], counts.at(-1), counts.reduce((sum, runs) => sum + runs, 0)], [3, 1, 5]);
    for (const minutes of [61, 100, 1_441, 10_081]) {
      const end = START + minutes * 60_000;
      const found = histogramOf(store, { filter: {}, from: START, to: end, bars: 60, deadline: never });
      assert.equal(found.to, end);
      assert.ok(found.bars.length <= 60);
    }
  }));

Deno.test("[EL3] a reader of a log that an earlier release wrote finds its runs, without versions", () =>
  withStore((store, path) => {
    const record = [...someRun(seeded(1), START)];
    record[VERSION_INDEX] = "aa01";
    store.add([record as unknown as RunRecord]);
    // That release did not have this table.
    store.database.execute("DROP TABLE versions");
    using reader = LogStore.openReader(path);
    assert.deepEqual(pages(reader, { version: "aa" }), []);
    const { runs } = searchRuns(reader, { filter: {}, limit: 10, deadline: never });
    assert.deepEqual(runs.map(({ id, record }) => loggedRun(id, record).version), [null]);
    assert.equal(store.database.value("SELECT count(*) FROM sqlite_schema WHERE name = 'versions'"), 0);
  }));

Deno.test("[EL9] text before and after a NUL is found, and text with a NUL", () =>
  withStore((store) => {
    const [at, ...rest] = someRun(seeded(1), START);
    const withLine = (line: string) => [at, ...rest.slice(0, -2), [line]] as unknown as RunRecord;
    store.add([withLine("[INFO] before\0after"), withLine("[INFO] before after")]);
    for (
      const [text, ids] of [["before", [2, 1]], ["after", [2, 1]], ["re\0af", [1]], ["re\0xx", []]] as const
    ) {
      assert.deepEqual(pages(store, { text }), ids, JSON.stringify(text));
    }
  }));

Deno.test("[EL8] filters by time find runs from before the clock was set back", () =>
  withStore((store) => {
    const random = seeded(9);
    const times = [0, 5, 2, 90, 1, 60].map((minutes) => START + minutes * 60_000);
    store.add(times.map((at) => someRun(random, at)));
    assert.deepEqual(pages(store, { to: START + 3 * 60_000 }), [5, 3, 1]);
    assert.deepEqual(pages(store, { from: START + 5 * 60_000 }), [6, 4, 2]);
  }));

Deno.test("[EL15] a search that times out reports it, and its cursor continues there", () =>
  withStore((store) => {
    const random = seeded(3);
    for (let done = 0; done < 30_000; done += 1_000) {
      store.add(Array.from({ length: 1_000 }, (_, i) => someRun(random, START + done + i)));
    }
    const searches: boolean[] = [];
    for (let before: number | null = 10 ** 9; before !== null;) {
      const page = searchRuns(store, { filter: { text: "zz" }, before, limit: 50, deadline: -Infinity });
      assert.deepEqual(page.runs, []);
      if (page.next !== null) assert.ok(page.next < before);
      searches.push(page.cut);
      before = page.next;
    }
    assert.ok(searches.length >= 3, `${searches.length} pages`);
    assert.deepEqual(searches, searches.map((_, i) => i < searches.length - 1));
    const histogram = histogramOf(store, {
      filter: { text: "payment" },
      from: START,
      to: START + 30_000,
      bars: 3,
      deadline: -Infinity,
    });
    assert.ok(histogram.countedFrom !== null && histogram.countedFrom > START + 20_000);
  }));

Deno.test("[EL3] only the owner can read the files of the log", () =>
  withStore((store, path) => {
    store.add([someRun(seeded(1), START)]);
    for (const end of ["", "-wal", "-shm"]) {
      assert.equal((Deno.statSync(path + end).mode ?? 0) & 0o777, 0o600, end);
    }
  }));

Deno.test("[EL16] old runs are deleted, and newer ones stay", () =>
  withStore((store) => {
    const random = seeded(1);
    for (let i = 0; i < 48; i++) store.add([someRun(random, START + i * HOUR)]);
    while (store.trim(START + 48 * HOUR));
    assert.deepEqual(pages(store, {}), Array.from({ length: 24 }, (_, i) => 48 - i));
    assert.equal(store.rows, 24);
    const histogram = histogramOf(store, {
      filter: {},
      from: START,
      to: START + 48 * HOUR,
      bars: 48,
      deadline: never,
    });
    assert.equal(histogram.bars.flat().reduce((sum, runs) => sum + runs), 24);
    while (store.trim(START + 480 * HOUR));
    assert.equal(store.rows, 0);
    assert.equal(store.database.value("SELECT count(*) FROM versions"), 0);
    assert.equal(store.add([someRun(random, START)]), 49, "IDs are not used again");
  }, { keepMs: 24 * HOUR, bytesMax: 10 ** 12 }));

Deno.test("[EL16] text of deleted runs is not found in newer ones", () =>
  withStore((store) => {
    const runWithLine = (hour: number, line: string): RunRecord => {
      const run = [...someRun(seeded(1), START + hour * HOUR)] as unknown[];
      run[15] = [line];
      return run as unknown as RunRecord;
    };
    store.add(Array.from({ length: 500 }, (_, i) => runWithLine(0, `[INFO] old ${i} shared`)));
    store.add(Array.from({ length: 500 }, (_, i) => runWithLine(48, `[INFO] new ${i} shared`)));
    while (store.trim(START + 48 * HOUR));
    assert.deepEqual(pages(store, { text: "old 3" }), []);
    assert.equal(pages(store, { text: "new 3" }).length, 111);
    assert.equal(pages(store, { text: "shared" }).length, 500);
    assert.equal(store.database.value("SELECT count(*) FROM texts"), 500);
  }, { keepMs: 24 * HOUR, bytesMax: 10 ** 12 }));

Deno.test("[SE8] the current retention applies", () =>
  withStore((store) => {
    const random = seeded(1);
    for (let i = 0; i < 48; i++) store.add([someRun(random, START + i * HOUR)]);
    const now = START + 48 * HOUR;
    assert.equal(store.trim(now), false);
    store.retain({ keepMs: 2 * HOUR, bytesMax: forever.bytesMax });
    while (store.trim(now));
    assert.deepEqual(pages(store, {}), [48, 47]);
    store.retain(forever);
    assert.equal(store.trim(now), false);
  }, { ...forever, keepMs: 7 * 24 * HOUR }));

Deno.test("[EL16] a log that grows too large loses its oldest runs", () => {
  const bytesMax = 2 * 1024 * 1024;
  return withStore((store) => {
    const lines = Array.from({ length: 16 }, (_, i) => `[INFO] ${i} ${"long line ".repeat(30)}`);
    for (let i = 0; i < 200; i++) {
      store.add(Array.from({ length: 10 }, (): RunRecord => {
        const run = [...someRun(seeded(i), START + i)] as unknown as unknown[];
        run[15] = lines;
        return run as unknown as RunRecord;
      }));
      while (store.trim(START + i));
      assert.ok(store.bytes <= bytesMax, `${store.bytes} bytes after ${i} steps`);
    }
    assert.ok(store.rows > 150 && store.rows < 2_000, `${store.rows} rows`);
    assert.equal(searchRuns(store, { filter: {}, limit: 1, deadline: never }).runs[0]?.id, 2_000);
  }, { keepMs: forever.keepMs, bytesMax });
});

Deno.test("[EL17] a full disk loses only the runs added in the meantime", () =>
  withStore((store) => {
    const random = seeded(2);
    const batch = () => Array.from({ length: 500 }, () => someRun(random, START));
    store.add(batch());
    const count = Number(store.database.value("PRAGMA page_count"));
    store.database.value(`PRAGMA max_page_count = ${count}`);
    assert.throws(() => store.add(batch()), isDiskError);
    assert.equal(pages(store, {}).length, 500);
    store.database.value("PRAGMA max_page_count = 1000000");
    assert.equal(store.add(batch()), 501);
    assert.equal(store.rows, 1_000);
  }));

Deno.test("[EL3] two processes with the log open keep all runs with unique ids", () =>
  withStore((store, path) => {
    const random = seeded(4);
    using other = LogStore.open(path, { retention: forever });
    const ids = [];
    for (let i = 0; i < 20; i++) {
      ids.push((i % 2 === 0 ? store : other).add([someRun(random, START + i)]));
    }
    assert.deepEqual(ids, Array.from({ length: 20 }, (_, i) => i + 1));
    assert.equal(store.rows, 20);
  }));
