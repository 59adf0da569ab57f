/** Why an import was refused or stopped, in words for the person who started it. */

/**
 * What an import failed of:
 * - `unknown_table`: the app has no such table;
 * - `bad_file`: rows or columns that cannot be imported; nothing was written;
 * - `failed`: the rows could not be checked; nothing was written;
 * - `stopped`: writing had begun and went no further; the message says how far it came.
 */
export type ImportErrorKind = "unknown_table" | "bad_file" | "failed" | "stopped";

/** What is wrong with a row of a file. */
export interface FileRowFault {
  /** Counted from 1; `null` for the file as a whole. */
  readonly line: number | null;
  readonly message: string;
}

export class ImportError extends Error {
  override readonly name = "ImportError";
  readonly kind: ImportErrorKind;
  /** Rows that do not fit, one by one: up to `importFaultsMax`. */
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
