/** Why an export cannot be made. */

/**
 * An export that is refused or that failed, in words for whoever asked for it:
 * - `unknown_table`: there is no such table to export;
 * - `bad_filter`: a filter that is not understood, or does not fit the table;
 * - `not_csv`: the documents do not fit into CSV;
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

/** The contents of a file that the snapshot names are not there. */
export class MissingFileError extends ExportError {
  /** Their name in the store. */
  readonly blob: string;

  constructor(id: string, blob: string) {
    super(
      "failed",
      `The contents of the file ${id} are not in the data folder: it was deleted just now, or the files lie in a bucket`,
    );
    this.blob = blob;
  }
}
