/**
 * One table on its way to a client: a stream that reads from a snapshot of its own as fast as the client takes it, and
 * lets the process do other work before each piece. The snapshot ends with the stream, when the client goes away, when it
 * takes nothing for too long, and when the write-ahead log has become too large: writers pay for an old snapshot with a log
 * that grows.
 */
import { type ExportSnapshot, openExport } from "../../../engine/mod.ts";
import { ServiceError } from "../../../errors.ts";
import { yieldToEventLoop } from "../../../kit/event_loop.ts";
import { namedTables } from "./exported_tables.ts";
import type { TableFormat } from "../formats.ts";
import { exportPieces } from "./pieces.ts";
import type { ExportPiece } from "./export_piece.ts";
import { type Shown, shownOf } from "./shown_documents.ts";

const TOO_LONG = "The export took too long";
const LOG_TOO_LARGE =
  "The write-ahead log grew too large while the client took the export; take it faster, or use the command";
const LOG_TOO_LARGE_AT_FIRST =
  "The write-ahead log grew too large before the export had any text; try again when less is written, or use the command";

export interface TableDownloadOptions {
  readonly databasePath: string;
  readonly table: string;
  readonly format: TableFormat;
  /** Which of its documents: JSON, as clients give it. All without. */
  readonly where?: string | undefined;
  /** The client may take nothing for this long, and may take this long for all. */
  readonly stallMs: number;
  readonly msMax: number;
  /** How large the write-ahead log may become meanwhile, and the time between two looks at it. */
  readonly logBytesMax: number;
  readonly logCheckMs: number;
  /** Called once when the snapshot has ended, with the reason when something went wrong. */
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

  /** Opens the snapshot. Throws an `ExportError` for an unknown table and a filter that is none, without a call of `onEnd`. */
  constructor(options: TableDownloadOptions) {
    this.#options = options;
    const shown: Shown | undefined = options.where === undefined ? undefined : shownOf(options.where);
    this.#lastMoment = performance.now() + options.msMax;
    // A log that was large before may be used again from its beginning: only when it grows it is the snapshot's doing.
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

  /**
   * Reads as far as is needed to know whatever the table does not fit: for CSV up to the first text. Rejects with it, when
   * the signal says so, and with a `ServiceError` when it takes too long or too much of a log.
   */
  async prepare(signal: AbortSignal): Promise<void> {
    try {
      for (let isFirst = true;; isFirst = false) {
        await yieldToEventLoop();
        signal.throwIfAborted();
        const reason = isFirst ? null : this.#tooMuch();
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

  /** Arms the clock for a client that never begins to read, and the look at the log. */
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
          // A pending read of a byte stream ends only with an answer to it.
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

  /** Why the snapshot must end before there was any text; `null` when it need not. */
  #tooMuch(): string | null {
    if (performance.now() > this.#lastMoment) return TOO_LONG;
    return this.#logIsTooLarge() ? LOG_TOO_LARGE_AT_FIRST : null;
  }

  #logIsTooLarge(): boolean {
    return logBytes(this.#options.databasePath) > this.#logBytesMax;
  }

  #awaitClient(controller: ReadableByteStreamController): void {
    this.#stall = setTimeout(
      () => this.#break(controller, new Error("The client took nothing of the export for too long")),
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

/** Size of a database's write-ahead log. */
function logBytes(databasePath: string): number {
  try {
    return Deno.statSync(`${databasePath}-wal`).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
