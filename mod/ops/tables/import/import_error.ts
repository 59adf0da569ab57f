/** Why an import was refused or stopped, in words for the person who started it. */

/**
 * What an import failed of:
 * - `unknown_table`: the app has no such table;
 * - `bad_file`: rows or columns that cannot be imported; nothing was written;
 * - `failed`: the rows could not be checked; nothing was written;
 * - `stopped`: writing had begun and went no further; the message says how far it came.
 */
export type ImportErrorKind = "unknown_table" | "bad_file" | "failed" | "stopped";

export class ImportError extends Error {
  override readonly name = "ImportError";
  readonly kind: ImportErrorKind;

  constructor(kind: ImportErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
