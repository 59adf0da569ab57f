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
  readonly #samples: GaugesAt[] = [];
  readonly #measure: () => Promise<Gauges>;
  readonly #now: () => number;
  /** Minute of the last sample, initially that of the start. */
  #minute: number;

  constructor({ look, now }: { readonly look: () => Promise<Gauges>; readonly now: () => number }) {
    this.#measure = look;
    this.#now = now;
    this.#minute = minuteOf(now());
  }

  /** Oldest first. */
  get history(): readonly GaugesAt[] {
    return this.#samples;
  }

  /** Takes the sample of a new minute. Call often enough; a failed sample leaves a gap. */
  async sample(): Promise<void> {
    const at = minuteOf(this.#now());
    if (at <= this.#minute) return;
    this.#minute = at;
    try {
      this.#samples.push({ at, ...await this.#measure() });
      if (this.#samples.length > statsLimits.gaugesKept) this.#samples.shift();
    } catch {
      // Failures are reported to direct requests for the same values.
    }
  }
}

function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS) * MINUTE_MS;
}
