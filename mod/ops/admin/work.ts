/** Runs administrators' background tasks in steps, each a transaction that records its progress. */
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { yieldToEventLoop } from "../../kit/clock.ts";
import type { ImportMode } from "../tables/mod.ts";
import type { Where } from "./where_args.ts";
import { system } from "./system.ts";

export interface AdminWorkOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
  readonly log: Log;
}

/** A received import whose rows are not checked yet. */
export interface StartedImport {
  readonly table: string;
  readonly mode: ImportMode;
  readonly startedBy: string;
}

/** Disposing of it stops tasks after their current step; the next start marks them as interrupted. */
export class AdminWork implements AsyncDisposable {
  readonly #options: AdminWorkOptions;
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(options: AdminWorkOptions) {
    this.#options = options;
  }

  /** Call once before the first task. Marks tasks left running by the previous process as interrupted. */
  async start(): Promise<void> {
    const { calls, log } = this.#options;
    try {
      await calls.mutate(system.interruptWork, {});
    } catch (error) {
      log("warn", "Cannot mark interrupted background tasks", { error });
    }
  }

  /** Starts deleting the documents selected at this time. Resolves immediately with the task's ID. */
  async deleteDocuments(where: Where, startedBy: string): Promise<string> {
    const { calls, now } = this.#options;
    const workId = await calls.mutate(system.beginDelete, { table: where.table, startedBy });
    const until = now();
    const work = this.#steps(workId, async (cursor: string | null) => {
      const step = await calls.mutate(system.deleteStep, { ...where, workId, cursor, until });
      return step.cursor;
    }).finally(() => this.#running.delete(work));
    this.#running.add(work);
    return workId;
  }

  /** Records the start of an import, which the importer runs. Resolves with the task's ID. */
  async beginImport(about: StartedImport): Promise<string> {
    return await this.#options.calls.mutate(system.beginImport, about);
  }

  /** Records the end of an import; `error` is the reason of a failure. Never rejects. */
  async endImport(workId: string, error: string | null): Promise<void> {
    const { calls, log } = this.#options;
    try {
      await calls.mutate(system.endImport, { workId: workId as never, error });
    } catch (fault) {
      log("warn", "Cannot record the end of an import", { workId, error: fault });
    }
  }

  /** Resolves when no task is running. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.settled();
  }

  async #steps(workId: string, step: (cursor: string | null) => Promise<string | null>): Promise<void> {
    const { calls, log } = this.#options;
    try {
      let cursor = await step(null);
      while (cursor !== null && !this.#closed) {
        // Other calls run in between, because the writer has one queue.
        await yieldToEventLoop();
        cursor = await step(cursor);
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "Background task failed", { workId, reason });
      await calls.mutate(system.failWork, { workId: workId as never, error: reason }).catch((fault) =>
        log("error", "Cannot record the end of a background task", { workId, error: fault })
      );
    }
  }
}
