/** The public "transfer" workload over WebSocket and HTTP, beside a bare echo and a bare SQLite handler. */
import assert from "node:assert/strict";
import { type BenchContext, transferFunctions } from "../context.ts";
import type { ClosedLoopResult } from "../load/closed_loop.ts";
import { processorTimeUs, writerOf } from "../../tests/support/processes/process_tree.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { ACCOUNT_BALANCE, seedAccounts } from "../support/seed.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const ACCOUNTS = 100_000;
const CLIENTS = 64;
const SUM_COUNT = 25_000;

/** Checks that no transfer has changed the sum of all balances. */
async function assertConserved(server: ServerProcess): Promise<void> {
  let accounts = 0;
  let balance = 0;
  for (let start = 0; start < ACCOUNTS; start += SUM_COUNT) {
    const range = await server.call("query", "accounts:sum_range", { start, count: SUM_COUNT }) as {
      accounts: number;
      balance: number;
    };
    accounts += range.accounts;
    balance += range.balance;
  }
  assert.deepEqual({ accounts, balance }, { accounts: ACCOUNTS, balance: ACCOUNTS * ACCOUNT_BALANCE });
}

interface ProcessorTimes {
  readonly mainUs: number;
  readonly writerUs: number;
}

async function processorTimesOf({ pid }: ServerProcess): Promise<ProcessorTimes> {
  return { mainUs: await processorTimeUs(pid), writerUs: await processorTimeUs(await writerOf(pid)) };
}

export async function transferRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 7 : 3;
  const durationMs = context.full ? 5000 : 1000;
  const server = await context.server(transferFunctions);
  const echoServer = await context.control("websocket_server");
  const sqliteServer = await context.control("sqlite_server", [ACCOUNTS]);
  const load = context.load();
  await seedAccounts(server, ACCOUNTS);

  const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
  const options = { clients: CLIENTS, durationMs, workload };
  const ours = { ...options, port: server.port };
  const echo = { ...options, port: echoServer.port, path: "/echo" };
  const loads = {
    webSocket40: () => load.run("webSocketLoop", { ...ours, inFlight: 40 }),
    echo40: () => load.run("webSocketLoop", { ...echo, inFlight: 40 }),
    batched40: () => load.run("webSocketLoop", { ...ours, inFlight: 40, batched: true }),
    batchedEcho40: () => load.run("webSocketLoop", { ...echo, inFlight: 40, batched: true }),
    zipf40: () => load.run("webSocketLoop", { ...ours, inFlight: 40, workload: { ...workload, alpha: 1.5 } }),
    webSocket1: () => load.run("webSocketLoop", { ...ours, inFlight: 1 }),
    echo1: () => load.run("webSocketLoop", { ...echo, inFlight: 1 }),
    http: () => load.run("httpLoop", ours),
    sqlite: () => load.run("httpLoop", { ...options, port: sqliteServer.port }),
  };
  type Load = keyof typeof loads;
  const names = Object.keys(loads) as Load[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Load,
    ClosedLoopResult[]
  >;
  const processorTimes: ProcessorTimes[] = [];
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const before = await processorTimesOf(server);
      const result = await loads[name]();
      const after = await processorTimesOf(server);
      // The first round warms up.
      if (round === 0) continue;
      results[name].push(result);
      if (name !== "webSocket40") continue;
      processorTimes.push({
        mainUs: (after.mainUs - before.mainUs) / result.answered,
        writerUs: (after.writerUs - before.writerUs) / result.answered,
      });
    }
  }
  await assertConserved(server);

  const rate = (name: Load) => median(results[name].map(({ perSecond }) => perSecond));
  const row = (
    name: string,
    { measured, control, target = null }: {
      readonly measured: Load;
      readonly control: Load;
      readonly target?: Row["target"];
    },
  ): Row => ({
    name,
    measured: `${rate(measured).toFixed(0)}/s`,
    control: `${rate(control).toFixed(0)}/s ${control}`,
    ratio: rate(measured) / rate(control),
    target,
    details: { measured: results[measured], control: results[control] },
  });
  const mainUs = median(processorTimes.map(({ mainUs }) => mainUs));
  const writerUs = median(processorTimes.map(({ writerUs }) => writerUs));
  return [
    row("transfer, WebSocket, 64 clients x 40", {
      ...{ measured: "webSocket40", control: "echo40", target: { atLeast: 0.08 } },
    }),
    row("transfer, WebSocket, batched writes by the client", {
      ...{ measured: "batched40", control: "batchedEcho40", target: { atLeast: 0.08 } },
    }),
    row("transfer, WebSocket, 64 clients x 1", { measured: "webSocket1", control: "echo1" }),
    row("transfer, HTTP, 64 clients", { measured: "http", control: "sqlite", target: { atLeast: 2 } }),
    row("transfer, Zipf 1.5, beside uniform", {
      ...{ measured: "zipf40", control: "webSocket40", target: { atLeast: 0.9 } },
    }),
    {
      name: "transfer, WebSocket x 40: processor time each, us",
      measured: `main ${mainUs.toFixed(1)} + writer ${writerUs.toFixed(1)} us`,
      control: "",
      ratio: mainUs + writerUs,
      target: null,
      details: { processorTimes },
    },
  ];
}
