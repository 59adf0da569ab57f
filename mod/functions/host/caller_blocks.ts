/** Temporarily blocks callers from functions whose calls repeatedly time out. Each such call occupies a writer or reader. */
import { LRUCache } from "lru-cache";
import type { Log } from "../../kit/log.ts";
import { fairnessLimits } from "../limits.ts";
import type { Clock } from "../../kit/clock.ts";

interface Entry {
  /** Recent timeouts. */
  readonly lateAt: number[];
  refusedUntil: number;
}

export class CallerBlocks {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #entries = new LRUCache<string, Entry>({ max: fairnessLimits.refusalsKeptMax });

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Records a timeout. `blame` is the key of the caller. */
  recordTimeout(udfPath: string, blame: string): void {
    const { lateCallsMax, lateWindowMs, refusedMs } = fairnessLimits;
    const now = this.#clock.now();
    const key = keyOf(udfPath, blame);
    const known = this.#entries.get(key);
    const lateAt = [...known?.lateAt ?? [], now].filter((at) => at > now - lateWindowMs);
    const entry: Entry = { lateAt, refusedUntil: known?.refusedUntil ?? 0 };
    if (lateAt.length >= lateCallsMax) {
      entry.refusedUntil = now + refusedMs;
      lateAt.length = 0;
      this.#log("warn", "Caller temporarily blocked from a function after repeated timeouts", {
        function: udfPath,
        caller: blame,
        seconds: refusedMs / 1000,
      });
    }
    this.#entries.set(key, entry);
  }

  isBlocked(udfPath: string, blame: string): boolean {
    if (this.#entries.size === 0) return false;
    return (this.#entries.peek(keyOf(udfPath, blame))?.refusedUntil ?? 0) > this.#clock.now();
  }
}

function keyOf(udfPath: string, blame: string): string {
  return `${blame} ${udfPath}`;
}
