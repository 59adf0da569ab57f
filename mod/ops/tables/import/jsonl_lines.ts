/** The lines of a JSONL file, as its bytes come. */
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../../../kit/event_loop.ts";
import { opsLimits } from "../../limits.ts";
import { FileFault } from "./file_fault.ts";

/** One line that is not blank. */
export interface JsonLine {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

const LF = 0x0a;
const BLANK = /^\s*$/;
/** Blank lines after which the process does its other work: nobody waits for what is not given out. */
const BLANK_LINES_AT_ONCE = 4_096;

/**
 * The lines of a file that have something in them. Lines end in LF or CRLF; a byte order mark at the beginning of the file
 * is skipped. Throws a {@linkcode FileFault} for a line that is too long or not UTF-8. The source is closed when the caller
 * stops early.
 */
export async function* jsonLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<JsonLine, void, void> {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  /** Pieces of the line that is not over yet. */
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
    // The source may use its buffer again.
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
    `the line is longer than ${importLineBytesMax} bytes; is each document on a line?`,
  );
}
