/** The simulation in short: fresh seeds, seeds that once failed, and bugs it has to find. */
import assert from "node:assert/strict";
import { plantedBugs } from "./support/planted_bugs.ts";
import { simulate, Violation } from "./support/simulation.ts";

const STEPS = 1_000;
/** `SYNCLINE_SIM_SECONDS` makes the run of fresh seeds longer. */
const seconds = Number(Deno.env.get("SYNCLINE_SIM_SECONDS") ?? 5);

Deno.test("no seed breaks a promise of the contract", async () => {
  const first = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  const until = performance.now() + seconds * 1000;
  for (let seed = first; performance.now() < until; seed = (seed + 1) >>> 0) {
    // The violation's message carries the seed and the step.
    await simulate({ seed, steps: STEPS });
  }
});

Deno.test("equal seeds give equal runs", async () => {
  assert.deepEqual(await simulate({ seed: 7, steps: 500 }), await simulate({ seed: 7, steps: 500 }));
});

/** Runs seeds until one fails; the time it took in ms. */
async function timeToFind(options: { readonly forgetCaller?: boolean } = {}): Promise<number> {
  const start = performance.now();
  for (let seed = 1; performance.now() - start < 60_000; seed++) {
    try {
      await simulate({ seed, steps: STEPS, ...options });
    } catch (error) {
      if (error instanceof Violation) return performance.now() - start;
      throw error;
    }
  }
  throw new Error("The bug was not found within a minute");
}

for (const [name, plant] of Object.entries(plantedBugs)) {
  Deno.test(`a planted bug is found within a minute: ${name}`, async () => {
    using _bug = plant();
    await timeToFind();
  });
}

Deno.test("a planted bug is found within a minute: a replay to the wrong identity", async () => {
  await timeToFind({ forgetCaller: true });
});
