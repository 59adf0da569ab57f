/**
 * Frames between main and an isolate over their unix socket: a 32-bit big-endian length in bytes, then UTF-8 text made of
 * one line of JSON (the message and the lengths of its segments in UTF-16 units) followed by the segments themselves.
 * Segments are JSON texts such as results; they are never parsed or escaped on their way.
 *
 * A length with its highest bit set announces bytes instead: a float64 names the call they belong to, the rest are parts of a
 * body that streams. As text in base64 they would take two and a half times as long.
 */
import { withHelp } from "../../explained.ts";
import { isolateLimits } from "../limits.ts";

/** A message and its segments. In the message a segment is named by its position. */
export interface WireFrame<Message> {
  readonly message: Message;
  readonly segments: readonly string[];
  /** What a frame of bytes carries; its message is {@linkcode Bytes}. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
}

/** The message of a frame of bytes. */
export interface Bytes {
  readonly type: "Bytes";
  readonly call: number;
}

const { parse, stringify } = JSON;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const HEADER_BYTES = 4;
const CALL_BYTES = 8;
/** Set in the length of a frame of bytes; the limit keeps lengths far below it. */
const BYTES_FLAG = 0x8000_0000;

/** The text of one frame. */
export function frameText(message: unknown, segments: readonly string[] = []): string {
  const head = stringify({ m: message, s: segments.map((segment) => segment.length) });
  return segments.length === 0 ? `${head}\n` : `${head}\n${segments.join("")}`;
}

/** The text of a frame without segments whose message is JSON text already. */
export function frameTextOfJson(message: string): string {
  return `{"m":${message},"s":[]}\n`;
}

/** The frame of a text made by {@linkcode frameText}. */
export function parseFrameText<Message>(text: string): WireFrame<Message> {
  const end = text.indexOf("\n");
  const head = parse(text.slice(0, end)) as { m: Message; s: number[] };
  const segments: string[] = [];
  let from = end + 1;
  for (const length of head.s) {
    segments.push(text.slice(from, from + length));
    from += length;
  }
  if (from !== text.length) throw new RangeError("The segments of a frame do not fill it");
  return { message: head.m, segments };
}

/** The bytes of a frame's text. Throws `RangeError` when it is over the limit. */
export function encodeFrameText(text: string): Uint8Array<ArrayBuffer> {
  // UTF-8 needs at most three bytes for a UTF-16 unit; small frames take that room, large ones are measured by encoding.
  const roomBytes = text.length * 3;
  if (roomBytes <= 65_536) {
    const bytes = new Uint8Array(HEADER_BYTES + roomBytes);
    const { written } = encoder.encodeInto(text, bytes.subarray(HEADER_BYTES));
    new DataView(bytes.buffer).setUint32(0, written);
    return bytes.subarray(0, HEADER_BYTES + written);
  }
  const body = encoder.encode(text);
  if (body.length > isolateLimits.frameBytesMax) {
    throw withHelp(
      new RangeError(
        `Cannot send a frame of ${body.length} bytes: the limit is ${isolateLimits.frameBytesMax}`,
      ),
      "limit",
    );
  }
  const bytes = new Uint8Array(HEADER_BYTES + body.length);
  new DataView(bytes.buffer).setUint32(0, body.length);
  bytes.set(body, HEADER_BYTES);
  return bytes;
}

/** A frame of bytes; they are copied. */
export function encodeBytes(call: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEADER_BYTES + CALL_BYTES + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, BYTES_FLAG + CALL_BYTES + bytes.length);
  view.setFloat64(HEADER_BYTES, call);
  frame.set(bytes, HEADER_BYTES + CALL_BYTES);
  return frame;
}

/** The frame of bytes with this body. Throws `RangeError` when it is too short to be one. */
function parseBytes<Message>(body: Uint8Array<ArrayBuffer>): WireFrame<Message> {
  const call = new DataView(body.buffer, body.byteOffset, body.byteLength).getFloat64(0);
  const message: Bytes = { type: "Bytes", call };
  // Which messages a reader expects is for it to say; one that expects no bytes refuses them.
  return { message: message as Message, segments: [], bytes: body.slice(CALL_BYTES) };
}

/** Reads frames until the other side closes. Throws `RangeError` on a frame over the limit. */
export async function* readFrames<Message>(conn: Deno.Conn): AsyncGenerator<WireFrame<Message>, void> {
  let buffer = new Uint8Array(65_536);
  let start = 0;
  let end = 0;
  // Bound before app code is loaded, which in runners may have connections: a patched method would be handed ours.
  const readInto = conn.read.bind(conn);
  for (;;) {
    while (end - start >= HEADER_BYTES) {
      const announced = new DataView(buffer.buffer, start).getUint32(0);
      const ofBytes = announced >= BYTES_FLAG;
      const length = ofBytes ? announced - BYTES_FLAG : announced;
      if (length > isolateLimits.frameBytesMax) {
        throw new RangeError(`Cannot read a frame of ${length} bytes`);
      }
      if (end - start < HEADER_BYTES + length) {
        if (HEADER_BYTES + length > buffer.length) {
          const larger = new Uint8Array(Math.max(HEADER_BYTES + length, buffer.length * 2));
          larger.set(buffer.subarray(start, end));
          buffer = larger;
          end -= start;
          start = 0;
        }
        break;
      }
      const body = buffer.subarray(start + HEADER_BYTES, start + HEADER_BYTES + length);
      start += HEADER_BYTES + length;
      yield ofBytes ? parseBytes<Message>(body) : parseFrameText<Message>(decoder.decode(body));
    }
    if (start === end) {
      start = end = 0;
      if (buffer.length > 4_194_304) buffer = new Uint8Array(65_536);
    } else if (end === buffer.length) {
      buffer.copyWithin(0, start, end);
      end -= start;
      start = 0;
    }
    const read = await readInto(buffer.subarray(end));
    if (read === null) return;
    end += read;
  }
}

/** Sends frames in order; what is queued while a write is under way leaves with the next write. */
export class FrameSender {
  /** Bound like the reading. */
  readonly #write: Deno.Conn["write"];
  #queue: Uint8Array[] = [];
  #writing: Promise<void> | null = null;

  constructor(conn: Deno.Conn) {
    this.#write = conn.write.bind(conn);
  }

  /** Queues a frame; resolves when it has left, rejects when the connection is gone. */
  send(message: unknown, segments: readonly string[] = []): Promise<void> {
    return this.sendText(frameText(message, segments));
  }

  /** Like {@linkcode send}, for a frame whose text is already made. */
  sendText(text: string): Promise<void> {
    return this.#queueFrame(encodeFrameText(text));
  }

  /** Queues bytes of a call's body; resolves and rejects like {@linkcode send}. */
  sendBytes(call: number, bytes: Uint8Array): Promise<void> {
    return this.#queueFrame(encodeBytes(call, bytes));
  }

  #queueFrame(frame: Uint8Array): Promise<void> {
    this.#queue.push(frame);
    this.#writing ??= this.#drain();
    return this.#writing;
  }

  async #drain(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        const frames = this.#queue;
        this.#queue = [];
        for (const frame of frames) {
          for (let sent = 0; sent < frame.length;) sent += await this.#write(frame.subarray(sent));
        }
      }
    } finally {
      this.#writing = null;
    }
  }
}
