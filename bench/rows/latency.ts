/**
 * One client with one mutation at a time on an idle server, beside the same update directly on SQLite, and beside a bare pair
 * of processes through which a WebSocket message reaches SQLite.
 *
 * These are absolute times, which other load distorts. A fixed loop (support/processors.ts) detects disturbed rounds. One row
 * is based on the undisturbed rounds, another one on all rounds.
 */
import { type BenchContext, transferFunctions } from "../context.ts";
import { Processors } from "../support/processors.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { seedAccounts } from "../support/seed.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

/** A round is undisturbed if the loop never takes longer than its best time multiplied by this factor. */
const SLOWDOWN_MAX = 1.2;
/** All rounds are used if fewer than this are undisturbed. */
const UNDISTURBED_MIN = 5;

interface Round {
  readonly mutations: readonly number[];
  readonly pairs: readonly number[];
  readonly commits: readonly number[];
  readonly slowdown: number;
}

export async function latencyRows(context: BenchContext): Promise<Row[]> {
  const accounts = 10_000;
  // Disturbances last seconds, so rounds continue until enough of them are undisturbed.
  const [enough, roundsMax] = context.full ? [40, 160] : [20, 60];
  const count = 200;
  const server = await context.server(transferFunctions);
  const sqlite = await context.control("sqlite_server", [accounts]);
  const pair = await context.control("two_process_server", [accounts]);
  const load = context.load();
  await seedAccounts(server, accounts);
  using control = await RawHttp.connect(sqlite.port);
  using processors = new Processors();

  const runRound = async (seed: number, count: number): Promise<Round> => {
    const workload = { accounts, alpha: 0, seed };
    const slowdowns = [await processors.slowdown()];
    const mutations = await load.run("sequentialCalls", { port: server.port, count, workload });
    slowdowns.push(await processors.slowdown());
    const pairs = await load.run("sequentialCalls", { port: pair.port, path: "/", count, workload });
    slowdowns.push(await processors.slowdown());
    const commits: number[] = JSON.parse((await control.post("/commits", JSON.stringify({ count }))).body);
    slowdowns.push(await processors.slowdown());
    return { mutations, pairs, commits, slowdown: Math.max(...slowdowns) };
  };

  // Warms up the code, including that of the loop.
  await runRound(WORKLOAD_SEED - 1, 2000);
  for (let i = 0; i < 50; i++) await processors.slowdown();
  const all: Round[] = [];
  const isUndisturbed = ({ slowdown }: Round) => slowdown <= SLOWDOWN_MAX;
  while (all.length < roundsMax && all.filter(isUndisturbed).length < enough) {
    all.push(await runRound(WORKLOAD_SEED + all.length, count));
  }
  const undisturbed = all.filter(isUndisturbed);
  const counted = undisturbed.length < UNDISTURBED_MIN ? all : undisturbed;
  const ofAll = p50s(all);
  const ofCounted = p50s(counted);
  const details = {
    rounds: all.length,
    undisturbed: undisturbed.length,
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
  const countedRounds = `${counted.length} of ${all.length} rounds`;
  const countedTimes = times(ofCounted);
  return [
    { name: "one mutation, idle: ms", ...times(ofAll), ratio: ofAll.mutation, target: { atMost: 1 } },
    {
      name: "one mutation, idle: ms above the bare commit, processors undisturbed",
      ...countedTimes,
      measured: `${countedTimes.measured}, ${countedRounds}`,
      ratio: ofCounted.mutation - ofCounted.commit,
      target: { atMost: 0.5 },
    },
    {
      name: "the same for a bare pair of processes: ms above the bare commit",
      ...countedTimes,
      measured: `p50 ${ofCounted.pair.toFixed(3)} ms, ${countedRounds}`,
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

/** Medians over the rounds' medians, in milliseconds. */
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
