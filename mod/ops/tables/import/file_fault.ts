/** What is wrong with a file where it is read, before anybody looks at documents: it cannot be read any further. */
export class FileFault extends Error {
  override readonly name = "FileFault";
  /** Counted from 1. */
  readonly line: number;

  constructor(line: number, reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.line = line;
  }
}
