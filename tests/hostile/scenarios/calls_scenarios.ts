/** Calls that take long, many or growing, and who waits behind them. */
import assert from "node:assert/strict";
import { RawHttp } from "../../bench/support/raw_http.ts";
import { callOf } from "../support/calls.ts";
import type { Scenario } from "../support/scenario.ts";

/** An ordinary wait on a loaded machine: far below the seconds that these attacks took from everybody. */
const SHORT_MS = 1_000;

const MUTATION_TIMEOUT_MS = 5_000;
const WRITERS = 64;
const CROWD_MS = 3_000;

export const callScenarios: readonly Scenario[] = [
  {
    rule: "FA1",
    name: `${WRITERS} clients that write without a pause`,
    mayWait: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: async ({ server: { port } }) => {
      const until = performance.now() + CROWD_MS;
      const counts = await Promise.all(Array.from({ length: WRITERS }, async (_, n) => {
        using connection = await RawHttp.connect(port);
        const body = JSON.stringify({ path: "crowd:bump", args: { n } });
        let count = 0;
        for (; performance.now() < until; count++) {
          const { status } = await connection.post("/api/mutation", body);
          assert.equal(status, 200);
        }
        return count;
      }));
      const total = counts.reduce((sum, count) => sum + count, 0);
      assert(counts.every((count) => count > 0), "one of the writers was not served");
      return `${Math.round(total / (CROWD_MS / 1000))} writes/s`;
    },
  },
  {
    rule: "FA2",
    name: "a mutation that never ends holds up no read",
    mayWait: { queryMs: SHORT_MS, mutationMs: MUTATION_TIMEOUT_MS + 3 * SHORT_MS },
    attack: async ({ server: { port } }) => {
      const { ms, httpStatus } = await callOf("mutation", { port, path: "slow:endlessMutation" });
      assert.equal(httpStatus, 500);
      return `ended after ${(ms / 1000).toFixed(1)} s`;
    },
  },
];
