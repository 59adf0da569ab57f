/** Waiting in tests: for conditions, never for fixed durations. */

/**
 * After this time a test hangs. The longest wait, for a server that installs its packages first, takes 45 s on a quiet
 * machine. Several failed waits must end before the job does (`run.ts`).
 */
export const HANG_MS = 180_000;
const CHECK_MS = 5;
/** A check uses processor time of the awaited work, so slow checks are less frequent. */
const PAUSE_FACTOR = 3;
const CHECK_MS_MAX = 100;
const TRIES_MAX = 10;

export interface UntilOptions {
  /** Describes the awaited event for the error. A function is called at the timeout. */
  readonly what?: string | (() => string);
  readonly timeoutMs?: number;
  /** Time between two checks. */
  readonly everyMs?: number;
}

/** Waits until a condition is true. Throws with its description after the timeout. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  { what = String(holds), timeoutMs = HANG_MS, everyMs = CHECK_MS }: UntilOptions = {},
): Promise<void> {
  const endAt = performance.now() + timeoutMs;
  for (let begun = performance.now(); !await holds(); begun = performance.now()) {
    const now = performance.now();
    if (now > endAt) {
      throw new Error(`Not within ${timeoutMs} ms: ${typeof what === "string" ? what : what()}`);
    }
    await pause(Math.max(everyMs, Math.min(PAUSE_FACTOR * (now - begun), CHECK_MS_MAX)));
  }
}

/** Waits until a value is returned, and returns it. */
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

/** Tries again until an attempt succeeds: for events that may come too late on a busy machine. Throws after ten attempts. */
export async function retry(
  attempt: () => Promise<boolean>,
  { what }: { readonly what: string },
): Promise<void> {
  for (let tries = 1; !await attempt(); tries++) {
    if (tries === TRIES_MAX) throw new Error(`Not in ${TRIES_MAX} attempts: ${what}`);
  }
}

/** Waits for a fixed time: for a load with pauses, or to check that nothing happens. Never to wait for an event. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Lets due timers and their callbacks run. */
export function nextTick(): Promise<void> {
  return pause(0);
}
