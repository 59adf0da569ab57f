/** A short simulation: fresh seeds, seeds that once failed, and planted bugs that it must find. */
import assert from "node:assert/strict";
import { plantedBugs } from "./support/planted_bugs.ts";
import { repeats } from "../support/long_runs.ts";
import { simulate, Violation } from "./support/simulation.ts";

const STEPS = 1_000;
/** Maximum number of seeds to find a planted bug. */
const SEEDS_MAX = 300;
/** Fresh seeds. */
const SEEDS = repeats(8, 2_000);

Deno.test("no seed violates a guarantee of the contract", async () => {
  const first = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  for (let n = 0; n < SEEDS; n++) {
    const seed = (first + n) >>> 0;
    // The violation's message contains the seed and the step.
    await simulate({ seed, steps: STEPS });
  }
});

Deno.test("equal seeds result in equal runs", async () => {
  assert.deepEqual(await simulate({ seed: 7, steps: 500 }), await simulate({ seed: 7, steps: 500 }));
});

/** Runs the same seeds until one fails. */
async function findBug(options: { readonly forgetCaller?: boolean } = {}): Promise<void> {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    try {
      await simulate({ seed, steps: STEPS, ...options });
    } catch (error) {
      if (error instanceof Violation) return;
      throw error;
    }
  }
  throw new Error(`The bug was not found with ${SEEDS_MAX} seeds`);
}

for (const [name, plant] of Object.entries(plantedBugs)) {
  Deno.test(`a planted bug is found: ${name}`, async () => {
    using _bug = plant();
    await findBug();
  });
}

Deno.test("a planted bug is found: a replay to the wrong identity", async () => {
  await findBug({ forgetCaller: true });
});
