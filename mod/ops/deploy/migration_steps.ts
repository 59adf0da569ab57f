/** Migration steps: transactions whose batch size adapts to a target duration. */
import { UserError } from "../../errors.ts";
import { SystemCallError, type SystemCalls } from "../../functions/system_calls.ts";
import { deployLimits } from "../limits.ts";
import type { Step } from "./isolate_functions/migrations.ts";
import { system } from "./system.ts";

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
