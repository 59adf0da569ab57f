/**
 * Frames between main and an isolate over a unix socket: a 32-bit big-endian byte length, then UTF-8 text. The text is one line
 * of JSON (the message and the lengths of its segments in UTF-16 units) followed by the segments. Segments are JSON texts such
 * as results, and are never parsed or escaped on the way.
 *
 * If the highest bit of the length is set, the frame holds bytes: a float64 call id, then a chunk of a streamed body. Base64
 * text would take two and a half times as long.
 */
import { withHelp } from "../../explained.ts";
import { isolateLimits } from "../limits.ts";

/** A message and its segments, which the message references by index. */
export interface WireFrame<Message> {
  readonly message: Message;
  readonly segments: readonly string[];
  /** Contents of a frame of bytes, whose message is {@linkcode Bytes}. */
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
/** Set in the length of a frame of bytes. Valid lengths are far smaller. */
const BYTES_FLAG = 0x8000_0000;

export function frameText(message: unknown, segments: readonly string[] = []): string {
  const head = stringify({ m: message, s: segments.map((segment) => segment.length) });
  return segments.length === 0 ? `${head}\n` : `${head}\n${segments.join("")}`;
}

/** Encodes a frame without segments from a serialized message. */
export function frameTextOfJson(message: string): string {
  return `{"m":${message},"s":[]}\n`;
}

/** Decodes the text of {@linkcode frameText}. */
export function parseFrameText<Message>(text: string): WireFrame<Message> {
  const end = text.indexOf("\n");
  const head = parse(text.slice(0, end)) as { m: Message; s: number[] };
  const segments: string[] = [];
  let from = end + 1;
  for (const length of head.s) {
    segments.push(text.slice(from, from + length));
    from += length;
  }
  if (from !== text.length) throw new RangeError("The segment lengths do not match the frame");
  return { message: head.m, segments };
}

/** Encodes a frame's text as bytes. @throws RangeError if it exceeds the limit. */
export function encodeFrameText(text: string): Uint8Array<ArrayBuffer> {
  // A UTF-16 unit takes at most three bytes. Small frames reserve that. Most large ones are ASCII, others are measured first.
  const { length } = text;
  const roomBytes = length * 3 <= 65_536 ? length * 3 : length;
  if (roomBytes <= isolateLimits.frameBytesMax) {
    const bytes = new Uint8Array(HEADER_BYTES + roomBytes);
    const { read, written } = encoder.encodeInto(text, bytes.subarray(HEADER_BYTES));
    if (read === length) {
      new DataView(bytes.buffer).setUint32(0, written);
      return bytes.subarray(0, HEADER_BYTES + written);
    }
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

/** Encodes a frame of bytes. The bytes are copied. */
export function encodeBytes(call: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEADER_BYTES + CALL_BYTES + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, BYTES_FLAG + CALL_BYTES + bytes.length);
  view.setFloat64(HEADER_BYTES, call);
  frame.set(bytes, HEADER_BYTES + CALL_BYTES);
  return frame;
}

/** Decodes a frame of bytes. @throws RangeError if it is too short. */
function parseBytes<Message>(body: Uint8Array<ArrayBuffer>): WireFrame<Message> {
  const call = new DataView(body.buffer, body.byteOffset, body.byteLength).getFloat64(0);
  const message: Bytes = { type: "Bytes", call };
  // The caller checks the message type.
  return { message: message as Message, segments: [], bytes: body.slice(CALL_BYTES) };
}

/** Reads frames until the other side closes. @throws RangeError for a frame over the limit. */
export async function* readFrames<Message>(conn: Deno.Conn): AsyncGenerator<WireFrame<Message>, void> {
  let buffer = new Uint8Array(65_536);
  let start = 0;
  let end = 0;
  // Bound before app code is loaded: runners have connections, and a patched method would receive ours.
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

/** Sends frames in order. Frames queued during a write are combined into the next write. */
export class FrameSender {
  /** Bound like the read method. */
  readonly #write: Deno.Conn["write"];
  #queue: Uint8Array[] = [];
  #writing: Promise<void> | null = null;

  constructor(conn: Deno.Conn) {
    this.#write = conn.write.bind(conn);
  }

  /** Queues a frame. Resolves when it was sent, rejects if the connection is gone. */
  send(message: unknown, segments: readonly string[] = []): Promise<void> {
    return this.sendText(frameText(message, segments));
  }

  /** Like {@linkcode send}, for an encoded frame. */
  sendText(text: string): Promise<void> {
    return this.#queueFrame(encodeFrameText(text));
  }

  /** Queues bytes of a call's body, like {@linkcode send}. */
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
