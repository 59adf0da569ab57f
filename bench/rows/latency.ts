/**
 * One client, one mutation at a time on an idle server, beside the same two-row update straight on SQLite, and beside a
 * bare pair of processes through which a WebSocket message reaches SQLite.
 *
 * These are times, not ratios, so they hold for a machine that runs nothing else. Rounds in which a processor was slowed
 * down by other programs are found with a fixed loop (support/processors.ts). The time above the bare commit is taken from
 * the other rounds; another row has all rounds.
 */
import { type BenchContext, transferFunctions } from "../context.ts";
import { Processors } from "../support/processors.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";
import { seedAccounts } from "./transfer.ts";

/** A round counts as undisturbed when the loop took at most this many times its best time, before and after each part. */
const SLOWDOWN_MAX = 1.2;
/** With fewer undisturbed rounds than this, all rounds count. */
const UNDISTURBED_MIN = 5;

interface Round {
  readonly mutations: readonly number[];
  readonly pairs: readonly number[];
  readonly commits: readonly number[];
  readonly slowdown: number;
}

export async function latencyRows(context: BenchContext): Promise<Row[]> {
  const accounts = 10_000;
  // Load of other users of the machine lasts seconds: rounds continue until enough of them were undisturbed.
  const [enough, roundsMax] = context.full ? [40, 160] : [20, 60];
  const count = 200;
  const server = await context.server(transferFunctions);
  const sqlitePort = await context.control("sqlite_server", [String(accounts)]);
  const pairPort = await context.control("two_process_server", [String(accounts)]);
  const load = context.load();
  await seedAccounts(server, accounts);
  using control = await RawHttp.connect(sqlitePort);
  using processors = new Processors();

  const runRound = async (seed: number, count: number): Promise<Round> => {
    const workload = { accounts, alpha: 0, seed };
    const slowdowns = [await processors.slowdown()];
    const mutations = await load.run("oneAtATime", { port: server.port, path: "/api/sync", count, workload });
    slowdowns.push(await processors.slowdown());
    const pairs = await load.run("oneAtATime", { port: pairPort, path: "/", count, workload });
    slowdowns.push(await processors.slowdown());
    const commits: number[] = JSON.parse((await control.post("/commits", JSON.stringify({ count }))).body);
    slowdowns.push(await processors.slowdown());
    return { mutations, pairs, commits, slowdown: Math.max(...slowdowns) };
  };

  // Makes the code warm, that of the loop too, and does not count.
  await runRound(WORKLOAD_SEED - 1, 2000);
  for (let warm = 0; warm < 50; warm++) await processors.slowdown();
  const all: Round[] = [];
  const isQuiet = ({ slowdown }: Round) => slowdown <= SLOWDOWN_MAX;
  while (all.length < roundsMax && all.filter(isQuiet).length < enough) {
    all.push(await runRound(WORKLOAD_SEED + all.length, count));
  }
  const quiet = all.filter(isQuiet);
  const counted = quiet.length < UNDISTURBED_MIN ? all : quiet;
  const ofAll = p50s(all);
  const ofCounted = p50s(counted);
  const details = {
    rounds: all.length,
    undisturbed: quiet.length,
    ofAll,
    ofUndisturbed: ofCounted,
    mutationP99Ms: percentile(all.flatMap(({ mutations }) => mutations), 0.99),
    commitP99Ms: percentile(all.flatMap(({ commits }) => commits), 0.99),
  };
  const times = ({ mutation, commit }: P50s) => ({
    measured: `p50 ${mutation.toFixed(3)} ms`,
    control: `p50 ${commit.toFixed(3)} ms bare commit`,
    details,
  });
  const which = `${counted.length} of ${all.length} rounds`;
  const undisturbed = times(ofCounted);
  return [
    { name: "one mutation, idle: ms", ...times(ofAll), ratio: ofAll.mutation, target: { atMost: 1 } },
    {
      name: "one mutation, idle: ms above the bare commit, processors undisturbed",
      ...undisturbed,
      measured: `${undisturbed.measured}, ${which}`,
      ratio: ofCounted.mutation - ofCounted.commit,
      target: { atMost: 0.5 },
    },
    {
      name: "the same for a bare pair of processes: ms above the bare commit",
      ...undisturbed,
      measured: `p50 ${ofCounted.pair.toFixed(3)} ms, ${which}`,
      ratio: ofCounted.pair - ofCounted.commit,
      target: null,
    },
    {
      name: "one mutation, idle: ms above the bare commit, all rounds",
      ...times(ofAll),
      ratio: ofAll.mutation - ofAll.commit,
      target: null,
    },
  ];
}

/** Medians over rounds of the medians in each, milliseconds. */
interface P50s {
  readonly mutation: number;
  readonly pair: number;
  readonly commit: number;
}

function p50s(rounds: readonly Round[]): P50s {
  return {
    mutation: median(rounds.map(({ mutations }) => median(mutations))),
    pair: median(rounds.map(({ pairs }) => median(pairs))),
    commit: median(rounds.map(({ commits }) => median(commits))),
  };
}
