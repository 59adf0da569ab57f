/** Errors of imports, with messages for users. */

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
