/** Gauges of the last hour, sampled once a minute. */
import { statsLimits } from "../limits.ts";

const MINUTE_MS = 60_000;

/** One sample. Sizes are in bytes; `null` if unavailable. */
export interface Gauges {
  readonly sockets: number;
  readonly subscriptions: number;
  /** Of the main process and all isolates. */
  readonly memory: number;
  /** Of the database and the execution log. */
  readonly stored: number;
  readonly diskFree: number | null;
}

export interface GaugesAt extends Gauges {
  /** Milliseconds since the epoch, rounded down to the minute. */
  readonly at: number;
}

export class GaugeHistory {
  /** Oldest first; at most `gaugesKept`. Not persisted. */
  readonly #looks: GaugesAt[] = [];
  readonly #look: () => Promise<Gauges>;
  readonly #now: () => number;
  /** Minute of the last sample, initially that of the start. */
  #minute: number;

  constructor({ look, now }: { readonly look: () => Promise<Gauges>; readonly now: () => number }) {
    this.#look = look;
    this.#now = now;
    this.#minute = minuteOf(now());
  }

  /** Oldest first. */
  get history(): readonly GaugesAt[] {
    return this.#looks;
  }

  /** Takes the sample of a new minute. Call often enough; a failed sample leaves a gap. */
  async turn(): Promise<void> {
    const at = minuteOf(this.#now());
    if (at <= this.#minute) return;
    this.#minute = at;
    try {
      this.#looks.push({ at, ...await this.#look() });
      if (this.#looks.length > statsLimits.gaugesKept) this.#looks.shift();
    } catch {
      // Failures are reported to direct requests for the same values.
    }
  }
}

function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS) * MINUTE_MS;
}
