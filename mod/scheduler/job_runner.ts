/** Runs one job and records its result, retrying on server failures. */
import type { Log } from "../kit/log.ts";
import { anonymous } from "../functions/identity.ts";
import type { Outcome } from "../functions/outcome.ts";
import { isSystemPath } from "../functions/system_module.ts";
import { functionLimits } from "../limits.ts";
import type { JobKind } from "./tables.ts";
import type { PendingJob } from "./due_queue.ts";
import type { RunResult } from "./isolate_functions/jobs.ts";
import { SystemCallError, type SystemCalls } from "../functions/system_calls.ts";
import { type SchedulerPort, system } from "./system.ts";

/** Caller identity of scheduled functions: they share one fair queue slot. */
export const SCHEDULED = { queueKey: "scheduled", blame: "scheduled" };

/** `again`: the job is still pending, because the server cannot run it now. `at`: deferred to that time. */
export type JobEnd = "done" | "again" | { readonly at: number };

export interface JobRunnerOptions {
  readonly port: SchedulerPort;
  readonly calls: SystemCalls;
  readonly log: Log;
  /** Whether this server may start actions; another one may have taken over. */
  readonly mayAct: () => boolean;
  /** Called with the time a mutation occupied the writer, in milliseconds. */
  readonly onMutation: (name: string, ms: number) => void;
  /** Resolves after a delay, or with `false` when the scheduler closes. */
  readonly pause: () => Promise<boolean>;
}

export class JobRunner {
  readonly #options: JobRunnerOptions;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  /** Runs a job as the kind it was scheduled as. Never rejects. */
  async run(job: PendingJob, kind: JobKind): Promise<JobEnd> {
    try {
      return kind === "mutation" ? await this.#runMutation(job) : await this.#runAction(job);
    } catch (error) {
      this.#options.log("error", "Cannot run scheduled function", { name: job.name, error });
      return "again";
    }
  }

  async #runMutation({ id, name }: PendingJob): Promise<JobEnd> {
    const { calls, log, onMutation } = this.#options;
    try {
      const { state, stack, ms, putOffTo } = await calls.mutate(system.jobs.runMutation, { id }, {
        caller: SCHEDULED,
        work: `scheduled ${name}`,
        reportAs: (outcome) => ({ udfPath: name, outcome: jobOutcome(outcome) }),
      });
      if (putOffTo !== undefined) return { at: putOffTo };
      if (state !== null) onMutation(name, ms);
      if (state?.kind === "failed") this.#logFailure(name, state.error, stack);
      return "done";
    } catch (error) {
      if (!(error instanceof SystemCallError)) throw error;
      if (error.retryable) {
        log("warn", "Cannot run scheduled mutation yet", { name, reason: error.reason });
        return "again";
      }
      onMutation(name, functionLimits.mutationTimeoutMs);
      // A timeout or a lost writer rolled everything back, including the result.
      this.#logFailure(name, error.reason);
      await this.#record(() => calls.mutate(system.jobs.fail, { id, error: error.reason }));
      return "done";
    }
  }

  async #runAction({ id, name }: PendingJob): Promise<JobEnd> {
    const { calls, port, mayAct } = this.#options;
    let begun;
    try {
      begun = await calls.mutate(system.jobs.begin, { id });
    } catch (error) {
      if (error instanceof SystemCallError && error.retryable) return "again";
      throw error;
    }
    if (begun === null) return "done";
    if (typeof begun === "number") return { at: begun };
    if (!mayAct()) {
      await this.#record(() => calls.mutate(system.jobs.requeue, { id }));
      return "again";
    }
    const origin = isSystemPath(begun.name) ? "system" : "server";
    const outcome = await port.act({
      udfPath: begun.name,
      args: begun.args,
      identity: anonymous,
      origin,
      caller: SCHEDULED,
      lineage: begun.lineage,
    });
    if (!outcome.ok && outcome.error.retryable) {
      await this.#record(() => calls.mutate(system.jobs.requeue, { id }));
      return "again";
    }
    if (!outcome.ok) this.#logFailure(name, outcome.error.message);
    const error = outcome.ok ? null : outcome.error.message;
    await this.#record(() => calls.mutate(system.jobs.finish, { id, error }));
    return "done";
  }

  /** Retries until a result is recorded. After a crash, the next start marks the job as interrupted. */
  async #record(write: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await write();
        return;
      } catch (error) {
        this.#options.log("warn", "Cannot record the result of a scheduled function", { error });
        if (!await this.#options.pause()) return;
      }
    }
  }

  #logFailure(name: string, error: string, stack?: string): void {
    this.#options.log("warn", "Scheduled function failed", {
      name,
      error,
      ...(stack !== undefined && { stack }),
    });
  }
}

/** Outcome of the scheduled function itself: the surrounding system function succeeds even if the job fails. */
function jobOutcome(outcome: Outcome): Outcome {
  if (!outcome.ok) return outcome;
  const { state, stack } = JSON.parse(outcome.value) as RunResult;
  if (state?.kind !== "failed") return outcome;
  const error = {
    kind: "internal",
    message: state.error,
    data: null,
    ...(stack !== undefined && { stack }),
  } as const;
  return { ok: false, error, logLines: outcome.logLines };
}
