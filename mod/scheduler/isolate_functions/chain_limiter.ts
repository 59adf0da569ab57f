/**
 * Limits recursive scheduling. Counts the pending jobs of each chain: jobs scheduled by jobs, grouped by the function at the
 * root. Above the limit, new jobs and (once) due jobs are deferred, the longer the more there are. Exponential growth becomes
 * slow linear growth, and no job is lost. The first generation, scheduled from outside, is not counted, because a transaction
 * bounds it.
 *
 * The counts are kept in the writer's memory, because a query per job would cost more than scheduling it. After a lost writer,
 * deferred jobs reveal the chains that were over the limit.
 */
import { schedulerLimits } from "../../functions/limits.ts";

const { chainWaitingMax, chainStepMs, chainsKnownMax } = schedulerLimits;

interface Chain {
  /** Number of pending jobs. */
  waiting: number;
  /** Scheduled time of the job deferred last. */
  lastAt: number;
}

function nextAt(chain: Chain, now: number): number {
  return chain.lastAt = Math.max(now, chain.lastAt) + chainStepMs * chain.waiting / chainWaitingMax;
}

export class ChainLimiter {
  /** In order of last change, oldest first. */
  readonly #chains = new Map<string, Chain>();

  /** Counts a job scheduled for `at`, and returns the time at which it may run. */
  onScheduled(root: string, at: number, now: number): number {
    const chain = this.#touch(root);
    chain.waiting++;
    return chain.waiting <= chainWaitingMax ? at : Math.max(at, nextAt(chain, now));
  }

  /** Returns the time to which a due job must be deferred, or `null` if it may run. */
  deferUntil(root: string, now: number): number | null {
    const chain = this.#chains.get(root);
    return chain === undefined || chain.waiting <= chainWaitingMax ? null : nextAt(chain, now);
  }

  /** Uncounts a job that is no longer pending. `putOff`: whether its chain was over the limit. Returns an undo function. */
  onNotPending(root: string, putOff: boolean): () => void {
    const known = this.#chains.get(root);
    if (known === undefined && !putOff) return () => {};
    const chain = this.#touch(root);
    if (known === undefined) chain.waiting = chainWaitingMax;
    const taken = Math.min(chain.waiting, 1);
    chain.waiting -= taken;
    return () => chain.waiting += taken;
  }

  #touch(root: string): Chain {
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
