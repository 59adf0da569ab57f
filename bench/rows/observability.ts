/** Cost of observing a server: readers of the log's stream, run statistics, and pages of the log. */
import { type BenchContext, transferFunctions } from "../context.ts";
import { signUpAdministrator } from "../support/administrator.ts";
import { costOf } from "../support/cost.ts";
import { alternate, type Sample } from "../support/rounds.ts";
import { seedAccounts } from "../support/seed.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { median } from "../support/statistics.ts";
import { RunStats } from "../../mod/ops/stats/run_stats.ts";
import type { PacedCallsResult } from "../load/paced_calls.ts";
import type { Row } from "../table.ts";
import { logPageRow } from "./log_pages.ts";

const ACCOUNTS = 5_000;
const READERS = 200;
const CALLS_PER_SECOND = 5_000;
const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };

export async function observabilityRows(context: BenchContext): Promise<Row[]> {
  return [statsRow(), logPageRow(context), ...await logReaderRows(context)];
}

async function logReaderRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(transferFunctions);
  const { pid, port } = server;
  const token = await signUpAdministrator(server);
  await seedAccounts(server, ACCOUNTS);
  const load = context.load();
  const readers = context.load();
  const durationMs = context.full ? 2_000 : 1_000;
  const write = (perSecond: number) =>
    load.run("pacedCalls", { port, perSecond, connections: 64, durationMs, workload });
  // At most half of the maximum rate of this machine, because latencies grow without limit beyond it.
  const perSecond = Math.min(CALLS_PER_SECOND, (await write(4 * CALLS_PER_SECOND)).perSecond / 2);
  const measure = () => costOf(pid, { work: () => write(perSecond), operations: ({ answered }) => answered });
  const rows: Row[] = [];
  for (const ownFilters of [false, true]) {
    const samples = await alternate<"without" | "with", Sample<PacedCallsResult>>(context.full ? 15 : 5, {
      without: measure,
      with: async () => {
        await readers.run("openLogReaders", { port, readers: READERS, token, ownFilters });
        const sample = await measure();
        await readers.run("closeLogReaders", {});
        return sample;
      },
    });
    const p99s = (side: keyof typeof samples) => samples[side].map(({ result }) => result.p99Ms);
    const processorUs = (side: keyof typeof samples) =>
      median(samples[side].map(({ cost }) => cost.processorUs));
    const rate = median([...samples.without, ...samples.with].map(({ result }) => result.perSecond));
    const filters = ownFilters ? "each with a different filter" : "all with the same filter";
    const without = p99s("without");
    rows.push({
      name: `p99 of mutations under ${READERS} readers of the log's stream, ${filters}`,
      measured: `${median(p99s("with")).toFixed(1)} ms, ${
        processorUs("with").toFixed(0)
      } us of processor each`,
      control: `${median(without).toFixed(1)} ms, ${processorUs("without").toFixed(0)} us without, at ${
        rate.toFixed(0)
      }/s`,
      ratio: median(p99s("with").map((ms, round) => ms / (without[round] ?? NaN))),
      target: { atMost: 1.2 },
      details: samples,
    });
  }
  return rows;
}

const FUNCTIONS = 500;
const TABLES = 1_000;
const MINUTE_MS = 60_000;

/** In this process: statistics of the maximum number of functions, with runs in each minute of a day, and of many tables. */
function statsRow(): Row {
  let now = Date.UTC(2030, 0, 1);
  const runs = new RunStats({ now: () => now });
  const identity = { principal: null, userId: null, adminId: null, sessionId: null };
  const outcome = { ok: true, value: "null", logLines: [] } as const;
  const use = { documentsRead: 1, indexRowsRead: 1, documentsWritten: 1, indexRowsWritten: 1 };
  for (let minute = 0; minute < 24 * 60; minute++) {
    for (let fn = 0; fn < FUNCTIONS; fn++) {
      const call = { udfPath: `module:function${fn}`, identity };
      runs.runEnded("mutation", {
        ...{ call, outcome, use, ms: 2, request: 1, ts: 1, version: null, queuedMs: 0 },
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
  const serializeMs = () => {
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
  const repeated: number[] = [];
  for (let round = 0; round < 9; round++) {
    // A new minute makes the cached sums outdated.
    now += MINUTE_MS;
    runs.advance();
    first.push(serializeMs());
    repeated.push(serializeMs());
  }
  return {
    name: `stats of ${FUNCTIONS} functions and ${TABLES} tables, computed and serialized: ms`,
    measured: `${median(first).toFixed(1)} ms in a new minute, ${median(repeated).toFixed(1)} ms within it`,
    control: "20 ms",
    ratio: median(first) / 20,
    target: { atMost: 1 },
    details: { first, repeated },
  };
}
