/** Counts the reads and writes of a run and throws at a limit. Errors name the limit and the usage. */
import { functionLimits } from "../limits.ts";
import { EngineError } from "./errors.ts";
import type { Usage } from "./transaction.ts";

const {
  documentsReadMax,
  charsReadMax,
  entriesCountedMax,
  documentsWrittenMax,
  charsWrittenMax,
  indexCharsWrittenMax,
} = functionLimits;

export class UsageMeter implements Usage {
  documentsRead = 0;
  indexRowsRead = 0;
  charsRead = 0;
  documentsWritten = 0;
  indexRowsWritten = 0;
  charsWritten = 0;
  #entriesCounted = 0;
  #indexChars = 0;

  /** Counts documents read. Throws an `EngineError` above the limit. */
  read(chars: number, documents = 1): void {
    this.documentsRead += documents;
    this.charsRead += chars;
    if (this.documentsRead > documentsReadMax) {
      throw overLimit({
        what: "documents read by one call",
        limit: documentsReadMax,
        used: this.documentsRead,
      });
    }
    if (this.charsRead > charsReadMax) {
      throw overLimit({ what: "characters read by one call", limit: charsReadMax, used: this.charsRead });
    }
  }

  /** Counts documents found through an index. Throws like `read`. */
  found(chars: number, documents = 1): void {
    this.indexRowsRead += documents;
    this.read(chars, documents);
  }

  /** Index entries that the call may still count. */
  get entriesLeft(): number {
    return entriesCountedMax - this.#entriesCounted;
  }

  /** Counts index entries that were counted in SQL. Throws an `EngineError` above the limit. */
  counted(entries: number): void {
    this.indexRowsRead += entries;
    this.#entriesCounted += entries;
    if (this.#entriesCounted > entriesCountedMax) {
      throw overLimit({
        what: "index entries counted by one call",
        limit: entriesCountedMax,
        used: this.#entriesCounted,
      });
    }
  }

  /** Counts a document written or deleted. Throws an `EngineError` above the limit. */
  write(chars: number): void {
    this.documentsWritten++;
    this.charsWritten += chars;
    if (this.documentsWritten > documentsWrittenMax) {
      throw overLimit({
        what: "documents written by one call",
        limit: documentsWrittenMax,
        used: this.documentsWritten,
      });
    }
    if (this.charsWritten > charsWrittenMax) {
      throw overLimit({
        what: "characters written by one call",
        limit: charsWrittenMax,
        used: this.charsWritten,
      });
    }
  }

  /** Counts index keys added or removed. Throws an `EngineError` above the limit. */
  index(keys: readonly string[]): void {
    this.indexRowsWritten += keys.length;
    for (const key of keys) this.#indexChars += key.length;
    if (this.#indexChars > indexCharsWrittenMax) {
      throw overLimit({
        what: "characters of index entries written by one call",
        limit: indexCharsWrittenMax,
        used: this.#indexChars,
      });
    }
  }
}

function overLimit(
  use: { readonly what: string; readonly limit: number; readonly used: number },
): EngineError {
  const advice = use.what.includes("written")
    ? "write in several calls, for instance from an action or with the scheduler"
    : use.what.includes("counted")
    ? "count a narrower range, or declare an aggregate in the schema"
    : "read a narrower range of an index, or one page at a time";
  return new EngineError(
    "limit",
    `Too many ${use.what}: the limit is ${use.limit} and this one used ${use.used}; ${advice}`,
  );
}
