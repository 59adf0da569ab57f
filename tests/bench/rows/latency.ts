/**
 * One client, one mutation at a time on an idle server, beside the same two-row update straight on SQLite, and beside a
 * bare pair of processes through which a WebSocket message reaches SQLite.
 */
import { type BenchContext, transferFunctions } from "../context.ts";
import { RawHttp } from "../support/raw_http.ts";
import { WORKLOAD_SEED } from "../support/random.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";
import { seedAccounts } from "./transfer.ts";

export async function latencyRows(context: BenchContext): Promise<Row[]> {
  const accounts = 10_000;
  // Other users of the machine come and go within seconds: the median is over longer than that.
  const rounds = context.full ? 40 : 20;
  const countMeasured = 200;
  const server = await context.server(transferFunctions);
  const sqlitePort = await context.control("sqlite_server", [String(accounts)]);
  const pairPort = await context.control("two_process_server", [String(accounts)]);
  const load = context.load();
  await seedAccounts(server, accounts);
  using control = await RawHttp.connect(sqlitePort);

  const mutations: number[][] = [];
  const pairs: number[][] = [];
  const commits: number[][] = [];
  for (let round = -1; round < rounds; round++) {
    // The first round makes the code warm and does not count.
    const count = round < 0 ? 2000 : countMeasured;
    const workload = { accounts, alpha: 0, seed: WORKLOAD_SEED + round };
    const mutated = await load.run("oneAtATime", { port: server.port, path: "/api/sync", count, workload });
    const paired = await load.run("oneAtATime", { port: pairPort, path: "/", count, workload });
    const committed: number[] = JSON.parse((await control.post("/commits", JSON.stringify({ count }))).body);
    if (round < 0) continue;
    mutations.push(mutated);
    pairs.push(paired);
    commits.push(committed);
  }
  const p50 = (series: number[][]) => median(series.map((values) => median(values)));
  const details = {
    mutationP50Ms: p50(mutations),
    pairP50Ms: p50(pairs),
    mutationP99Ms: percentile(mutations.flat(), 0.99),
    commitP50Ms: p50(commits),
    commitP99Ms: percentile(commits.flat(), 0.99),
  };
  const shared = {
    measured: `p50 ${details.mutationP50Ms.toFixed(3)} ms`,
    control: `p50 ${details.commitP50Ms.toFixed(3)} ms bare commit`,
    details,
  };
  return [
    { name: "one mutation, idle: ms", ...shared, ratio: details.mutationP50Ms, target: { atMost: 1 } },
    {
      name: "one mutation, idle: ms above the bare commit",
      ...shared,
      ratio: details.mutationP50Ms - details.commitP50Ms,
      target: { atMost: 0.5 },
    },
    {
      name: "the same for a bare pair of processes: ms above the bare commit",
      ...shared,
      measured: `p50 ${details.pairP50Ms.toFixed(3)} ms`,
      ratio: details.pairP50Ms - details.commitP50Ms,
      target: null,
    },
  ];
}
