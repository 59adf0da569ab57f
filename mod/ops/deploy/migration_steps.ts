/** Steps of migrations, each one transaction that takes as many documents as go through in a short time. */
import { UserError } from "../../errors.ts";
import { SystemCallError, type SystemCalls } from "../../functions/system_calls.ts";
import { deployLimits } from "../limits.ts";
import type { Step } from "./isolate_functions/migrations.ts";
import { system } from "./system.ts";

/** Steps grow and shrink with how long the last one took. */
const FIRST_ROWS = 16;

/** What is refused whatever the number of documents. */
const NEVER_GOES = new Set(["migration_not_found", "unknown_function", "unknown_table"]);

export interface StepCall {
  readonly migrationId: string;
  /** Documents to take at most. */
  readonly rows?: number | undefined;
  /** Whether the server takes it by itself: then nothing is done once that was stopped. */
  readonly onServer?: boolean;
}

/** `rows`: what the next step should take. */
export type TakenStep = Step & { readonly rows: number };

export class MigrationSteps {
  readonly #calls: SystemCalls;
  readonly #now: () => number;

  constructor({ calls, now }: { readonly calls: SystemCalls; readonly now: () => number }) {
    this.#calls = calls;
    this.#now = now;
  }

  /** A step that fails is tried with half of its documents, so that the one at fault is met alone. */
  async take({ migrationId, rows: wanted = FIRST_ROWS, onServer = false }: StepCall): Promise<TakenStep> {
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
        // By itself the server waits for a better moment.
        const later = onServer && error instanceof SystemCallError && error.retryable;
        if (rows === 1 || later || !mayBeTooMuch(error)) throw error;
      }
    }
  }
}

/** Whether fewer documents may go through: a step has the limits of one mutation. */
function mayBeTooMuch(error: unknown): boolean {
  return !(error instanceof UserError) || !NEVER_GOES.has(error.code);
}

/** How many documents the next step takes. */
function nextRows(rows: number, ms: number): number {
  const aimed = Math.floor(rows * deployLimits.migrationStepMsAimed / Math.max(1, ms));
  return Math.max(1, Math.min(aimed, 2 * rows, deployLimits.migrationStepRowsMax));
}
