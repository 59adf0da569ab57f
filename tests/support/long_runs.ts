/** Tests that can run longer than `deno task test` allows: `deno task test:long` runs them with `SYNCLINE_TEST_LONG` set. */

export const isLongRun: boolean = Deno.env.get("SYNCLINE_TEST_LONG") !== undefined;

/** Returns how often to repeat something: a few times in the gate, more often in a long run. */
export function repeats(inGate: number, inLongRun: number): number {
  return isLongRun ? inLongRun : inGate;
}
