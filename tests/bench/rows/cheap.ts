/**
 * What operations take of the machine: processor time of all processes of the server, and their memory, beside a bare server
 * on SQLite that commits each operation by itself. With `--cores 1` both have one processor to themselves: what a small
 * machine serves.
 */
import assert from "node:assert/strict";
import { type BenchContext, type Control, pause, transferFunctions } from "../context.ts";
import type { ClosedLoopResult } from "../load/closed_loop.ts";
import { costOf, treeMemory } from "../support/cost.ts";
import { WORKLOAD_SEED } from "../support/random.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Cost, Row } from "../table.ts";
import { seedAccounts } from "./transfer.ts";

const ACCOUNTS = 100_000;
const CLIENTS = 64;
const SETTLE_MS = 5_000;

const uniform = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
const zipf = { accounts: ACCOUNTS, alpha: 1.5, seed: WORKLOAD_SEED };

/** A kind of load, on a port. */
type Load = (port: number) => Promise<ClosedLoopResult>;

interface Round {
  readonly ours: { readonly result: ClosedLoopResult; readonly cost: Cost };
  readonly control: { readonly result: ClosedLoopResult; readonly cost: Cost };
}

export async function cheapRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 5 : 3;
  const durationMs = context.full ? 4_000 : 1_500;
  const server = await context.server(transferFunctions);
  const control = await context.controlProcess("sqlite_server", [String(ACCOUNTS)]);
  const load = context.load();
  await pause(SETTLE_MS);
  const idle = { ours: await treeMemory(server.pid), control: await treeMemory(control.pid) };
  await seedAccounts(server, ACCOUNTS);

  const http = (reads: boolean, workload = uniform): Load => (port) =>
    load.run("httpLoop", { port, clients: CLIENTS, inFlight: 1, durationMs, workload, reads });
  const socket = (inFlight: number, workload = uniform): Load => (port) =>
    load.run("webSocketLoop", {
      ...{ port, path: "/api/sync", clients: CLIENTS, inFlight, durationMs, workload },
      eachAlone: true,
    });
  const loads: readonly (readonly [name: string, load: Load, target: number | null])[] = [
    ["transfers, HTTP, 64 x 1", http(false), 1.3],
    ["transfers, sockets, 64 x 1", socket(1), 1.3],
    ["transfers, sockets, 64 x 40", socket(40), 2],
    ["transfers, HTTP, 64 x 1, Zipf 1.5", http(false, zipf), 1.5],
    ["transfers, sockets, 64 x 1, Zipf 1.5", socket(1, zipf), 1.5],
    ["transfers, sockets, 64 x 40, Zipf 1.5", socket(40, zipf), 3],
    ["point reads, HTTP, 64 x 1", http(true), 0.6],
  ];
  const measured = loads.map((): Round[] => []);
  for (let round = -1; round < rounds; round++) {
    for (const [at, [name, run]] of loads.entries()) {
      const ours = await measure(server.pid, () => run(server.port));
      const bare = await measure(control.pid, () => run(control.port));
      for (const { result } of [ours, bare]) assert.equal(result.failed, 0, `${name}: ${result.failure}`);
      // The first round warms up.
      if (round >= 0) measured[at]?.push({ ours, control: bare });
    }
  }
  const rows = loads.map(([name, , target], at) => loadRow(name, { rounds: measured[at] ?? [], target }));
  const single = { workload: uniform, path: "/api/sync" };
  const alone = { ...single, count: context.full ? 5_000 : 1_000 };
  const paced = { ...single, count: context.full ? 500 : 100, pauseMs: 20 };
  const calls = (options: typeof alone | typeof paced) => async ({ pid, port }: Control) =>
    await costOf(pid, {
      work: () => load.run("oneAtATime", { ...options, port }),
      count: (times) => times.length,
    });
  return [
    ...rows,
    await callsRow("one caller, back to back: ms", { run: calls(alone), server, control }),
    await callsRow("one mutation every 20 ms: ms", { run: calls(paced), server, control }),
    {
      name: "memory, idle: MB",
      measured: megabytes(idle.ours),
      control: megabytes(idle.control),
      ratio: idle.ours / 1e6,
      target: { atMost: 110 },
      details: { idle },
    },
  ];
}

async function measure(
  pid: number,
  work: () => Promise<ClosedLoopResult>,
): Promise<{ readonly result: ClosedLoopResult; readonly cost: Cost }> {
  return await costOf(pid, { work, count: ({ answered }) => answered });
}

function loadRow(
  name: string,
  { rounds, target }: { readonly rounds: readonly Round[]; readonly target: number | null },
): Row {
  const rate = (side: keyof Round) => median(rounds.map((round) => round[side].result.perSecond));
  return {
    name,
    measured: `${rate("ours").toFixed(0)}/s`,
    control: `${rate("control").toFixed(0)}/s`,
    ratio: median(rounds.map(({ ours, control }) => ours.result.perSecond / control.result.perSecond)),
    target: target === null ? null : { atLeast: target },
    cost: { measured: costs(rounds, "ours"), control: costs(rounds, "control") },
    details: { rounds },
  };
}

function costs(rounds: readonly Round[], side: keyof Round): Cost {
  return {
    processorUs: median(rounds.map((round) => round[side].cost.processorUs)),
    memoryBytes: median(rounds.map((round) => round[side].cost.memoryBytes)),
  };
}

type Calls = (of: Control) => Promise<{ readonly result: number[]; readonly cost: Cost }>;

async function callsRow(
  name: string,
  { run, server, control }: { readonly run: Calls; readonly server: Control; readonly control: Control },
): Promise<Row> {
  const ours = await run(server);
  const bare = await run(control);
  const times = (durations: number[]) =>
    `p50 ${percentile(durations, 0.5).toFixed(2)}, p99 ${percentile(durations, 0.99).toFixed(1)} ms`;
  return {
    name,
    measured: times(ours.result),
    control: times(bare.result),
    ratio: percentile(ours.result, 0.5) / percentile(bare.result, 0.5),
    target: null,
    cost: { measured: ours.cost, control: bare.cost },
    details: { ours, bare },
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
