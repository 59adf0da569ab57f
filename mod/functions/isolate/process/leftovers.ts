/** Detects work that outlives its call (timers, hashes). It uses others' time, so the isolate exits and is replaced. */
import { importsSpoiled } from "../app/import_message.ts";

/** Interval of checks while no call runs. */
const CHECK_MS = 250;
/** Processor time between two checks below which the isolate counts as quiet. */
const QUIET_MS = 20;
/**
 * Quiet checks in a row after which the next one ends the checks. The interval doubles with each: left work gets little
 * processor time beside busy processes.
 */
const QUIET_CHECKS_MAX = 2;
/** A check that is later than this shows that the isolate waits for a processor, so it may have work all the same. */
const LATE_MS = 25;
/** Processor time between two checks that is not counted: the check itself uses some. */
const NOISE_MS = 2;
/** Allowed processor time without a call. Garbage collection uses some. */
const LEFT_MS_MAX = 400;

const exit: (code: number) => never = Deno.exit;
const { error: printError } = console;
const later = setTimeout;
const now = performance.now.bind(performance);
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
  #quietChecks = 0;
  /** Time of the next check. */
  #dueAt = 0;
  /** Whether a call ended since the last check, which then starts over. */
  #ended = false;

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
    this.#ended = true;
    if (this.#running === 0 && !this.#watching) this.#check();
  }

  #check(): void {
    this.#watching = false;
    // The end of the running call checks again.
    if (this.#running > 0) return;
    const used = processorMs();
    const since = used - this.#used;
    this.#used = used;
    if (this.#ended) {
      this.#ended = false;
      this.#left = 0;
      this.#quietChecks = 0;
      return this.#checkLater();
    }
    if (importsSpoiled()) {
      printError("error: an import of a call left the isolate unable to load anything new");
      exit(1);
    }
    if (since > NOISE_MS) this.#left += since;
    if (this.#left > LEFT_MS_MAX) {
      printError("error: a call left work behind that still runs after its answer");
      exit(1);
    }
    if (since > QUIET_MS) this.#quietChecks = 0;
    else if (now() - this.#dueAt < LATE_MS) this.#quietChecks++;
    if (this.#quietChecks <= QUIET_CHECKS_MAX) this.#checkLater();
  }

  #checkLater(): void {
    this.#watching = true;
    // Unreferenced, so that an idle event loop is still detected.
    const ms = CHECK_MS * 2 ** this.#quietChecks;
    this.#dueAt = now() + ms;
    unrefTimer(later(() => this.#check(), ms));
  }
}

function processorMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}
