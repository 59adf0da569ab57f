/** Responses with several ranges of a file: `multipart/byteranges` (RFC 9110, section 14.6). */
import type { ByteRange } from "../../kit/http_request.ts";

type Chunk = Uint8Array<ArrayBuffer>;

/** Number of pieces up to and including the first part. */
const FIRST_PART = 2;

/** A piece of the body: generated text, or bytes of the file. */
export type Piece = { readonly text: Uint8Array<ArrayBuffer> } | { readonly part: ByteRange };

export interface Multipart {
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
  const say = (text: string) => {
    const bytes = encoder.encode(text);
    pieces.push({ text: bytes });
    length += bytes.length;
  };
  for (const part of parts) {
    const { start, end } = part;
    say(
      `--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Range: bytes ${start}-${end}/${size}\r\n\r\n`,
    );
    pieces.push({ part });
    length += end - start + 1;
    say("\r\n");
  }
  say(`--${boundary}--\r\n`);
  return { pieces, length };
}

/**
 * Streams the body, reading on demand. `first` is the stream of the first part; `open` opens the others. Canceling the stream
 * cancels the open part.
 */
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
          reader = stream.getReader();
        }
        isNext = false;
      }
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}
