/** Answers with several parts of a file: `multipart/byteranges` (RFC 9110, section 14.6). */
import type { ByteRange } from "../kit/byte_range.ts";

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

type Chunk = Uint8Array<ArrayBuffer>;

/**
 * The bytes of an answer, read as they are asked for. `open` gives the bytes of a part; what it opened is cancelled with
 * the stream.
 */
export function multipartStream(
  pieces: readonly Piece[],
  open: (part: ByteRange) => Promise<ReadableStream<Chunk> | null>,
): ReadableStream<Chunk> {
  let next = 0;
  let reader: ReadableStreamDefaultReader<Chunk> | null = null;
  return new ReadableStream<Chunk>({
    async pull(controller) {
      for (;;) {
        if (reader !== null) {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          reader = null;
        }
        const piece = pieces[next++];
        if (piece === undefined) return controller.close();
        if ("text" in piece) return controller.enqueue(piece.text);
        const stream = await open(piece.part);
        if (stream === null) throw new Error("The file is gone");
        reader = stream.getReader();
      }
    },
    cancel: (reason) => reader?.cancel(reason),
  }, { highWaterMark: 0 });
}
