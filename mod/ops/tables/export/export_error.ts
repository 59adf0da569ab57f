/**
 * A rejected or failed export, with a message for the user:
 * - `unknown_table`: no exportable table has this name;
 * - `bad_filter`: the filter is invalid or does not match the table;
 * - `not_csv`: the documents cannot be represented in CSV;
 * - `failed`: files could not be written.
 */
export class ExportError extends Error {
  override readonly name = "ExportError";
  readonly code: "unknown_table" | "bad_filter" | "not_csv" | "failed";

  constructor(code: ExportError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The contents of a file referenced by the snapshot are missing. */
export class MissingFileError extends ExportError {
  /** Name of the blob. */
  readonly blob: string;

  constructor(id: string, blob: string) {
    super(
      "failed",
      `The contents of file ${id} are not in the data folder: the file was just deleted, or files are in a bucket`,
    );
    this.blob = blob;
  }
}
