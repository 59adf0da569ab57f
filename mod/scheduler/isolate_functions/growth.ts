/**
 * How many functions wait that scheduled functions have scheduled, by the one that it all goes back to. Where too many of
 * them wait, new ones are put off, and so are those that are due, once: the more so the more there are. Growth turns from
 * doubling into crawling, and nothing is lost. What a function schedules that was itself scheduled from outside does not
 * count: that is as bounded as a transaction is.
 *
 * The counts are in the writer's memory: a look-up for each would cost more than what is scheduled. What a lost writer
 * counted shows in the functions that were put off.
 */
import { schedulerLimits } from "../../functions/limits.ts";

const { chainWaitingMax, chainStepMs, chainsKnownMax } = schedulerLimits;

interface Chain {
  /** Functions of it that wait. */
  waiting: number;
  /** When the one put off last is to run. */
  lastAt: number;
}

function nextAt(chain: Chain, now: number): number {
  return chain.lastAt = Math.max(now, chain.lastAt) + chainStepMs * chain.waiting / chainWaitingMax;
}

export class Growth {
  /** The one that changed longest ago stands first. */
  readonly #chains = new Map<string, Chain>();

  /** Notes that a function is scheduled for a time, and gives the time at which it may run. */
  scheduled(root: string, at: number, now: number): number {
    const chain = this.#take(root);
    chain.waiting++;
    return chain.waiting <= chainWaitingMax ? at : Math.max(at, nextAt(chain, now));
  }

  /** The time to which one that is due has to be put off, because too many wait; `null` when it may run. */
  putOff(root: string, now: number): number | null {
    const chain = this.#chains.get(root);
    return chain === undefined || chain.waiting <= chainWaitingMax ? null : nextAt(chain, now);
  }

  /** Notes that one does not wait any more. `putOff`: the chain is known to have had too many. Returns how to undo it. */
  left(root: string, putOff: boolean): () => void {
    const known = this.#chains.get(root);
    if (known === undefined && !putOff) return () => {};
    const chain = this.#take(root);
    if (known === undefined) chain.waiting = chainWaitingMax;
    const taken = Math.min(chain.waiting, 1);
    chain.waiting -= taken;
    return () => chain.waiting += taken;
  }

  #take(root: string): Chain {
    const chain = this.#chains.get(root) ?? { waiting: 0, lastAt: 0 };
    this.#chains.delete(root);
    this.#chains.set(root, chain);
    if (this.#chains.size > chainsKnownMax) {
      for (const oldest of this.#chains.keys()) {
        this.#chains.delete(oldest);
        break;
      }
    }
    return chain;
  }
}
