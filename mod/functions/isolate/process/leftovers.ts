/** Detects work that outlives its call (timers, hashes). It uses others' time, so the isolate exits and is replaced. */
import { importsSpoiled } from "../app/import_message.ts";

/** Interval of checks while no call runs. */
const LOOK_MS = 250;
/** Processor time between two checks below which the isolate counts as quiet. */
const QUIET_MS = 20;
/**
 * Quiet checks in a row after which the next one ends the checks. The interval doubles with each: left work gets little
 * processor time beside busy processes.
 */
const QUIET_LOOKS_MAX = 2;
/** Allowed processor time without a call. Garbage collection uses some. */
const LEFT_MS_MAX = 400;

const exit: (code: number) => never = Deno.exit;
const { error: printError } = console;
const later = setTimeout;
const { unrefTimer, cpuUsage } = Deno as typeof Deno & {
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
};

export class Leftovers {
  /** Calls or batches in flight. */
  #running = 0;
  /** Processor time at the last check. */
  #used = 0;
  /** Processor time since the last call ended, as of the last check. */
  #left = 0;
  #watching = false;
  /** Quiet checks in a row. */
  #quietLooks = 0;
  /** Whether a call ended since the last check, which then starts over. */
  #ended = false;

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
    this.#ended = true;
    if (this.#running === 0 && !this.#watching) this.#look();
  }

  #look(): void {
    this.#watching = false;
    // The end of the running call checks again.
    if (this.#running > 0) return;
    const used = processorMs();
    const since = used - this.#used;
    this.#used = used;
    if (this.#ended) {
      this.#ended = false;
      this.#left = 0;
      this.#quietLooks = 0;
      return this.#lookLater();
    }
    if (importsSpoiled()) {
      printError("error: an import of a call left the isolate unable to load anything new");
      exit(1);
    }
    this.#left += since;
    if (this.#left > LEFT_MS_MAX) {
      printError("error: a call left work behind that still runs after its answer");
      exit(1);
    }
    this.#quietLooks = since > QUIET_MS ? 0 : this.#quietLooks + 1;
    if (this.#quietLooks <= QUIET_LOOKS_MAX) this.#lookLater();
  }

  #lookLater(): void {
    this.#watching = true;
    // Unreferenced, so that an idle event loop is still detected.
    unrefTimer(later(() => this.#look(), LOOK_MS * 2 ** this.#quietLooks));
  }
}

function processorMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}
