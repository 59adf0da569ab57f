/** Cost of replication: the same transfers on a server that ships to a folder and on one that does not. */
import { type BenchContext, transferFunctions } from "../context.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { alternate } from "../support/rounds.ts";
import { seedAccounts } from "../support/seed.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const ACCOUNTS = 20_000;

export async function replicationRows(outer: BenchContext): Promise<Row[]> {
  await using context = outer.inner();
  const off = await context.server(transferFunctions);
  const on = await context.server(transferFunctions, { flags: ["--replicate-to", context.folder()] });
  for (const server of [off, on]) await seedAccounts(server, ACCOUNTS);
  const load = context.load();
  const durationMs = context.full ? 5_000 : 1_500;
  const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
  const compareTransfers = (options: { readonly clients: number; readonly inFlight: number }) => {
    const work = (port: number) => () =>
      load.run("webSocketLoop", { port, durationMs, workload, ...options });
    return alternate(context.full ? 9 : 4, { off: work(off.port), on: work(on.port) });
  };
  const many = await compareTransfers({ clients: 64, inFlight: 40 });
  const single = await compareTransfers({ clients: 1, inFlight: 1 });
  const rate = (side: "off" | "on") => median(many[side].map(({ perSecond }) => perSecond));
  const p50 = (side: "off" | "on") => median(single[side].map(({ p50Ms }) => p50Ms));
  return [
    {
      name: "transfer, WebSocket, 64 clients x 40, replicated to a folder",
      measured: `${rate("on").toFixed(0)}/s`,
      control: `${rate("off").toFixed(0)}/s not replicated`,
      ratio: rate("on") / rate("off"),
      target: { atLeast: 0.9 },
      details: many,
    },
    {
      name: "single transfer, replicated: additional ms",
      measured: `${p50("on").toFixed(3)} ms`,
      control: `${p50("off").toFixed(3)} ms not replicated`,
      ratio: p50("on") - p50("off"),
      target: { atMost: 0.05 },
      details: single,
    },
  ];
}
