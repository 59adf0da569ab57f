/**
 * Who is refused a function for a while: a caller whose calls of it ran out of time again and again. Each such call keeps a
 * writer or a reader from everybody for seconds.
 */
import type { Log } from "../../kit/log.ts";
import { fairnessLimits } from "../limits.ts";
import type { Clock } from "../../kit/clock.ts";

interface Entry {
  /** When calls ran out of time, as far back as counts. */
  readonly lateAt: number[];
  refusedUntil: number;
}

export class Refusals {
  readonly #log: Log;
  readonly #clock: Clock;
  /** By caller and function; what was noted last stands last. */
  readonly #entries = new Map<string, Entry>();

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
  }

  /** A call of a function ran out of time. `blame`: who answers for it. */
  ranOutOfTime(udfPath: string, blame: string): void {
    const { lateCallsMax, lateWindowMs, refusedMs, refusalsKeptMax } = fairnessLimits;
    const now = this.#clock.now();
    const key = keyOf(udfPath, blame);
    const known = this.#entries.get(key);
    const lateAt = [...known?.lateAt ?? [], now].filter((at) => at > now - lateWindowMs);
    const entry: Entry = { lateAt, refusedUntil: known?.refusedUntil ?? 0 };
    if (lateAt.length >= lateCallsMax) {
      entry.refusedUntil = now + refusedMs;
      lateAt.length = 0;
      this.#log("warn", "A caller is refused a function for a while: its calls ran out of time", {
        function: udfPath,
        caller: blame,
        seconds: refusedMs / 1000,
      });
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > refusalsKeptMax && oldest !== undefined) this.#entries.delete(oldest);
  }

  /** Whether the caller is refused the function now. */
  refuses(udfPath: string, blame: string): boolean {
    if (this.#entries.size === 0) return false;
    return (this.#entries.get(keyOf(udfPath, blame))?.refusedUntil ?? 0) > this.#clock.now();
  }
}

function keyOf(udfPath: string, blame: string): string {
  return `${blame} ${udfPath}`;
}
