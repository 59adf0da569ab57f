/** Runs migrations on the server in steps, independent of the client that started them, and resumes them at startup. */
import { setTimeout as wait } from "node:timers/promises";
import { SystemCallError, type SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { yieldToEventLoop } from "../../kit/clock.ts";
import { deployLimits } from "../limits.ts";
import type { CompletedStep, MigrationSteps } from "./migration_steps.ts";
import { system } from "./system.ts";

export interface MigrationRunnerOptions {
  readonly calls: SystemCalls;
  readonly steps: MigrationSteps;
  readonly log: Log;
}

/** Disposing of it stops migrations after their current step; the next start resumes them. */
export class MigrationRunner implements AsyncDisposable {
  readonly #options: MigrationRunnerOptions;
  /** By ID. */
  readonly #running = new Map<string, Promise<void>>();
  /** Running migrations requested again: their last step may have preceded the restart. */
  readonly #again = new Set<string>();
  #looking: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(options: MigrationRunnerOptions) {
    this.#options = options;
  }

  /** Resumes migrations left running by the previous process, retrying if they cannot be read yet. */
  async start(): Promise<void> {
    try {
      await this.#resume();
    } catch (error) {
      this.#options.log("error", "Cannot resume migrations yet", { error });
      this.#looking = this.#resumeLater();
    }
  }

  /** Runs a migration, unless it is running. */
  run(migrationId: string): void {
    if (this.#closing.signal.aborted) return;
    if (this.#running.has(migrationId)) {
      this.#again.add(migrationId);
      return;
    }
    const work = this.#runToEnd(migrationId).finally(() => {
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

  async #resume(): Promise<void> {
    for (const id of await this.#options.calls.query(system.resumableMigrations, {})) this.run(id);
  }

  async #resumeLater(): Promise<void> {
    for (let waitMs: number = deployLimits.migrationRetryMs;; waitMs *= 2) {
      if (!await this.#waited(waitMs)) return;
      try {
        return await this.#resume();
      } catch (error) {
        this.#options.log("debug", "Cannot read running migrations yet", { error });
      }
    }
  }

  async #runToEnd(migrationId: string): Promise<void> {
    const { calls, log } = this.#options;
    const { signal } = this.#closing;
    try {
      let rows: number | undefined;
      while (!signal.aborted) {
        const step = await this.#step(migrationId, rows);
        if (step === null || step.done || step.halted) return;
        rows = step.rows;
        // Other calls run in between, because the writer has one queue.
        await yieldToEventLoop();
      }
    } catch (error) {
      // A server stop is not a failure of the migration.
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "Migration stopped", { migrationId, reason });
      // If this fails too, the next start repeats the step.
      await calls.mutate(system.stopMigration, { migrationId: migrationId as never, error: reason })
        .catch((fault) => log("error", "Cannot record that a migration has stopped", { error: fault }));
    }
  }

  /** Takes a step, retrying temporary failures with growing delays; `null` if the server stops. */
  async #step(migrationId: string, rows: number | undefined): Promise<CompletedStep | null> {
    for (let waitMs: number = deployLimits.migrationRetryMs;; waitMs *= 2) {
      try {
        return await this.#options.steps.take({ migrationId, rows, onServer: true });
      } catch (error) {
        if (!(error instanceof SystemCallError) || !error.retryable) throw error;
        if (!await this.#waited(waitMs)) return null;
      }
    }
  }

  /** Waits; returns whether the server is still running. */
  async #waited(ms: number): Promise<boolean> {
    const { signal } = this.#closing;
    await wait(Math.min(ms, deployLimits.migrationRetryMsMax), undefined, { signal }).catch(() => {});
    return !signal.aborted;
  }
}
