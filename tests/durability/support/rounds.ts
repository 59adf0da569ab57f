/** How long the durability tests run, and the seed of their random moments. */
import { repeats } from "../../support/long_runs.ts";
import { mulberry32 } from "../../support/processes/random.ts";
import { until as waitUntil } from "../../support/waiting.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";

/** Rounds of each test. */
export const rounds = repeats(3, 50);

/** Seed of the times of faults. Concurrent work is not deterministic. */
export const seed = Number(Deno.env.get("SYNCLINE_SEED") ?? Date.now() % 1_000_000);

export const random = mulberry32(seed);

/** Starts a server with the functions of these tests. */
export function startServer(dataDir: string): Promise<ServerProcess> {
  return ServerProcess.start({
    dataDir,
    functions: "tests/durability/functions",
    // Each failed mutation is a violation. With the default, one fails if its process is paused for five seconds.
    flags: ["--mutation-timeout", "60s"],
  });
}

/** Waits until a condition is true. Throws with its description and the server's log after a timeout. */
export function until(
  holds: () => boolean | Promise<boolean>,
  { what, server, ...options }: {
    readonly what: string;
    readonly server: ServerProcess;
    readonly timeoutMs?: number;
  },
): Promise<void> {
  return waitUntil(holds, {
    ...options,
    what: () => `${what} (seed ${seed}); the server:\n${server.lastOutput}`,
  });
}
