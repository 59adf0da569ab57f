/** Frames to and from the image process: two 32-bit big-endian lengths, then JSON and bytes. */
import type { ThumbnailSpec } from "./spec.ts";

/** Request for a thumbnail of the image in the frame's bytes. */
export interface MakeThumbnail extends ThumbnailSpec {
  readonly job: number;
}

/** Response; the frame's bytes are the thumbnail. */
export type MadeThumbnail =
  | { readonly job: number; readonly ok: true }
  | { readonly job: number; readonly ok: false; readonly error: "image_too_large" | "invalid_image" };

export interface ImageFrame<Message> {
  readonly message: Message;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const HEADER_BYTES = 8;

export function encodeFrame(message: unknown, bytes: Uint8Array): Uint8Array<ArrayBuffer>[] {
  const json = new TextEncoder().encode(JSON.stringify(message));
  const head = new Uint8Array(HEADER_BYTES + json.length);
  const view = new DataView(head.buffer);
  view.setUint32(0, json.length);
  view.setUint32(4, bytes.length);
  head.set(json, HEADER_BYTES);
  return [head, new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length)];
}

/** Reads frames until the stream ends. Throws `RangeError` for a frame longer than `bytesMax`. */
export async function* readFrames<Message>(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
): AsyncGenerator<ImageFrame<Message>, void> {
  let waiting: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  let wanted = HEADER_BYTES;
  for await (const chunk of stream) {
    waiting.push(chunk);
    length += chunk.length;
    while (length >= wanted) {
      const bytes = joined(waiting, length);
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      const jsonEnd = HEADER_BYTES + view.getUint32(0);
      const end = jsonEnd + view.getUint32(4);
      if (end > bytesMax) throw new RangeError(`Frame of ${end} bytes exceeds the limit of ${bytesMax}`);
      if (length < end) {
        waiting = [bytes];
        wanted = end;
        break;
      }
      const message = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_BYTES, jsonEnd))) as Message;
      yield { message, bytes: bytes.slice(jsonEnd, end) };
      waiting = [bytes.subarray(end)];
      length -= end;
      wanted = HEADER_BYTES;
    }
  }
}

function joined(chunks: readonly Uint8Array<ArrayBuffer>[], length: number): Uint8Array<ArrayBuffer> {
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
