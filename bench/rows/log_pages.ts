/** In this process: a page of the execution log filtered by function and text, from a large number of runs. */
import { join } from "node:path";
import { cpuUsage } from "node:process";
import type { RunFilter } from "../../mod/ops/log/run_filter.ts";
import type { RunRecord } from "../../mod/ops/log/run_record.ts";
import { logLimits } from "../../mod/ops/limits.ts";
import { LogStore } from "../../mod/ops/log/store/log_store.ts";
import { searchRuns } from "../../mod/ops/log/store/search.ts";
import type { BenchContext } from "../context.ts";
import { mulberry32, WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const START = Date.UTC(2030, 0, 1);
/** Runs of each write, as under load. */
const BATCH = 400;
const FUNCTIONS = 200;
const CALLERS = 5_000;
const WORDS = 2_000;
/** One run in this many has a log line. */
const RUNS_PER_LINE = 20;
const PAGE = 50;
const TARGET_MS = 150;

export function logPageRow(context: BenchContext): Row {
  const count = context.full ? 5_000_000 : 500_000;
  const random = mulberry32(WORKLOAD_SEED);
  const below = (limit: number) => Math.floor(random() * limit);
  const words = Array.from(
    { length: WORDS },
    () => Array.from({ length: 7 }, () => String.fromCharCode(97 + below(26))).join(""),
  );
  using store = LogStore.open(join(context.folder(), "logs.db"), {
    retention: { keepMs: 365 * 86_400_000, bytesMax: 10 ** 12 },
  });
  let writeUs = 0;
  let batch: RunRecord[] = [];
  for (let n = 0; n < count; n++) {
    const lines = below(RUNS_PER_LINE) === 0
      ? [`[INFO] handled ${words[below(WORDS)]} order=${below(1e6)}`]
      : [];
    const caller = `user:u${below(CALLERS)}`;
    const level = lines.length > 0 ? 2 : 0;
    batch.push([
      ...[START + n, `module:function${below(FUNCTIONS)}`, 1, caller, 0, level, n, n] as const,
      ...[1.5, 0.2, 2, 2, 1, 3, null, lines] as const,
    ]);
    if (batch.length < BATCH && n < count - 1) continue;
    const before = cpuUsage();
    store.add(batch);
    const { user, system } = cpuUsage(before);
    writeUs += user + system;
    batch = [];
  }
  const functions = ["module:function7"];
  const texts: Record<string, string> = {
    frequent: "handled",
    rare: words[77] ?? "",
    absent: "no such line",
  };
  const ms: Record<string, number> = {};
  const complete: Record<string, boolean> = {};
  for (const [name, text] of Object.entries(texts)) {
    const times = Array.from({ length: 9 }, () => {
      const { pageMs, cut } = readPage(store, { functions, text });
      complete[name] = !cut;
      return pageMs;
    });
    ms[name] = median(times);
  }
  const worst = Math.max(...Object.values(ms));
  return {
    name: `a page of the log by function and text over ${count.toLocaleString("en")} runs: ms`,
    measured: Object.entries(ms).map(([name, pageMs]) =>
      `${name} ${pageMs.toFixed(1)} ms${complete[name] === true ? "" : " (cut)"}`
    ).join(", "),
    control: `${TARGET_MS} ms`,
    ratio: worst / TARGET_MS,
    target: { atMost: 1 },
    details: { ms, complete, bytes: store.bytes, writeUs: writeUs / count },
  };
}

function readPage(store: LogStore, filter: RunFilter): { readonly pageMs: number; readonly cut: boolean } {
  const startedAt = performance.now();
  const deadline = startedAt + logLimits.searchMs;
  const { cut } = store.database.reading(() => searchRuns(store, { filter, limit: PAGE, deadline }));
  return { pageMs: performance.now() - startedAt, cut };
}
