/** Data migrations: their steps, the runner of the server, and the actions of administrators and the CLI. */
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { adminMainAction, type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import { SystemCallError, type SystemCalls } from "../../functions/system_calls.ts";
import { yieldToEventLoop } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { deployLimits } from "../limits.ts";
import type { Step } from "./isolate_functions/migrations.ts";
import { system } from "./system.ts";
import { DRY_RUN_DONE } from "./tables.ts";

/** Initial batch size. */
const FIRST_ROWS = 16;

/** Errors that do not depend on the batch size. */
const NEVER_GOES = new Set(["migration_not_found", "unknown_function", "unknown_table"]);

export interface StepCall {
  readonly migrationId: string;
  /** Maximum number of documents. */
  readonly rows?: number | undefined;
  /** Whether the server takes the step on its own, which has no effect after a stop. */
  readonly onServer?: boolean;
}

/** `rows`: batch size for the next step. */
export type CompletedStep = Step & { readonly rows: number };

/** Migration steps: transactions whose batch size adapts to a target duration. */
export class MigrationSteps {
  readonly #calls: SystemCalls;
  readonly #now: () => number;

  constructor({ calls, now }: { readonly calls: SystemCalls; readonly now: () => number }) {
    this.#calls = calls;
    this.#now = now;
  }

  /** Halves a failing batch, so that a failing document is isolated. */
  async take({ migrationId, rows: wanted = FIRST_ROWS, onServer = false }: StepCall): Promise<CompletedStep> {
    for (let rows = wanted;; rows = Math.floor(rows / 2)) {
      const since = this.#now();
      try {
        const step = await this.#calls.mutate(system.migrationStep, {
          migrationId: migrationId as never,
          rows,
          onServer,
        });
        return { ...step, rows: nextRows(rows, this.#now() - since) };
      } catch (error) {
        // Running on its own, the server waits for a better moment.
        const later = onServer && error instanceof SystemCallError && error.retryable;
        if (rows === 1 || later || !mayBeTooMuch(error)) throw error;
      }
    }
  }
}

/** Whether a smaller batch may succeed, since a step has the limits of one mutation. */
function mayBeTooMuch(error: unknown): boolean {
  return !(error instanceof UserError) || !NEVER_GOES.has(error.code);
}

function nextRows(rows: number, ms: number): number {
  const aimed = Math.floor(rows * deployLimits.migrationStepMsAimed / Math.max(1, ms));
  return Math.max(1, Math.min(aimed, 2 * rows, deployLimits.migrationStepRowsMax));
}

export interface MigrationRunnerOptions {
  readonly calls: SystemCalls;
  readonly steps: MigrationSteps;
  readonly log: Log;
}

/**
 * Runs migrations on the server, independent of the clients that started them. Disposing of it stops them after their current
 * step; the next start resumes them.
 */
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
    for (const id of await this.#options.calls.queryInWriter(system.resumableMigrations, {})) this.run(id);
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

const target = { path: z.string(), table: z.string() };
/** `anew`: the former name of `fromStart`, which older commands send. */
const beginArgs = z.strictObject({
  ...target,
  fromStart: z.boolean().optional(),
  anew: z.boolean().default(false),
})
  .transform(({ anew, fromStart = anew, ...rest }) => ({ ...rest, fromStart }));

export interface MigrationActionsOptions {
  readonly calls: SystemCalls;
  readonly steps: MigrationSteps;
  readonly runner: MigrationRunner;
}

/** Creates the actions: they run a migration on the server, or take one step per call. */
export function migrationActions(
  { calls, steps, runner }: MigrationActionsOptions,
): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/migrations:begin",
      adminMainAction(beginArgs, (args) => calls.mutate(system.beginMigration, { ...args, onServer: false })),
    ],
    [
      "_admin/migrations:run",
      adminMainAction(beginArgs, async (args) => {
        const migration = await calls.mutate(system.beginMigration, { ...args, onServer: true });
        runner.run(migration.migrationId);
        return migration;
      }),
    ],
    [
      "_admin/migrations:step",
      unauditedAdminAction(
        z.strictObject({
          migrationId: z.string(),
          rows: z.int().min(1).max(deployLimits.migrationStepRowsMax).optional(),
        }),
        async (call) => {
          const { documents, done, rows } = await steps.take(call);
          return { documents, done, rows };
        },
      ),
    ],
    ["_admin/migrations:tryOut", unauditedAdminAction(z.strictObject(target), (args) => tryOut(calls, args))],
  ]);
}

async function tryOut(
  calls: SystemCalls,
  args: { readonly path: string; readonly table: string },
): Promise<unknown> {
  try {
    return await calls.mutate(system.tryMigration, { ...args, rows: deployLimits.migrationSampleMax });
  } catch (error) {
    if (error instanceof UserError && error.code === DRY_RUN_DONE) return error.data;
    throw error;
  }
}
