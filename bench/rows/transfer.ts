/** The public "transfer" workload over WebSocket and HTTP, beside a bare echo and a bare SQLite handler. */
import assert from "node:assert/strict";
import { type BenchContext, transferFunctions } from "../context.ts";
import type { ClosedLoopResult } from "../load/closed_loop.ts";
import { processorTimeUs, processTree, writerOf } from "../../tests/support/processes/process_tree.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const CLIENTS = 64;
const BALANCE = 1e9;
const SEED_COUNT = 4000;
const SUM_COUNT = 25_000;

/** Fills the accounts from 0 to `accounts - 1`. */
export async function seedAccounts(server: ServerProcess, accounts: number): Promise<void> {
  for (let start = 0; start < accounts; start += SEED_COUNT) {
    const count = Math.min(SEED_COUNT, accounts - start);
    await server.call("mutation", "seed:seed_range", { start, count, initial: BALANCE });
  }
}

async function assertConserved(server: ServerProcess, accounts: number): Promise<void> {
  let counted = 0;
  let balance = 0;
  for (let start = 0; start < accounts; start += SUM_COUNT) {
    const portion = await server.call("query", "accounts:sum_range", { start, count: SUM_COUNT }) as {
      accounts: number;
      balance: number;
    };
    counted += portion.accounts;
    balance += portion.balance;
  }
  assert.deepEqual(
    { counted, balance },
    { counted: accounts, balance: accounts * BALANCE },
    "money was made or lost",
  );
}

function perSecond(results: readonly ClosedLoopResult[]): number {
  return median(results.map((result) => result.perSecond));
}

/** Processor time of the server's processes, microseconds. */
interface Effort {
  readonly main: number;
  readonly writer: number;
  readonly others: number;
}

async function effortOf({ pid }: ServerProcess): Promise<Effort> {
  const writer = await writerOf(pid);
  const others = (await processTree(pid)).filter((other) => other !== pid && other !== writer);
  return {
    main: await processorTimeUs(pid),
    writer: await processorTimeUs(writer),
    others: (await Promise.all(others.map(processorTimeUs))).reduce((sum, time) => sum + time, 0),
  };
}

export async function transferRows(context: BenchContext): Promise<Row[]> {
  const accounts = 100_000;
  const rounds = context.full ? 7 : 3;
  const durationMs = context.full ? 5000 : 1000;
  const server = await context.server(transferFunctions);
  const echoPort = await context.control("websocket_server");
  const sqlitePort = await context.control("sqlite_server", [String(accounts)]);
  const load = context.load();
  await seedAccounts(server, accounts);

  const uniform = { accounts, alpha: 0, seed: WORKLOAD_SEED };
  const zipf = { accounts, alpha: 1.5, seed: WORKLOAD_SEED };
  const webSocket = { port: server.port, path: "/api/sync", clients: CLIENTS, durationMs };
  const echo = { port: echoPort, path: "/echo", clients: CLIENTS, durationMs, workload: uniform };
  const http = { clients: CLIENTS, inFlight: 1, durationMs, workload: uniform };
  const alone = { inFlight: 40, eachAlone: true };
  const together = { inFlight: 40, eachAlone: false };
  const single = { inFlight: 1, eachAlone: true };
  const phases = {
    webSocket40: () => load.run("webSocketLoop", { ...webSocket, ...alone, workload: uniform }),
    echo40: () => load.run("webSocketLoop", { ...echo, ...alone }),
    packed40: () => load.run("webSocketLoop", { ...webSocket, ...together, workload: uniform }),
    packedEcho40: () => load.run("webSocketLoop", { ...echo, ...together }),
    zipf40: () => load.run("webSocketLoop", { ...webSocket, ...alone, workload: zipf }),
    webSocket1: () => load.run("webSocketLoop", { ...webSocket, ...single, workload: uniform }),
    echo1: () => load.run("webSocketLoop", { ...echo, ...single }),
    http: () => load.run("httpLoop", { ...http, port: server.port }),
    sqlite: () => load.run("httpLoop", { ...http, port: sqlitePort }),
  };
  type Phase = keyof typeof phases;
  const names = Object.keys(phases) as Phase[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Phase,
    ClosedLoopResult[]
  >;
  const effort: Effort[] = [];
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const before = await effortOf(server);
      const result = await phases[name]();
      const after = await effortOf(server);
      assert.equal(result.failed, 0, `${name}: ${result.failure}`);
      // The first round warms up and does not count.
      if (round < 0) continue;
      results[name].push(result);
      if (name !== "webSocket40") continue;
      effort.push({
        main: (after.main - before.main) / result.answered,
        writer: (after.writer - before.writer) / result.answered,
        others: (after.others - before.others) / result.answered,
      });
    }
  }
  await assertConserved(server, accounts);

  const rate = (name: Phase) => perSecond(results[name]);
  const row = (name: string, measured: Phase, control: Phase, target: Row["target"]): Row => ({
    name,
    measured: `${rate(measured).toFixed(0)}/s`,
    control: `${rate(control).toFixed(0)}/s ${control}`,
    ratio: rate(measured) / rate(control),
    target,
    details: { measured: results[measured], control: results[control] },
  });
  const main = median(effort.map((each) => each.main));
  const writer = median(effort.map((each) => each.writer));
  return [
    row("transfer, WebSocket, 64 clients x 40", "webSocket40", "echo40", { atLeast: 0.08 }),
    row("the same from clients that write many messages at once", "packed40", "packedEcho40", {
      atLeast: 0.08,
    }),
    row("transfer, WebSocket, 64 clients x 1", "webSocket1", "echo1", null),
    row("transfer, HTTP, 64 clients", "http", "sqlite", { atLeast: 2 }),
    row("transfer, Zipf 1.5 beside uniform", "zipf40", "webSocket40", { atLeast: 0.9 }),
    {
      name: "transfer, WebSocket x 40: processor time each, us",
      measured: `main ${main.toFixed(1)} + writer ${writer.toFixed(1)} us`,
      control: "",
      ratio: main + writer,
      target: null,
      details: { effort },
    },
  ];
}
