/** Waiting in tests: for what must happen, however long the machine takes, and never for a length of time. */

/** Far above what anything takes on the busiest machine: after this time a test hangs. */
export const HANG_MS = 300_000;
const LOOK_MS = 5;
/** Checks take processor time from the awaited work: the longer one takes, the fewer there are. */
const LOOKS_SHARE = 3;
const LOOK_MS_MAX = 100;

export interface UntilOptions {
  /** Describes the awaited event for the error. A function is called at the timeout. */
  readonly what?: string | (() => string);
  readonly timeoutMs?: number;
  /** Time between two looks. */
  readonly everyMs?: number;
}

/** Waits until something holds. Throws with what it was when it does not come to be. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  { what = String(holds), timeoutMs = HANG_MS, everyMs = LOOK_MS }: UntilOptions = {},
): Promise<void> {
  const endAt = performance.now() + timeoutMs;
  for (let begun = performance.now(); !await holds(); begun = performance.now()) {
    const now = performance.now();
    if (now > endAt) {
      throw new Error(`Not within ${timeoutMs} ms: ${typeof what === "string" ? what : what()}`);
    }
    await pause(Math.max(everyMs, Math.min(LOOKS_SHARE * (now - begun), LOOK_MS_MAX)));
  }
}

/** Waits until a value is returned. */
export async function found<Value>(
  look: () => Value | null | undefined | Promise<Value | null | undefined>,
  options: UntilOptions = {},
): Promise<Value> {
  let value: Value | null | undefined;
  await until(async () => (value = await look()) !== null && value !== undefined, {
    what: String(look),
    ...options,
  });
  return value as Value;
}

/** A pause of some length: between the moments of a load, or where nothing must happen; never to wait for something. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Lets everything run that is ready to: timers that are due, and what their callbacks begin. */
export function turn(): Promise<void> {
  return pause(0);
}
