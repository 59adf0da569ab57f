/** Reads a log in a separate process, so that downloads and checks do not block this one. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { FromProcess } from "../process/messages.ts";
import { ReplicaProcess } from "../process/replica_process.ts";
import { LocationError, locationText, type ObjectLocation } from "../../../kit/locations/object_store.ts";
import { type CommitLog, type LogBatch, LogGapError, type LogPosition } from "./follower.ts";

export interface ProcessLogOptions {
  readonly dataDir: string;
  readonly target: ObjectLocation;
  /** Interval between polls of the target. */
  readonly everyMs: number;
}

interface Reading {
  readonly items: JournalRow[];
  /** Body of a row so far, in pieces. */
  body: string[];
  readonly answer: PromiseWithResolvers<LogBatch<JournalRow>>;
}

export class ProcessLog implements CommitLog<JournalRow> {
  readonly #options: ProcessLogOptions;
  /** `null` before the first read and after it has exited. The next read starts one. */
  #process: ReplicaProcess | null = null;
  #reading: Reading | null = null;

  constructor(options: ProcessLogOptions) {
    this.#options = options;
  }

  get location(): string {
    return locationText(this.#options.target);
  }

  async read(
    after: LogPosition,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LogBatch<JournalRow>> {
    signal.throwIfAborted();
    const process = this.#process ?? await this.#start();
    const reading: Reading = { items: [], body: [], answer: Promise.withResolvers() };
    const abort = () => reading.answer.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    this.#reading = reading;
    process.send({ type: "ReadLog", after });
    return await reading.answer.promise.finally(() => {
      signal.removeEventListener("abort", abort);
      this.#reading = null;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const process = this.#process;
    this.#process = null;
    // It has no state that could be lost.
    process?.kill();
    await process?.ended;
  }

  async #start(): Promise<ReplicaProcess> {
    const { dataDir, target, everyMs } = this.#options;
    const process = await ReplicaProcess.start(
      { type: "Begin", work: "follow", dataDir, target, everyMs },
      (message) => this.#onMessage(message),
    );
    this.#process = process;
    void process.ended.then(() => {
      if (this.#process === process) this.#process = null;
      this.#reading?.answer.reject(new Error("The process that reads the replica has exited"));
    });
    return process;
  }

  #onMessage(message: FromProcess): void {
    const reading = this.#reading;
    if (reading === null) return;
    switch (message.type) {
      case "LogRow": {
        const { row: [seq, tsBefore, ts, at, sum], piece, more } = message;
        reading.body.push(piece);
        if (more) return;
        const [whole = ""] = reading.body.length === 1 ? reading.body : [reading.body.join("")];
        reading.items.push({ seq, tsBefore, ts, at, sum, body: whole });
        reading.body = [];
        break;
      }
      case "LogBatch": {
        const { newestTs, checkedAt } = message;
        reading.answer.resolve({ items: reading.items, newestTs, checkedAt });
        break;
      }
      case "LogFault":
        reading.answer.reject(
          message.fault === "gap"
            ? new LogGapError(message.message)
            : new LocationError(message.fault, message.message),
        );
        break;
      default:
        throw new TypeError(`A process that follows does not send ${message.type}`);
    }
  }
}
