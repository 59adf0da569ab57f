/** Runs migrations on the server, step by step: whoever began one may leave, and a start goes on with what was under way. */
import { setTimeout as wait } from "node:timers/promises";
import { SystemCallError, type SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { yieldToEventLoop } from "../../kit/event_loop.ts";
import { deployLimits } from "../limits.ts";
import type { MigrationSteps, TakenStep } from "./migration_steps.ts";
import { system } from "./system.ts";

export interface MigrationRunnerOptions {
  readonly calls: SystemCalls;
  readonly steps: MigrationSteps;
  readonly log: Log;
}

/** Disposing of it ends each migration behind the step under way; the next start goes on from there. */
export class MigrationRunner implements AsyncDisposable {
  readonly #options: MigrationRunnerOptions;
  /** By id. */
  readonly #running = new Map<string, Promise<void>>();
  /** Of those, the ones that were to be run meanwhile: their last step may have been taken before they were marked anew. */
  readonly #again = new Set<string>();
  #looking: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(options: MigrationRunnerOptions) {
    this.#options = options;
  }

  /** Goes on with what the server's last life had under way. Where that cannot be read yet, it is looked for later. */
  async start(): Promise<void> {
    try {
      await this.#goOn();
    } catch (error) {
      this.#options.log("error", "Migrations that were under way are gone on with later", { error });
      this.#looking = this.#lookAgain();
    }
  }

  /** Begins to run one that is marked so; one that runs already goes on as it does. */
  run(migrationId: string): void {
    if (this.#closing.signal.aborted) return;
    if (this.#running.has(migrationId)) {
      this.#again.add(migrationId);
      return;
    }
    const work = this.#toItsEnd(migrationId).finally(() => {
      this.#running.delete(migrationId);
      if (this.#again.delete(migrationId)) this.run(migrationId);
    });
    this.#running.set(migrationId, work);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#looking;
    await Promise.all(this.#running.values());
  }

  async #goOn(): Promise<void> {
    for (const id of await this.#options.calls.query(system.migrationsUnderWay, {})) this.run(id);
  }

  async #lookAgain(): Promise<void> {
    for (let waitMs: number = deployLimits.migrationRetryMs;; waitMs *= 2) {
      if (!await this.#waited(waitMs)) return;
      try {
        return await this.#goOn();
      } catch (error) {
        this.#options.log("debug", "Migrations that were under way cannot be read yet", { error });
      }
    }
  }

  async #toItsEnd(migrationId: string): Promise<void> {
    const { calls, log } = this.#options;
    const { signal } = this.#closing;
    try {
      let rows: number | undefined;
      while (!signal.aborted) {
        const step = await this.#step(migrationId, rows);
        if (step === null || step.done || step.halted) return;
        rows = step.rows;
        // Others come in between: the writer has one queue.
        await yieldToEventLoop();
      }
    } catch (error) {
      // What ended with the server is no failure of the migration.
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "A migration has stopped", { migrationId, reason });
      // Where even that cannot be written down, the next start tries the same step again.
      await calls.mutate(system.stopMigration, { migrationId: migrationId as never, error: reason })
        .catch((fault) =>
          log("error", "That a migration has stopped could not be written down", { error: fault })
        );
    }
  }

  /** A step that came at a bad moment is taken again, less and less often; `null` when the server ends meanwhile. */
  async #step(migrationId: string, rows: number | undefined): Promise<TakenStep | null> {
    for (let waitMs: number = deployLimits.migrationRetryMs;; waitMs *= 2) {
      try {
        return await this.#options.steps.take({ migrationId, rows, onServer: true });
      } catch (error) {
        if (!(error instanceof SystemCallError) || !error.retryable) throw error;
        if (!await this.#waited(waitMs)) return null;
      }
    }
  }

  /** Whether the server is still there after a bounded wait. */
  async #waited(ms: number): Promise<boolean> {
    const { signal } = this.#closing;
    await wait(Math.min(ms, deployLimits.migrationRetryMsMax), undefined, { signal }).catch(() => {});
    return !signal.aborted;
  }
}
