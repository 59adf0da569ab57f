/** How much there was of what grows and shrinks, looked at once a minute, for the last hour. */
import { statsLimits } from "../limits.ts";

const MINUTE_MS = 60_000;

/** What is looked at. Sizes are bytes; `null` where they could not be found out. */
export interface Gauges {
  readonly sockets: number;
  readonly subscriptions: number;
  /** Of main and all isolates together. */
  readonly memory: number;
  /** Of the database and the log. */
  readonly stored: number;
  readonly diskFree: number | null;
}

export interface GaugesAt extends Gauges {
  /** Milliseconds since the epoch: the minute that was looked at. */
  readonly at: number;
}

export class GaugeHistory {
  /** Oldest first; at most `gaugesKept`. Ends with the process. */
  readonly #looks: GaugesAt[] = [];
  readonly #look: () => Promise<Gauges>;
  readonly #now: () => number;
  /** The minute that was looked at last; at first that of the start, which is not looked at. */
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

  /** Looks, once a minute. To be called often enough; a look that fails leaves a gap. */
  async turn(): Promise<void> {
    const at = minuteOf(this.#now());
    if (at <= this.#minute) return;
    this.#minute = at;
    try {
      this.#looks.push({ at, ...await this.#look() });
      if (this.#looks.length > statsLimits.gaugesKept) this.#looks.shift();
    } catch {
      // Who asks for the same figures at once is told what is wrong.
    }
  }
}

function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS) * MINUTE_MS;
}
