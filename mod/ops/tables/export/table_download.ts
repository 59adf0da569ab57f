/**
 * Streams one table to a client from a snapshot of its own, at the client's pace and yielding to other work between pieces. The
 * snapshot is closed with the stream, when the client disconnects or stalls, and when the write-ahead log has grown too large,
 * since an old snapshot prevents its reuse.
 */
import { type ExportSnapshot, openExport } from "../../../engine/mod.ts";
import { ServiceError } from "../../../errors.ts";
import { yieldToEventLoop } from "../../../kit/clock.ts";
import { namedTables } from "./exported_tables.ts";
import type { TableFormat } from "../mod.ts";
import { type DocumentFilter, type ExportPiece, exportPieces, parseFilter } from "./pieces.ts";

const TOO_LONG = "The export timed out";
const LOG_TOO_LARGE =
  "The write-ahead log grew too large during the export. Read the response faster, or use the export command";
const LOG_TOO_LARGE_AT_FIRST =
  "The write-ahead log grew too large before the export had any output. Try again with fewer writes, or use the export command";

export interface TableDownloadOptions {
  readonly databasePath: string;
  readonly table: string;
  readonly format: TableFormat;
  /** Filter as JSON from the client; all documents without it. */
  readonly where?: string | undefined;
  /** Maximum time without reads, and maximum total time. */
  readonly stallMs: number;
  readonly msMax: number;
  /** Maximum size of the write-ahead log, and the interval of checks. */
  readonly logBytesMax: number;
  readonly logCheckMs: number;
  /** Called once when the snapshot is closed, with the error if there was one. */
  readonly onEnd: (error: unknown) => void;
}

export class TableDownload implements UnderlyingByteSource {
  readonly type = "bytes";
  readonly #options: TableDownloadOptions;
  readonly #snapshot: ExportSnapshot;
  readonly #pieces: Generator<ExportPiece, void, void>;
  readonly #encoder = new TextEncoder();
  readonly #lastMoment: number;
  readonly #logBytesMax: number;
  #first: IteratorResult<ExportPiece, void> | null = null;
  #stall: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;
  #open = true;

  /** Opens the snapshot. Throws an `ExportError` for an unknown table or an invalid filter, without calling `onEnd`. */
  constructor(options: TableDownloadOptions) {
    this.#options = options;
    const shown: DocumentFilter | undefined = options.where === undefined
      ? undefined
      : parseFilter(options.where);
    this.#lastMoment = performance.now() + options.msMax;
    // A log that was large before may be reused from its start; only further growth is due to the snapshot.
    this.#logBytesMax = Math.max(options.logBytesMax, logBytes(options.databasePath));
    this.#snapshot = openExport(options.databasePath);
    try {
      namedTables(this.#snapshot, [options.table]);
    } catch (error) {
      this.#snapshot[Symbol.dispose]();
      throw error;
    }
    this.#pieces = exportPieces(this.#snapshot, { ...options, shown });
  }

  /** Reads until the table is known to be representable. Rejects otherwise, on abort, or at a limit of time or log size. */
  async prepare(signal: AbortSignal): Promise<void> {
    try {
      for (let isFirst = true;; isFirst = false) {
        await yieldToEventLoop();
        signal.throwIfAborted();
        const reason = isFirst ? null : this.#exceededLimit();
        if (reason !== null) throw new ServiceError("overloaded", reason);
        this.#first = this.#pieces.next();
        const { done, value } = this.#first;
        if (done === true || value.text !== "" || this.#options.format !== "csv") return;
      }
    } catch (error) {
      this.#end(error instanceof ServiceError ? error : null);
      throw error;
    }
  }

  /** Starts the stall timer, for a client that never reads, and the checks of the log. */
  start(controller: ReadableByteStreamController): void {
    this.#watch = setInterval(() => {
      if (this.#logIsTooLarge()) this.#break(controller, new Error(LOG_TOO_LARGE));
    }, this.#options.logCheckMs);
    this.#awaitClient(controller);
  }

  async pull(controller: ReadableByteStreamController): Promise<void> {
    clearTimeout(this.#stall);
    try {
      for (;;) {
        await yieldToEventLoop();
        if (!this.#open) return;
        const { done, value } = this.#first ?? this.#pieces.next();
        this.#first = null;
        if (done === true) {
          this.#end(null);
          controller.close();
          // A pending read of a byte stream must be answered.
          controller.byobRequest?.respond(0);
          return;
        }
        if (performance.now() > this.#lastMoment) throw new Error(TOO_LONG);
        if (value.text === "") continue;
        controller.enqueue(this.#encoder.encode(value.text));
        return this.#awaitClient(controller);
      }
    } catch (error) {
      this.#end(error);
      throw error;
    }
  }

  cancel(): void {
    this.#end(null);
  }

  /** Reason to close the snapshot before any output, or `null`. */
  #exceededLimit(): string | null {
    if (performance.now() > this.#lastMoment) return TOO_LONG;
    return this.#logIsTooLarge() ? LOG_TOO_LARGE_AT_FIRST : null;
  }

  #logIsTooLarge(): boolean {
    return logBytes(this.#options.databasePath) > this.#logBytesMax;
  }

  #awaitClient(controller: ReadableByteStreamController): void {
    this.#stall = setTimeout(
      () => this.#break(controller, new Error("The client stopped reading the export")),
      this.#options.stallMs,
    );
  }

  #break(controller: ReadableByteStreamController, error: Error): void {
    this.#end(error);
    controller.error(error);
  }

  #end(error: unknown): void {
    if (!this.#open) return;
    this.#open = false;
    clearTimeout(this.#stall);
    clearInterval(this.#watch);
    this.#pieces.return();
    this.#snapshot[Symbol.dispose]();
    this.#options.onEnd(error);
  }
}

function logBytes(databasePath: string): number {
  try {
    return Deno.statSync(`${databasePath}-wal`).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
