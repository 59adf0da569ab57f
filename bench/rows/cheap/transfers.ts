/** Transfers and point reads of many clients, and those of a single one, beside a bare server on SQLite that commits each. */
import assert from "node:assert/strict";
import { type BenchContext, transferFunctions } from "../../context.ts";
import type { ClosedLoopResult } from "../../load/closed_loop.ts";
import { WORKLOAD_SEED } from "../../../tests/support/processes/random.ts";
import { percentile } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { seedAccounts } from "../transfer.ts";
import { inRoundRobin, processorRow, rowOf } from "./turns.ts";

export const ACCOUNTS = 100_000;
const CLIENTS = 64;
/** Few enough for the cache of results. */
const UNCHANGED_ACCOUNTS = 100;

export const uniform = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
const zipf = { accounts: ACCOUNTS, alpha: 1.5, seed: WORKLOAD_SEED };

type Work = (port: number) => Promise<ClosedLoopResult>;

/** A server with accounts, its control, and what loads them. */
async function served(context: BenchContext) {
  const server = await context.server(transferFunctions);
  const control = await context.controlProcess("sqlite_server", [String(ACCOUNTS)]);
  await seedAccounts(server, ACCOUNTS);
  const load = context.load();
  const durationMs = context.full ? 2_000 : 1_000;
  const http = (calls: "transfers" | "reads", workload = uniform): Work => async (port) =>
    whole(await load.run("httpLoop", { port, clients: CLIENTS, inFlight: 1, durationMs, workload, calls }));
  const socket = (inFlight: number, workload = uniform): Work => async (port) =>
    whole(
      await load.run("webSocketLoop", {
        ...{ port, path: "/api/sync", clients: CLIENTS, inFlight, durationMs, workload },
        eachAlone: true,
      }),
    );
  const turns = (work: Work) =>
    inRoundRobin(context, {
      ours: { pid: server.pid, work: () => work(server.port) },
      control: { pid: control.pid, work: () => work(control.port) },
      count: ({ answered }) => answered,
    });
  return { server, control, load, http, socket, turns };
}

function whole(result: ClosedLoopResult): ClosedLoopResult {
  assert.equal(result.failed, 0, result.failure ?? "");
  return result;
}

export async function transferRows(context: BenchContext): Promise<Row[]> {
  const { http, socket, turns } = await served(context);
  const works: readonly (readonly [name: string, work: Work, target: number])[] = [
    ["transfers, HTTP, 64 x 1", http("transfers"), 1.3],
    ["transfers, sockets, 64 x 1", socket(1), 1.3],
    ["transfers, sockets, 64 x 40", socket(40), 2],
    ["transfers, HTTP, 64 x 1, Zipf 1.5", http("transfers", zipf), 1.5],
    ["transfers, sockets, 64 x 1, Zipf 1.5", socket(1, zipf), 1.5],
    ["transfers, sockets, 64 x 40, Zipf 1.5", socket(40, zipf), 3],
  ];
  const rows: Row[] = [];
  for (const [name, work, target] of works) rows.push(rateRow(name, await turns(work), target));
  return rows;
}

export async function readRows(context: BenchContext): Promise<Row[]> {
  const { http, turns } = await served(context);
  const unchanged = { ...uniform, accounts: UNCHANGED_ACCOUNTS };
  let { seed } = uniform;
  // Other accounts in each round: the results of the same ones would be in the cache.
  const others: Work = (port) => http("reads", { ...uniform, seed: ++seed })(port);
  return [
    rateRow("point reads, HTTP, 64 x 1", await turns(others), 0.45),
    processorRow(
      `point reads of ${UNCHANGED_ACCOUNTS} unchanged documents: processor time`,
      await turns(http("reads", unchanged)),
      { atMost: 0.045 },
    ),
  ];
}

/** Processor time of a transfer where server and clients share all processors. */
export async function sharedRows(context: BenchContext): Promise<Row[]> {
  const { http, socket, turns } = await served(context.unpinned());
  return [
    processorRow("a transfer, HTTP, all processors free: processor time", await turns(http("transfers")), {
      atMost: 0.09,
    }),
    processorRow("a transfer, sockets x 40, all processors free: processor time", await turns(socket(40)), {
      atMost: 0.055,
    }),
  ];
}

/** One client with one mutation at a time, as fast as they are answered and every 20 ms. */
export async function singleRows(context: BenchContext): Promise<Row[]> {
  const { server, control, load } = await served(context);
  const turns = (options: { readonly count: number; readonly pauseMs?: number }) => {
    const work = ({ pid, port }: { readonly pid: number; readonly port: number }) => ({
      pid,
      work: () => load.run("oneAtATime", { ...options, port, path: "/api/sync", workload: uniform }),
    });
    return inRoundRobin(context, {
      ours: work(server),
      control: work(control),
      count: ({ length }) => length,
    });
  };
  const p50 = {
    value: (times: number[]) => percentile(times, 0.5),
    unit: "ms",
    digits: 2,
    of: "ours",
  } as const;
  const p99 = { ...p50, value: (times: number[]) => percentile(times, 0.99) };
  const alone = await turns({ count: context.full ? 2_000 : 500 });
  const paced = await turns({ count: context.full ? 200 : 75, pauseMs: 20 });
  return [
    rowOf("one caller, back to back: p50", alone, { ...p50, target: { atMost: 0.5 } }),
    processorRow("one caller, back to back: processor time", alone, { atMost: 0.3 }),
    rowOf("one mutation every 20 ms: p50", paced, { ...p50, target: { atMost: 1.5 } }),
    rowOf("one mutation every 20 ms: p99", paced, { ...p99, target: { atMost: 6 } }),
    processorRow("one mutation every 20 ms: processor time", paced, { atMost: 0.9 }),
  ];
}

export function rateRow(
  name: string,
  turns: Awaited<ReturnType<typeof inRoundRobin<ClosedLoopResult>>>,
  target: number,
): Row {
  return rowOf(name, turns, {
    value: ({ perSecond }) => perSecond,
    unit: "/s",
    digits: 0,
    target: { atLeast: target },
  });
}
