/**
 * Work that goes on after its call was answered: hashes left to the runtime's threads, timers that never rest. It takes the
 * processor from everybody and belongs to nobody, so the isolate ends, and a fresh one takes its place.
 */
import { importsSpoiled } from "../app/import_message.ts";

/** An isolate without calls is looked at so long after its last answer, and again while it works on. */
const LOOK_MS = 250;
/** A look that finds less is the last one: others may have the processor, so what is left behind gets little of it. */
const QUIET_MS = 20;
/** Processor time without a call that is too much: collecting garbage takes some, too. */
const LEFT_MS_MAX = 400;

const exit: (code: number) => never = Deno.exit;
const { error: printError } = console;
const later = setTimeout;
const { unrefTimer, cpuUsage } = Deno as typeof Deno & {
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
};

export class Leftovers {
  /** Calls, waves or batches under way. */
  #running = 0;
  /** Processor time at the last look, or when the last of them ended before it. */
  #used = 0;
  /** Processor time since the last of them ended, as far as it was looked at. */
  #left = 0;
  #watching = false;
  /** Whether one has ended since the last look: it begins anew then. */
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
    // Its end looks again.
    if (this.#running > 0) return;
    const used = processorMs();
    const since = used - this.#used;
    this.#used = used;
    if (this.#ended) {
      this.#ended = false;
      this.#left = 0;
      return this.#lookLater();
    }
    if (importsSpoiled()) {
      printError("error: an import of a call left the isolate unable to load anything new");
      exit(1);
    }
    this.#left += since;
    if (this.#left > LEFT_MS_MAX) {
      printError("error: a call left work behind that goes on after its answer");
      exit(1);
    }
    if (since > QUIET_MS) this.#lookLater();
  }

  #lookLater(): void {
    this.#watching = true;
    // It keeps nothing alive: a handler that waits for nothing is found by an event loop that runs dry.
    unrefTimer(later(() => this.#look(), LOOK_MS));
  }
}

/** Of all threads of this process. */
function processorMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}
