/** Costs of observing a running server: readers of the log's stream, and the stats. */
import { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { Administrator } from "../support/administrator.ts";
import { costOf } from "../support/cost.ts";
import { type BenchContext, transferFunctions } from "../context.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { median } from "../support/statistics.ts";
import { RunStats } from "../../mod/ops/stats/run_stats.ts";
import type { Row } from "../table.ts";
import { logPageRow } from "./log_pages.ts";
import { seedAccounts } from "./transfer.ts";

const ACCOUNTS = 5_000;
const READERS = 200;
/** Each second. */
const CALLS = 5_000;
const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };

export async function observingRows(context: BenchContext): Promise<Row[]> {
  return [stats(), logPageRow(context), ...await streams(context)];
}

async function streams(outer: BenchContext): Promise<Row[]> {
  await using context = outer.inner();
  const rounds = context.full ? 15 : 5;
  const durationMs = context.full ? 2_000 : 1_000;
  const administrator = new Administrator();
  await using server = await ServerProcess.start({
    ...{ dataDir: context.folder(), functions: transferFunctions },
    onLine: administrator.onLine,
  });
  await seedAccounts(server, ACCOUNTS);
  const { port } = server;
  const token = await administrator.signUp(port);
  const load = context.load();
  const readers = context.load();
  const paced = (perSecond: number) =>
    load.run("pacedTimes", { port, perSecond, connections: 64, durationMs, workload });
  // The rate of the target, or half of what server and clients manage on this machine: beyond it everything waits.
  const perSecond = Math.min(CALLS, (await paced(4 * CALLS)).perSecond / 2);
  const rows: Row[] = [];
  for (const ownFilters of [false, true]) {
    const p99 = { without: [] as number[], with: [] as number[] };
    const cost = { without: [] as number[], with: [] as number[] };
    const rates: number[] = [];
    for (let round = -1; round < rounds; round++) {
      // Each goes first as often as the other.
      for (const which of round % 2 === 0 ? ["without", "with"] as const : ["with", "without"] as const) {
        if (which === "with") {
          await readers.run("openLogReaders", { port, readers: READERS, token, ownFilters });
        }
        const { result, cost: { processorUs } } = await costOf(server.pid, {
          work: () => paced(perSecond),
          count: (result) => result.answered,
        });
        if (which === "with") await readers.run("closeLogReaders", {});
        // The first round warms up and does not count.
        if (round < 0) continue;
        p99[which].push(result.p99Ms);
        cost[which].push(processorUs);
        rates.push(result.perSecond);
      }
    }
    const ratios = p99.with.map((ms, round) => ms / (p99.without[round] ?? NaN));
    rows.push({
      name: `p99 of mutations under ${READERS} readers of the log's stream, ${
        ownFilters ? "each with a filter of its own" : "all with the same filter"
      }`,
      measured: `${median(p99.with).toFixed(1)} ms, ${median(cost.with).toFixed(0)} us of processor each`,
      control: `${median(p99.without).toFixed(1)} ms, ${median(cost.without).toFixed(0)} us without, at ${
        median(rates).toFixed(0)
      }/s`,
      ratio: median(ratios),
      target: { atMost: 1.2 },
      details: { p99, cost, rates },
    });
  }
  return rows;
}

const FUNCTIONS = 500;
const TABLES = 1_000;
const MINUTE_MS = 60_000;

/** In this process: the maximum number of functions, each with runs in every minute of a day, and many tables. */
function stats(): Row {
  let now = Date.UTC(2030, 0, 1);
  const runs = new RunStats({ now: () => now });
  const identity = { principal: null, userId: null, adminId: null, sessionId: null };
  const outcome = { ok: true, value: "null", logLines: [] } as const;
  const use = { documentsRead: 1, indexRowsRead: 1, documentsWritten: 1, indexRowsWritten: 1 };
  for (let minute = 0; minute < 24 * 60; minute++) {
    for (let fn = 0; fn < FUNCTIONS; fn++) {
      const call = { udfPath: `module:function${fn}`, identity };
      runs.runEnded("mutation", {
        ...{ call, outcome, use, ms: 2, request: 1, ts: 1, queuedMs: 0 },
        durationMs: (fn * 31 + minute) % 97,
      });
    }
    now += MINUTE_MS;
    runs.advance();
  }
  const indexes = Array.from(
    { length: 3 },
    (_, index) => ({ name: `by_${index}`, kind: "fields", bytes: 4_096 }),
  );
  const tables = Array.from({ length: TABLES }, (_, table) => ({
    ...{ name: `table_${table}`, documents: table, bytes: 8_192, indexes },
  }));
  const look = () => {
    const startedAt = performance.now();
    JSON.stringify({
      functions: runs.functions(),
      commitMs: runs.commitMs(),
      history: runs.history(),
      tables,
    });
    return performance.now() - startedAt;
  };
  const first: number[] = [];
  const again: number[] = [];
  for (let round = 0; round < 9; round++) {
    // Another minute has begun: what was added up is older than it.
    now += MINUTE_MS;
    runs.advance();
    first.push(look());
    again.push(look());
  }
  return {
    name: `stats of ${FUNCTIONS} functions and ${TABLES} tables, made and written as JSON: ms`,
    measured: `${median(first).toFixed(1)} ms in a new minute, ${median(again).toFixed(1)} ms within it`,
    control: "20 ms",
    ratio: median(first) / 20,
    target: { atMost: 1 },
    details: { first, again },
  };
}
