/** Range requests: the `Range` header and `multipart/byteranges` (RFC 9110, section 14; FR11 to FR18). */
import type { ByteRange } from "../../kit/http_request.ts";
import { storageLimits } from "../limits.ts";

const SPEC = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * Returns the ranges of a file of `size` bytes that a header requests, in ascending order, with overlapping or adjacent ones
 * merged and those outside the file dropped. `null` means the whole file: no header, a malformed one, another unit, or too
 * many ranges. An empty list means that no range is satisfiable.
 */
export function parseRanges(header: string | null, size: number): ByteRange[] | null {
  const list = header?.match(/^bytes=(.*)$/i)?.[1];
  if (list === undefined) return null;
  // Empty list elements are ignored (RFC 9110, section 5.6.1).
  const specs = list.split(",").map((spec) => spec.replace(/^[ \t]+|[ \t]+$/g, "")).filter((spec) =>
    spec !== ""
  );
  if (specs.length === 0 || specs.length > storageLimits.rangesMax) return null;
  const parts: ByteRange[] = [];
  for (const spec of specs) {
    const part = parseSpec(spec, size);
    if (part === "malformed") return null;
    if (part !== "outside") parts.push(part);
  }
  return joined(parts);
}

function parseSpec(spec: string, size: number): ByteRange | "malformed" | "outside" {
  const match = SPEC.exec(spec);
  if (match === null) return "malformed";
  const [, first, last = "", suffix] = match;
  if (first === undefined) {
    const length = Math.min(Number(suffix), size);
    return length === 0 ? "outside" : { start: size - length, end: size - 1 };
  }
  // Compares numbers of any length exactly.
  if (last !== "" && BigInt(last) < BigInt(first)) return "malformed";
  const start = Number(first);
  if (start >= size) return "outside";
  return { start, end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}

function joined(parts: readonly ByteRange[]): ByteRange[] {
  const result: ByteRange[] = [];
  for (const part of parts.toSorted((a, b) => a.start - b.start)) {
    const previous = result.at(-1);
    if (previous === undefined || part.start > previous.end + 1) result.push(part);
    else if (part.end > previous.end) result[result.length - 1] = { start: previous.start, end: part.end };
  }
  return result;
}

type Chunk = Uint8Array<ArrayBuffer>;

/** Number of pieces up to and including the first part. */
const FIRST_PART = 2;

/** A piece of the body: generated text, or bytes of the file. */
type Piece = { readonly text: Uint8Array<ArrayBuffer> } | { readonly part: ByteRange };

interface Multipart {
  readonly pieces: readonly Piece[];
  /** Total length in bytes. */
  readonly length: number;
}

/** Returns the layout of a response body. */
export function multipart(
  parts: readonly ByteRange[],
  { boundary, contentType, size }: {
    readonly boundary: string;
    readonly contentType: string;
    readonly size: number;
  },
): Multipart {
  const encoder = new TextEncoder();
  const pieces: Piece[] = [];
  let length = 0;
  const addText = (text: string) => {
    const bytes = encoder.encode(text);
    pieces.push({ text: bytes });
    length += bytes.length;
  };
  for (const part of parts) {
    const { start, end } = part;
    addText(
      `--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Range: bytes ${start}-${end}/${size}\r\n\r\n`,
    );
    pieces.push({ part });
    length += end - start + 1;
    addText("\r\n");
  }
  addText(`--${boundary}--\r\n`);
  return { pieces, length };
}

/** Streams the body on demand; `open` opens the parts after `first`. Canceling cancels the open part. */
export function multipartStream(
  pieces: readonly Piece[],
  { first, open }: {
    readonly first: ReadableStream<Chunk>;
    readonly open: (part: ByteRange) => Promise<ReadableStream<Chunk> | null>;
  },
): ReadableStream<Chunk> {
  let next = 0;
  /** The current part, or the next one to open. */
  let reader = first.getReader();
  let isNext = true;
  let isCanceled = false;
  return new ReadableStream<Chunk>({
    async pull(controller) {
      for (;;) {
        if (!isNext) {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          isNext = true;
        }
        const piece = pieces[next++];
        if (piece === undefined) return controller.close();
        if ("text" in piece) return controller.enqueue(piece.text);
        if (next > FIRST_PART) {
          const stream = await open(piece.part);
          if (stream === null) throw new Error("The file was deleted");
          // The client disconnected in the meantime.
          if (isCanceled) return await stream.cancel();
          reader = stream.getReader();
        }
        isNext = false;
      }
    },
    async cancel(reason) {
      isCanceled = true;
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}
