/** Transfers and point reads of many clients and of a single one, beside a bare server on SQLite. */
import { type BenchContext, type Control, transferFunctions } from "../../context.ts";
import type { ClosedLoopResult } from "../../load/closed_loop.ts";
import { compare, type Comparison, comparisonRow, processorTimeRow } from "../../support/rounds.ts";
import { seedAccounts } from "../../support/seed.ts";
import { percentile } from "../../support/statistics.ts";
import { WORKLOAD_SEED } from "../../../tests/support/processes/random.ts";
import type { Row } from "../../table.ts";

const ACCOUNTS = 100_000;
export const CLIENTS = 64;
/** All results are in the cache. */
const UNCHANGED_ACCOUNTS = 100;

export const uniform = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
const zipf = { ...uniform, alpha: 1.5 };

type Work = (port: number) => Promise<ClosedLoopResult>;

/** Starts a server with accounts, its control, and their load. */
async function start(context: BenchContext) {
  const server = await context.server(transferFunctions);
  const control = await context.control("sqlite_server", [ACCOUNTS]);
  await seedAccounts(server, ACCOUNTS);
  const load = context.load();
  const options = { clients: CLIENTS, durationMs: context.full ? 2_000 : 1_000 };
  const http = (calls: "transfers" | "reads", workload = uniform): Work => (port) =>
    load.run("httpLoop", { ...options, port, workload, calls });
  const sockets = (inFlight: number, workload = uniform): Work => (port) =>
    load.run("webSocketLoop", { ...options, port, inFlight, workload });
  const compareLoad = (work: Work) =>
    compare(context, {
      ours: { pid: server.pid, work: () => work(server.port) },
      control: { pid: control.pid, work: () => work(control.port) },
      operations: ({ answered }) => answered,
    });
  return { server, control, load, http, sockets, compareLoad };
}

export async function transferRows(context: BenchContext): Promise<Row[]> {
  const { http, sockets, compareLoad } = await start(context);
  const loads: readonly (readonly [name: string, work: Work, target: number])[] = [
    ["transfers, HTTP, 64 x 1", http("transfers"), 1.3],
    ["transfers, sockets, 64 x 1", sockets(1), 1.3],
    ["transfers, sockets, 64 x 40", sockets(40), 2],
    ["transfers, HTTP, 64 x 1, Zipf 1.5", http("transfers", zipf), 1.5],
    ["transfers, sockets, 64 x 1, Zipf 1.5", sockets(1, zipf), 1.5],
    ["transfers, sockets, 64 x 40, Zipf 1.5", sockets(40, zipf), 3],
  ];
  const rows: Row[] = [];
  for (const [name, work, target] of loads) rows.push(rateRow(name, await compareLoad(work), target));
  return rows;
}

export async function readRows(context: BenchContext): Promise<Row[]> {
  const { http, compareLoad } = await start(context);
  const unchanged = { ...uniform, accounts: UNCHANGED_ACCOUNTS };
  let { seed } = uniform;
  // Each round reads other accounts, so that their results are not cached.
  const uncached: Work = (port) => http("reads", { ...uniform, seed: ++seed })(port);
  return [
    rateRow("point reads, HTTP, 64 x 1", await compareLoad(uncached), 0.45),
    processorTimeRow(
      `point reads of ${UNCHANGED_ACCOUNTS} unchanged documents: processor time`,
      await compareLoad(http("reads", unchanged)),
      { atMost: 0.045 },
    ),
  ];
}

/** Processor time of transfers if server and clients share all processors. */
export async function sharedRows(context: BenchContext): Promise<Row[]> {
  const { http, sockets, compareLoad } = await start(context.unpinned());
  return [
    processorTimeRow("transfer, HTTP, all processors: processor time", await compareLoad(http("transfers")), {
      atMost: 0.09,
    }),
    processorTimeRow(
      "transfer, sockets x 40, all processors: processor time",
      await compareLoad(sockets(40)),
      {
        atMost: 0.055,
      },
    ),
  ];
}

/** One client with one mutation at a time, without pauses and every 20 ms. */
export async function singleRows(context: BenchContext): Promise<Row[]> {
  const { server, control, load } = await start(context);
  const compareCalls = (options: { readonly count: number; readonly pauseMs?: number }) => {
    const side = ({ pid, port }: Control) => ({
      pid,
      work: () => load.run("sequentialCalls", { ...options, port, workload: uniform }),
    });
    return compare(context, {
      ours: side(server),
      control: side(control),
      operations: ({ length }) => length,
    });
  };
  const figure = (p: number, target: Row["target"]) => ({
    ...{ value: (times: number[]) => percentile(times, p), unit: "ms", digits: 2 },
    ...{ targetOf: "ours", target } as const,
  });
  const continuous = await compareCalls({ count: context.full ? 2_000 : 500 });
  const paced = await compareCalls({ count: context.full ? 200 : 75, pauseMs: 20 });
  return [
    comparisonRow("one caller, back to back: p50", continuous, figure(0.5, { atMost: 0.5 })),
    processorTimeRow("one caller, back to back: processor time", continuous, { atMost: 0.3 }),
    comparisonRow("one mutation every 20 ms: p50", paced, figure(0.5, { atMost: 1.5 })),
    comparisonRow("one mutation every 20 ms: p99", paced, figure(0.99, { atMost: 6 })),
    processorTimeRow("one mutation every 20 ms: processor time", paced, { atMost: 0.9 }),
  ];
}

export function rateRow(name: string, comparison: Comparison<ClosedLoopResult>, target: number): Row {
  return comparisonRow(name, comparison, {
    ...{ value: ({ perSecond }) => perSecond, unit: "/s", digits: 0, target: { atLeast: target } },
  });
}
