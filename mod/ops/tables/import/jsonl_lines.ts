/** Splits JSONL files into lines while they are read. */
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../../../kit/time_slicer.ts";
import { opsLimits } from "../../limits.ts";
import { FileFault } from "./file_fault.ts";

/** A non-blank line. */
export interface JsonLine {
  /** Starts at 1. */
  readonly line: number;
  readonly text: string;
}

const LF = 0x0a;
const BLANK = /^\s*$/;
/** Number of blank lines after which the event loop gets a tick. */
const BLANK_LINES_AT_ONCE = 4_096;

/**
 * Yields the non-blank lines of a file. Lines end in LF or CRLF; a leading byte order mark is skipped. Throws a
 * {@linkcode FileFault} for a line that is too long or not UTF-8. Leaving the iteration closes the source.
 */
export async function* jsonLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<JsonLine, void, void> {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  /** Pieces of the current line. */
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  let line = 1;
  let blank = 0;

  function take(last: Uint8Array): JsonLine | null {
    const whole = pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
    pieces = [];
    bytes = 0;
    const number = line++;
    let text: string;
    try {
      text = utf8.decode(whole);
    } catch (cause) {
      throw new FileFault(number, "not UTF-8; save the file as UTF-8", { cause });
    }
    return BLANK.test(text) ? null : { line: number, text };
  }

  for await (const piece of source) {
    let from = 0;
    for (let end = piece.indexOf(LF); end >= 0; end = piece.indexOf(LF, from)) {
      checkLength(bytes + end - from, line);
      const found = take(piece.subarray(from, end));
      if (found !== null) yield found;
      else if (++blank % BLANK_LINES_AT_ONCE === 0) await yieldToEventLoop();
      from = end + 1;
    }
    if (from === piece.length) continue;
    bytes += piece.length - from;
    checkLength(bytes, line);
    // Copied, because the source may reuse its buffer.
    pieces.push(piece.slice(from));
  }
  const found = take(new Uint8Array());
  if (found !== null) yield found;
}

function checkLength(bytes: number, line: number): void {
  const { importLineBytesMax } = opsLimits;
  if (bytes <= importLineBytesMax) return;
  throw new FileFault(
    line,
    `the line is longer than ${importLineBytesMax} bytes. Put each document on its own line`,
  );
}
