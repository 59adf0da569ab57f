/** Imports over HTTP: the status of the running and the last one, for clients that reconnect, and errors of files. */

/** A syntax error of a file, at which reading stops. */
export class FileFault extends Error {
  override readonly name = "FileFault";
  /** Starts at 1. */
  readonly line: number;

  constructor(line: number, reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.line = line;
  }
}

/**
 * Reason of a failed import:
 * - `unknown_table`: the app has no such table;
 * - `bad_file`: invalid rows or columns; nothing was written;
 * - `failed`: the rows could not be checked; nothing was written;
 * - `stopped`: writing was interrupted; the message contains the progress.
 */
export type ImportErrorKind = "unknown_table" | "bad_file" | "failed" | "stopped";

export interface FileRowFault {
  /** Starts at 1; `null` for the file as a whole. */
  readonly line: number | null;
  readonly message: string;
}

/** Errors of imports, with messages for users. */
export class ImportError extends Error {
  override readonly name = "ImportError";
  readonly kind: ImportErrorKind;
  /** Invalid rows, at most `importFaultsMax`. */
  readonly faults: readonly FileRowFault[];

  constructor(
    kind: ImportErrorKind,
    message: string,
    { faults = [], ...options }: ErrorOptions & { readonly faults?: readonly FileRowFault[] } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.faults = faults;
  }
}

export interface RunningImport {
  readonly table: string;
  /** Whether nothing will be written. */
  readonly dryRun: boolean;
  readonly step: "receiving" | "checking" | "deleting" | "writing";
  /** Bytes processed, and the total or `null` if unknown. */
  readonly done: number;
  readonly of: number | null;
  /** Rows checked, rows written or documents deleted in this step. */
  readonly rows: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

export interface FinishedImport {
  readonly table: string;
  readonly dryRun: boolean;
  readonly endedAt: number;
  /** Rows written; `null` for failed imports and dry runs. */
  readonly imported: number | null;
  /** Reason of a failure. */
  readonly error: string | null;
}

export class ImportStatus {
  readonly #now: () => number;
  #running: RunningImport | null = null;
  #last: FinishedImport | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  get current(): { readonly running: RunningImport | null; readonly last: FinishedImport | null } {
    return { running: this.#running, last: this.#last };
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  begin(what: Pick<RunningImport, "table" | "dryRun" | "of">): void {
    this.#running = { ...what, step: "receiving", done: 0, rows: 0, startedAt: this.#now() };
  }

  update(progress: Partial<Pick<RunningImport, "step" | "done" | "of" | "rows">>): void {
    if (this.#running !== null) this.#running = { ...this.#running, ...progress };
  }

  end(
    { imported = null, error = null }: { readonly imported?: number | null; readonly error?: string | null },
  ): void {
    if (this.#running === null) return;
    const { table, dryRun } = this.#running;
    this.#last = { table, dryRun, endedAt: this.#now(), imported, error };
    this.#running = null;
  }
}
