/** Functions behind `ctx.scheduler`, run in the caller's transaction, or in their own for actions. */
import { z } from "zod";
import { withHelp } from "../../explained.ts";
import type { Id, Lineage, LineageKeeper } from "../../functions/api/service.ts";
import { schedulerLimits } from "../../functions/limits.ts";
import { isSystemPath } from "../../functions/system_module.ts";
import { functionLimits } from "../../limits.ts";
import {
  functionKindSchema,
  type SchedulerDoc,
  type SchedulerMutationCtx,
  systemMutation,
} from "../tables.ts";

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

/**
 * Limits recursive scheduling. Counts the pending jobs of each chain: jobs scheduled by jobs, grouped by the function at the
 * root. Above the limit, new jobs and (once) due jobs are deferred, the longer the more there are. Exponential growth becomes
 * slow linear growth, and no job is lost. The first generation, scheduled from outside, is not counted, because a transaction
 * bounds it.
 *
 * The counts are kept in the writer's memory, because a query per job would cost more than scheduling it. After a lost writer,
 * deferred jobs reveal the chains that were over the limit.
 */
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

const chainLimiter = new ChainLimiter();

/** Call in the mutation that makes a job no longer pending. */
export function onNotPending(
  { lineage }: { readonly lineage: LineageKeeper },
  { chain }: SchedulerDoc<"_scheduled_functions">,
): void {
  if (chain === undefined || chain.generation < 2) return;
  lineage.onUndone(chainLimiter.onNotPending(chain.root, chain.putOff ?? false));
}

/** Time to which a due job must be deferred because its chain is over the limit, or `null`. */
export function deferredUntil({ chain }: SchedulerDoc<"_scheduled_functions">): number | null {
  return chain === undefined || chain.putOff === true
    ? null
    : chainLimiter.deferUntil(chain.root, Date.now());
}

export async function deferJob(
  ctx: SchedulerMutationCtx,
  { _id, chain }: SchedulerDoc<"_scheduled_functions">,
  scheduledTime: number,
): Promise<void> {
  if (chain !== undefined) await ctx.db.patch(_id, { scheduledTime, chain: { ...chain, putOff: true } });
}

/** Lineage of functions called by a job: the root of its chain, or the job itself. */
export function lineageOf({ _id, chain }: SchedulerDoc<"_scheduled_functions">): Lineage {
  return { root: chain?.root ?? _id, generation: chain?.generation ?? 0 };
}

/** Inserts a job. Rejects system functions. */
export const schedule = systemMutation({
  args: {
    name: z.string().max(functionLimits.udfPathCharsMax),
    args: z.record(z.string(), z.unknown()),
    scheduledTime: z.number(),
    functionKind: functionKindSchema,
  },
  handler: async (ctx, job): Promise<Id<"_scheduled_functions">> => {
    if (isSystemPath(job.name)) {
      throw withHelp(new TypeError(`Cannot schedule "${job.name}": function not found`), "schedule");
    }
    if (job.scheduledTime - Date.now() > schedulerLimits.aheadMsMax + 60_000) {
      throw withHelp(new RangeError("Cannot schedule a function more than five years ahead"), "schedule");
    }
    const { current } = ctx.lineage;
    if (current === null) {
      return await ctx.db.insert("_scheduled_functions", { ...job, state: { kind: "pending" } });
    }
    const generation = current.generation + 1;
    let { scheduledTime } = job;
    if (generation > 1) {
      scheduledTime = chainLimiter.onScheduled(current.root, scheduledTime, Date.now());
      ctx.lineage.onUndone(() => void chainLimiter.onNotPending(current.root, false));
    }
    const putOff = scheduledTime > job.scheduledTime;
    const chain = { root: current.root, generation, ...(putOff && { putOff }) };
    return await ctx.db.insert("_scheduled_functions", {
      ...job,
      scheduledTime,
      state: { kind: "pending" },
      chain,
    });
  },
});

/** Cancels a pending or running job; does nothing if it has ended or was deleted. */
export const cancel = systemMutation({
  args: { id: z.string() },
  handler: async (ctx, { id }): Promise<void> => {
    const jobId = ctx.db.normalizeId("_scheduled_functions", id);
    if (jobId === null) throw new TypeError(`cancel() expects the ID of a scheduled function, got "${id}"`);
    const job = await ctx.db.get(jobId);
    if (job === null || (job.state.kind !== "pending" && job.state.kind !== "inProgress")) return;
    if (job.state.kind === "pending") onNotPending(ctx, job);
    await ctx.db.patch(jobId, { state: { kind: "canceled" }, completedTime: Date.now() });
  },
});
