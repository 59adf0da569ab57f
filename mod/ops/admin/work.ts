/** Does the long work of administrators step by step, each step a transaction that notes how far it came. */
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { yieldToEventLoop } from "../../kit/event_loop.ts";
import type { ImportMode } from "../tables/import/modes.ts";
import type { Where } from "./where_args.ts";
import { system } from "./system.ts";

export interface AdminWorkOptions {
  readonly calls: SystemCalls;
  readonly now: () => number;
  readonly log: Log;
}

/** An import whose rows are there and not yet checked. */
export interface ImportBegun {
  readonly table: string;
  readonly mode: ImportMode;
  /** Id of an administrator. */
  readonly startedBy: string;
}

/** Disposing of it ends works after their step; the next start tells that they were interrupted. */
export class AdminWork implements AsyncDisposable {
  readonly #options: AdminWorkOptions;
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(options: AdminWorkOptions) {
    this.#options = options;
  }

  /** To be called once before the first work: what the server's last life left running does not run any more. */
  async start(): Promise<void> {
    const { calls, log } = this.#options;
    try {
      await calls.mutate(system.interruptWork, {});
    } catch (error) {
      log("warn", "Interrupted work of administrators could not be marked", { error });
    }
  }

  /** Begins to delete the documents meant, as far as they are there now. Resolves to the work's id at once. */
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

  /** Writes down that an import begins, which others do. Resolves to the work's id. */
  async beginImport(about: ImportBegun): Promise<string> {
    return await this.#options.calls.mutate(system.beginImport, about);
  }

  /** Writes down how an import has ended; `error`: why it failed. Never rejects. */
  async endImport(workId: string, error: string | null): Promise<void> {
    const { calls, log } = this.#options;
    try {
      await calls.mutate(system.endImport, { workId: workId as never, error });
    } catch (fault) {
      log("warn", "The end of an import could not be written down", { workId, error: fault });
    }
  }

  /** Resolves when no work is under way. */
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
        // Others come in between: the writer has one queue.
        await yieldToEventLoop();
        cursor = await step(cursor);
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "A work of an administrator failed", { workId, reason });
      await calls.mutate(system.failWork, { workId: workId as never, error: reason }).catch((fault) =>
        log("error", "The end of a work could not be written down", { workId, error: fault })
      );
    }
  }
}
