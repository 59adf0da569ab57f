/** Costs of replication: the same transfers on two servers of one run. One of them ships to a folder. */
import assert from "node:assert/strict";
import { type BenchContext, transferFunctions } from "../context.ts";
import type { ClosedLoopResult } from "../load/closed_loop.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";
import { seedAccounts } from "./transfer.ts";

const ACCOUNTS = 20_000;

export async function replicationRows(outer: BenchContext): Promise<Row[]> {
  await using context = outer.inner();
  const rounds = context.full ? 9 : 4;
  const durationMs = context.full ? 5_000 : 1_500;
  const off = await context.server(transferFunctions);
  const on = await context.serverWith(["--replicate-to", context.folder()], transferFunctions);
  const load = context.load();
  const servers = { off, on };
  for (const server of Object.values(servers)) await seedAccounts(server, ACCOUNTS);
  const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
  const results = { full: { off: [], on: [] }, lone: { off: [], on: [] } } as Record<
    "full" | "lone",
    Record<"off" | "on", ClosedLoopResult[]>
  >;
  for (let round = -1; round < rounds; round++) {
    for (const kind of ["full", "lone"] as const) {
      // Each goes first as often as the other.
      const order = round % 2 === 0 ? ["off", "on"] as const : ["on", "off"] as const;
      for (const which of order) {
        const { port } = servers[which];
        const amount = kind === "full"
          ? { clients: 64, inFlight: 40, eachAlone: true }
          : { clients: 1, inFlight: 1, eachAlone: true };
        const result = await load.run("webSocketLoop", {
          port,
          path: "/api/sync",
          durationMs,
          workload,
          ...amount,
        });
        assert.equal(result.failed, 0, `${kind} ${which}: ${result.failure}`);
        // The first round warms up and does not count.
        if (round >= 0) results[kind][which].push(result);
      }
    }
  }
  const rate = (which: "off" | "on") => median(results.full[which].map(({ perSecond }) => perSecond));
  const lone = (which: "off" | "on") => median(results.lone[which].map(({ p50Ms }) => p50Ms));
  return [
    {
      name: "transfer, WebSocket, 64 clients x 40, replicated to a folder",
      measured: `${rate("on").toFixed(0)}/s`,
      control: `${rate("off").toFixed(0)}/s not replicated`,
      ratio: rate("on") / rate("off"),
      target: { atLeast: 0.9 },
      details: results.full,
    },
    {
      name: "lone transfer, replicated: ms more than not replicated",
      measured: `${lone("on").toFixed(3)} ms`,
      control: `${lone("off").toFixed(3)} ms not replicated`,
      ratio: lone("on") - lone("off"),
      target: { atMost: 0.05 },
      details: results.lone,
    },
  ];
}
