/** Reduces a failing seed: fewer steps, fewer clients, fewer kinds of events, as long as it still fails. */
import { type EventKind, simulate, type SimulationOptions, Violation } from "./simulation.ts";

const kinds: readonly EventKind[] = [
  "misbehave",
  "longTime",
  "time",
  "reload",
  "readerDies",
  "writerDies",
  "commitUnreported",
  "act",
  "repeat",
  "endSession",
  "stall",
  "drop",
  "addAndRemove",
  "authenticate",
  "remove",
  "rest",
];

/** Reduced options that still fail, to be added to the named cases. */
export async function minimise(
  { seed, step }: Violation,
): Promise<SimulationOptions & { readonly message: string }> {
  let smallest: SimulationOptions = { seed, steps: step + 1 };
  let message = await failure(smallest) ?? "it did not fail again";
  const attempt = async (options: SimulationOptions) => {
    const found = await failure(options);
    if (found === null) return;
    message = found;
    smallest = options;
  };
  for (const clients of [1, 2, 3, 4]) {
    if (smallest.clients === undefined) await attempt({ ...smallest, clients });
  }
  for (const kind of kinds) {
    const without = new Set([...smallest.without ?? [], kind]);
    // Without a kind of event, others happen at different times, so more seeds are tried.
    for (let other = 0; other < 20; other++) {
      const options = { ...smallest, without, seed: seed + other };
      const before = smallest;
      await attempt(options);
      if (smallest !== before) break;
    }
  }
  return { ...smallest, message };
}

async function failure(options: SimulationOptions): Promise<string | null> {
  try {
    await simulate(options);
    return null;
  } catch (error) {
    if (error instanceof Violation) return error.message;
    throw error;
  }
}
