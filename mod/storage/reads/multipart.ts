/** Answers with several parts of a file: `multipart/byteranges` (RFC 9110, section 14.6). */
import type { ByteRange } from "../../kit/byte_range.ts";

type Chunk = Uint8Array<ArrayBuffer>;

/** Pieces up to the first part: its head and itself. */
const FIRST_PART = 2;

/** One thing after the other: text of our own, or bytes of the file. */
export type Piece = { readonly text: Uint8Array<ArrayBuffer> } | { readonly part: ByteRange };

export interface Multipart {
  readonly pieces: readonly Piece[];
  /** Bytes of all pieces together. */
  readonly length: number;
}

/** The layout of an answer. */
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
 * The bytes of an answer, read as they are asked for. `first` are the bytes of the first part, `open` gives those of the
 * others; what was opened is cancelled with the stream.
 */
export function multipartStream(
  pieces: readonly Piece[],
  { first, open }: {
    readonly first: ReadableStream<Chunk>;
    readonly open: (part: ByteRange) => Promise<ReadableStream<Chunk> | null>;
  },
): ReadableStream<Chunk> {
  let next = 0;
  /** The part that is being read, or is the next to be read. */
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
          if (stream === null) throw new Error("The file is gone");
          reader = stream.getReader();
        }
        isNext = false;
      }
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}
