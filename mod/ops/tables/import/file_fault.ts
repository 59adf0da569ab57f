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
