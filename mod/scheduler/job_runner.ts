/** Runs one job from its first step to its last, whatever fails on the way. */
import type { Log } from "../kit/log.ts";
import { anonymous } from "../functions/identity.ts";
import type { Outcome } from "../functions/outcome.ts";
import { isSystemPath } from "../functions/system_paths.ts";
import { functionLimits } from "../limits.ts";
import type { JobKind } from "./tables.ts";
import type { PendingJob } from "./due_queue.ts";
import type { RunResult } from "./isolate_functions/jobs.ts";
import { SystemCallError, type SystemCalls } from "../functions/system_calls.ts";
import { type SchedulerPort, system } from "./system.ts";

/** All that is scheduled stands in one line, beside the callers. */
export const SCHEDULED = { turn: "scheduled", blame: "scheduled" };

/**
 * `again`: nothing has happened and the job still waits; the server could not run it now. `at`: it waits for that time,
 * because too many of its kin do.
 */
export type JobEnd = "done" | "again" | { readonly at: number };

export interface JobRunnerOptions {
  readonly port: SchedulerPort;
  readonly calls: SystemCalls;
  readonly log: Log;
  /** Whether actions may begin here: somebody else may run what is scheduled by now. */
  readonly mayAct: () => boolean;
  /** Told how long a mutation kept the writer, in milliseconds. */
  readonly onMutation: (name: string, ms: number) => void;
  /** Resolves after a pause, to `false` when the scheduler closes: then nothing more is tried. */
  readonly pause: () => Promise<boolean>;
}

export class JobRunner {
  readonly #options: JobRunnerOptions;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  /** Runs a job of the kind it was scheduled as. Never rejects. */
  async run(job: PendingJob, kind: JobKind): Promise<JobEnd> {
    try {
      return kind === "mutation" ? await this.#runMutation(job) : await this.#runAction(job);
    } catch (error) {
      this.#options.log("error", "A scheduled function could not be run", { name: job.name, error });
      return "again";
    }
  }

  async #runMutation({ id, name }: PendingJob): Promise<JobEnd> {
    const { calls, log, onMutation } = this.#options;
    try {
      const { state, stack, ms, putOffTo } = await calls.mutate(system.jobs.runMutation, { id }, {
        caller: SCHEDULED,
        work: `scheduled ${name}`,
        seenAs: (outcome) => ({ udfPath: name, outcome: jobOutcome(outcome) }),
      });
      if (putOffTo !== undefined) return { at: putOffTo };
      if (state !== null) onMutation(name, ms);
      if (state?.kind === "failed") this.#tellFailure(name, state.error, stack);
      return "done";
    } catch (error) {
      if (!(error instanceof SystemCallError)) throw error;
      if (error.retryable) {
        log("warn", "A scheduled mutation could not be run now", { name, reason: error.reason });
        return "again";
      }
      onMutation(name, functionLimits.mutationTimeoutMs);
      // It ran over its time, or ended the writer: all of it was undone, its own end included.
      this.#tellFailure(name, error.reason);
      await this.#note(() => calls.mutate(system.jobs.fail, { id, error: error.reason }));
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
      await this.#note(() => calls.mutate(system.jobs.putBack, { id }));
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
      await this.#note(() => calls.mutate(system.jobs.putBack, { id }));
      return "again";
    }
    if (!outcome.ok) this.#tellFailure(name, outcome.error.message);
    const error = outcome.ok ? null : outcome.error.message;
    await this.#note(() => calls.mutate(system.jobs.finish, { id, error }));
    return "done";
  }

  /** Writes down what has happened, however often it takes; after a crash, the next start finds it half done and ends it. */
  async #note(write: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await write();
        return;
      } catch (error) {
        this.#options.log("warn", "The end of a scheduled function could not be written down", { error });
        if (!await this.#options.pause()) return;
      }
    }
  }

  #tellFailure(name: string, error: string, stack?: string): void {
    this.#options.log("warn", "A scheduled function failed", {
      name,
      error,
      ...(stack !== undefined && { stack }),
    });
  }
}

/** How the scheduled function itself ended: the service's own run, in which it is nested, succeeds when it fails. */
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
