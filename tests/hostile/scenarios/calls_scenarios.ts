/** Slow, numerous or growing calls. */
import assert from "node:assert/strict";
import { schedulerLimits } from "../../../mod/functions/limits.ts";
import { RawHttp } from "../../support/processes/raw_http.ts";
import { callOf } from "../support/calls.ts";
import { until } from "../../support/waiting.ts";
import type { Scenario, World } from "../support/scenario.ts";

/** An ordinary latency on a loaded machine, far below the seconds that these attacks cause without a defense. */
const SHORT_MS = 1_000;
/** The limit of a query's wait in 99 % of the time. */
const P99_MS = 100;

const { chainWaitingMax, chainStepMs } = schedulerLimits;

/** Far above the duration of an ordinary mutation on a slow machine, which must not end at its limit. */
const MUTATION_TIMEOUT_MS = 4_000;
const QUERY_TIMEOUT_MS = 4_000;
/** The limit of a wait beside a query that runs until its timeout. */
const BESIDE_QUERY_MS = 1_500;
const SHORT_TIMES = [
  ...["--mutation-timeout", `${MUTATION_TIMEOUT_MS / 1_000}s`],
  ...["--query-timeout", `${QUERY_TIMEOUT_MS / 1_000}s`],
];
const WRITERS = 64;
const SLOW_CLIENTS = 4;
/** More than can run concurrently. */
const FLOOD = 400;

/** Runs something and asserts that the bystander gets answers before it ends. */
async function beside<Result>(
  world: World,
  kinds: readonly ("queries" | "mutations")[],
  work: Promise<Result>,
): Promise<Result> {
  const before = await world.served();
  const result = await work;
  const after = await world.served();
  for (const kind of kinds) assert(after[kind] > before[kind], `the bystander got no answer to his ${kind}`);
  return result;
}

export const callScenarios: readonly Scenario[] = [
  {
    rule: "FA1",
    name: `${WRITERS} clients that write without a pause`,
    before: "reads waited for the writer: 7 ms, p99 42",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: async (world) => {
      const { isFull, server: { port } } = world;
      const crowdMs = isFull ? 3_000 : 500;
      const endAt = performance.now() + crowdMs;
      const writers = Promise.all(Array.from({ length: WRITERS }, async (_, n) => {
        using connection = await RawHttp.connect(port);
        const body = JSON.stringify({ path: "crowd:bump", args: { n } });
        let count = 0;
        // On a busy machine the time is over before all are connected.
        do {
          const { status } = await connection.post("/api/mutation", body);
          assert.equal(status, 200);
          count++;
        } while (performance.now() < endAt);
        return count;
      }));
      const counts = await beside(world, ["queries", "mutations"], writers);
      const total = counts.reduce((sum, count) => sum + count, 0);
      assert(counts.every((count) => count > 0), "one of the writers was not served");
      return `${Math.round(total / (crowdMs / 1000))} writes/s`;
    },
  },
  {
    rule: "FA2",
    name: "a mutation that never ends delays no read",
    before: "no fresh query for 5 s",
    limits: { queryMs: SHORT_MS, queryP99Ms: P99_MS, mutationMs: MUTATION_TIMEOUT_MS + 3 * SHORT_MS },
    flags: SHORT_TIMES,
    attack: async (world) => {
      const call = callOf("mutation", { port: world.server.port, path: "slow:endlessMutation" });
      const { ms, httpStatus } = await beside(world, ["queries"], call);
      assert.equal(httpStatus, 500);
      return `ended after ${(ms / 1000).toFixed(1)} s`;
    },
  },
  {
    rule: "FA3",
    name: "4 slow mutations of one client",
    before: "21 s without writes of others",
    limits: null,
    attack: async (world) => {
      const { isFull, server: { port } } = world;
      const token = await world.signUp();
      const startedAt = performance.now();
      const slow = { port, path: "slow:slowMutation", args: { ms: isFull ? 1_000 : 300 }, token };
      const calls = Array.from({ length: 4 }, () => callOf("mutation", slow));
      await Promise.any(calls);
      // The queue is fair: this caller's next three calls run after the bystander's.
      await beside(world, ["queries", "mutations"], Promise.all(calls));
      const ms = performance.now() - startedAt;
      // One running call, and no second one.
      const limits = { queryMs: ms / 4, queryP99Ms: P99_MS, mutationMs: (ms / 4) * 1.6 + SHORT_MS };
      return { figure: `${(ms / 1000).toFixed(1)} s of work`, limits };
    },
  },
  {
    rule: "FA4",
    name: "6 slow queries of one client",
    before: "all readers busy for 94 s",
    limits: null,
    attack: async (world) => {
      const { isFull, server: { port } } = world;
      const token = await world.signUp();
      const startedAt = performance.now();
      const ms = isFull ? 1_000 : 300;
      const calls = Array.from(
        { length: 6 },
        (_, n) => callOf("query", { port, path: "slow:slowQuery", args: { ms, nonce: `${n}` }, token }),
      );
      await Promise.any(calls);
      await beside(world, ["queries", "mutations"], Promise.all(calls));
      const tookMs = performance.now() - startedAt;
      // A function counts as slow only after its first run, so that run may delay others.
      const limits = { queryMs: SHORT_MS + tookMs / 3, mutationMs: SHORT_MS + tookMs / 3 };
      return { figure: `${(tookMs / 1000).toFixed(1)} s until all were answered`, limits };
    },
  },
  {
    rule: "FA4",
    name: `${SLOW_CLIENTS} clients that repeat slow queries`,
    before: "others waited 3 to 8 s",
    limits: null,
    attack: async (world) => {
      const { isFull, server: { port } } = world;
      const tokens = await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => world.signUp()));
      const [slowMs, times] = isFull ? [500, 5] : [200, 2];
      let nonce = 0;
      let longestMs = 0;
      const clients = tokens.map(async (token) => {
        for (let n = 0; n < times; n++) {
          const args = { ms: slowMs, nonce: `again ${nonce++}` };
          const { ms, httpStatus } = await callOf("query", { port, path: "slow:slowQuery", args, token });
          assert.equal(httpStatus, 200);
          longestMs = Math.max(longestMs, ms);
        }
      });
      await beside(world, ["queries", "mutations"], Promise.all(clients));
      const limits = { queryMs: SHORT_MS + longestMs, queryP99Ms: P99_MS, mutationMs: SHORT_MS + longestMs };
      return { figure: `${nonce} of them, the longest ${(longestMs / 1000).toFixed(1)} s`, limits };
    },
  },
  {
    rule: "FA5",
    name: `${FLOOD} actions of one client at once`,
    before: "one client had all places",
    limits: { queryMs: 2 * SHORT_MS, mutationMs: 2 * SHORT_MS },
    attack: async (world) => {
      const { isFull, server: { port } } = world;
      const [token, other] = [await world.signUp(), await world.signUp()];
      const path = "slow:slowAction";
      let answered = 0;
      const flood = Array.from({ length: FLOOD }, async () => {
        await callOf("action", { port, path, args: { ms: isFull ? 3_000 : 500 }, token });
        answered++;
      });
      // All slots are taken and many calls wait.
      await Promise.any(flood);
      const { ms } = await callOf("action", { port, path, args: { ms: 0 }, token: other });
      assert(answered < FLOOD / 2, `another user's action came behind ${answered} of the first one's`);
      await beside(world, ["queries", "mutations"], Promise.all(flood));
      return `another user's action took ${ms.toFixed(0)} ms`;
    },
  },
  {
    rule: "FA6",
    name: "12 slow scheduled mutations",
    before: "a client waited 39.6 s",
    limits: null,
    attack: async (world) => {
      const { isFull, server } = world;
      await server.call("mutation", "chains:plan", { count: 12, ms: isFull ? 250 : 100 });
      const startedAt = performance.now();
      const done = until(async () => await server.call("query", "chains:open") === 0);
      await beside(world, ["queries", "mutations"], done);
      const ms = performance.now() - startedAt;
      const limits = { queryMs: SHORT_MS + ms / 8, queryP99Ms: P99_MS, mutationMs: SHORT_MS + ms / 4 };
      return { figure: `${(ms / 1000).toFixed(1)} s until all had run`, limits };
    },
  },
  {
    rule: "FA8",
    name: "a client that repeats an endless mutation",
    before: "all callers waited, for as long as the attacker liked",
    flags: SHORT_TIMES,
    limits: null,
    attack: async (world) => {
      const { server: { port }, signUp, logged } = world;
      const token = await signUp();
      const startedAt = performance.now();
      const call = { port, path: "slow:endlessMutation", token };
      const calls = Promise.all(Array.from({ length: 4 }, () => callOf("mutation", call)));
      const answers = await beside(world, ["queries", "mutations"], calls);
      assert.deepEqual(answers.map(({ httpStatus }) => httpStatus), [500, 500, 500, 500]);
      const ms = performance.now() - startedAt;
      const refused = await callOf("mutation", call);
      assert.deepEqual([refused.httpStatus, refused.errorData?.code], [503, "overloaded"]);
      const line = await logged(/temporarily blocked from a function/);
      assert.match(line, /slow:endlessMutation/);
      const other = await callOf("mutation", { port, path: "crowd:bump", args: { n: 1 }, token });
      assert.equal(other.httpStatus, 200, "other functions are not refused");
      // One running call, and the start of a new writer.
      const limits = {
        queryMs: SHORT_MS + ms / 4,
        queryP99Ms: P99_MS,
        mutationMs: (ms / 4) * 1.6 + SHORT_MS,
      };
      return { figure: `refused after ${answers.length} calls`, limits };
    },
  },
  {
    rule: "FA7",
    name: "a query that never ends, with a shorter time",
    before: "30 s, nothing to set",
    flags: SHORT_TIMES,
    limits: {
      queryMs: BESIDE_QUERY_MS,
      queryP99Ms: P99_MS,
      mutationMs: BESIDE_QUERY_MS,
    },
    attack: async (world) => {
      const token = await world.signUp();
      const { port } = world.server;
      const call = callOf("query", { port, path: "slow:endlessQuery", args: { nonce: "1" }, token });
      const { ms, httpStatus, errorMessage } = await beside(world, ["mutations"], call);
      assert.equal(httpStatus, 500);
      assert(ms >= 0.9 * QUERY_TIMEOUT_MS, `it ended after ${ms} ms: ${errorMessage}`);
      return `ended after ${(ms / 1000).toFixed(1)} s`;
    },
  },
  {
    rule: "FA9",
    name: "an action that calls itself three times, and so on",
    before: "128,864 waiting, actions refused for 40 s",
    limits: { queryMs: 2 * SHORT_MS, mutationMs: 2 * SHORT_MS },
    attack: async ({ server: { port }, signUp }) => {
      const [token, other] = [await signUp(), await signUp()];
      const bomb = callOf("action", { port, path: "slow:forkBomb", token });
      await new Promise((resolve) => setTimeout(resolve, 500));
      const { ms, httpStatus } = await callOf("action", {
        port,
        path: "slow:slowAction",
        args: { ms: 0 },
        token: other,
      });
      assert.equal(httpStatus, 200);
      const { httpStatus: bombStatus, ms: bombMs } = await bomb;
      assert.equal(bombStatus, 500);
      return `it ended after ${(bombMs / 1000).toFixed(1)} s, another action took ${ms.toFixed(0)} ms`;
    },
  },
  {
    rule: "FA10",
    name: "a scheduled function that schedules ten of itself",
    before: "3,000 runs/s, 103 MB in 13 s, no word",
    alone: true,
    limits: { queryMs: 2 * SHORT_MS, mutationMs: 2 * SHORT_MS },
    attack: async ({ isFull, server, logged }) => {
      const startedAt = performance.now();
      await server.call("mutation", "chains:seed", {});
      assert.match(await logged(/Deferring jobs of a function that keeps scheduling/), /chains:grow/);
      await new Promise((resolve) => setTimeout(resolve, isFull ? 3_000 : 1_000));
      const waiting = Number(await server.call("query", "chains:waiting", {}));
      const seconds = (performance.now() - startedAt) / 1_000;
      // Up to the limit, plus the calls of the slow ones.
      const most = chainWaitingMax + 10 * (2 + (seconds * 1_000) / chainStepMs);
      assert(waiting <= most, `${waiting} wait`);
      return `${waiting} wait after ${seconds.toFixed(0)} s of putting off`;
    },
  },
  {
    rule: "FA11",
    name: "a write in forEach(async ...) that fails",
    before: "success, nothing stored",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: async ({ server: { port }, logged }) => {
      const { httpStatus, ms } = await callOf("mutation", { port, path: "careless:leave" });
      assert.equal(httpStatus, 500);
      await logged(/ctx\.db\.insert\(.*counters.*failed and was not awaited/);
      return `fails after ${ms.toFixed(0)} ms, the log names ctx.db.insert`;
    },
  },
  {
    rule: "FA15",
    name: "calls that patch the creation of stack traces and leave hashes running",
    before: "5.4 s for the next call, 16 s of a processor",
    limits: { queryMs: 5 * SHORT_MS, mutationMs: 5 * SHORT_MS },
    long: true,
    attack: async ({ server: { port }, signUp, logged }) => {
      const token = await signUp();
      let longestMs = 0;
      for (let round = 0; round < 3; round++) {
        await callOf("mutation", { port, path: "leftovers:stacks", token });
        const { ms, httpStatus } = await callOf("mutation", { port, path: "leftovers:fails", token });
        assert.equal(httpStatus, 500);
        longestMs = Math.max(longestMs, ms);
      }
      for (const kind of ["mutation", "action"] as const) {
        const path = `leftovers:leaving${kind === "action" ? "Action" : "Mutation"}`;
        assert.equal((await callOf(kind, { port, path, token })).httpStatus, 200);
      }
      await logged(/left work behind/);
      return `the next failure took ${longestMs.toFixed(0)} ms, the isolates were replaced`;
    },
  },
];
