/** How long the durability tests run, and the seed of their random moments. */
import { mulberry32 } from "../../bench/support/random.ts";
import type { ServerProcess } from "../../bench/support/server_process.ts";

/** Rounds of each test: few by default, `SYNCLINE_DURABILITY_ROUNDS` for more. */
export const rounds = Number(Deno.env.get("SYNCLINE_DURABILITY_ROUNDS") ?? 5);

/** Seed of the moments; what is running at a moment is not under its control. */
export const seed = Number(Deno.env.get("SYNCLINE_SEED") ?? Date.now() % 1_000_000);

export const random = mulberry32(seed);

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until something holds. Throws with what it was, and with the server's log, when it does not in time. */
export async function until(
  holds: () => boolean,
  options: { readonly what: string; readonly timeoutMs: number; readonly server: ServerProcess },
): Promise<void> {
  const { what, timeoutMs, server } = options;
  const endAt = performance.now() + timeoutMs;
  while (!holds()) {
    if (performance.now() > endAt) {
      throw new Error(
        `Not within ${timeoutMs} ms: ${what} (seed ${seed}); the server:\n${server.lastOutput}`,
      );
    }
    await pause(5);
  }
}
