/**
 * Frames of a link: a 32-bit big-endian length, then that many bytes. What they hold is a line of JSON, the message, and
 * behind it a text that belongs to it, such as a result, which is never parsed or escaped on its way. A link over a network
 * seals what they hold.
 */

export interface Frame {
  /** As it was parsed: what it is, is for the receiver to check. */
  readonly message: unknown;
  readonly text: string;
}

const HEADER_BYTES = 4;
const FIRST_BUFFER_BYTES = 65_536;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** What a frame holds. */
export function frameBody(message: object, text = ""): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${JSON.stringify(message)}\n${text}`);
}

/** Throws for what is no frame. */
export function parseBody(body: Uint8Array): Frame {
  const whole = decoder.decode(body);
  const end = whole.indexOf("\n");
  if (end < 0) throw new RangeError("A frame has no message");
  return { message: JSON.parse(whole.slice(0, end)), text: whole.slice(end + 1) };
}

/** A body as it leaves. */
export function framed(body: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEADER_BYTES + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, HEADER_BYTES);
  return frame;
}

/** Reads frames from a connection, one after the other. */
export class FrameReader {
  readonly #conn: Pick<Deno.Conn, "read">;
  #buffer = new Uint8Array(FIRST_BUFFER_BYTES);
  #start = 0;
  #end = 0;
  /** Bytes that have come so far. */
  received = 0;

  constructor(conn: Pick<Deno.Conn, "read">) {
    this.#conn = conn;
  }

  /**
   * The body of the next frame, until the next call; `null` when the other side has closed. Throws a `RangeError` for a
   * longer one than `bytesMax`. Room is made as bytes come, not as they are announced.
   */
  async next(bytesMax: number): Promise<Uint8Array | null> {
    for (;;) {
      const held = this.#end - this.#start;
      if (held >= HEADER_BYTES) {
        const length = new DataView(this.#buffer.buffer, this.#start).getUint32(0);
        if (length > bytesMax) throw new RangeError(`A frame of ${length} bytes is too long`);
        if (held >= HEADER_BYTES + length) {
          const from = this.#start + HEADER_BYTES;
          this.#start = from + length;
          return this.#buffer.subarray(from, from + length);
        }
      }
      this.#makeRoom();
      const read = await this.#conn.read(this.#buffer.subarray(this.#end));
      if (read === null) return null;
      this.#end += read;
      this.received += read;
    }
  }

  #makeRoom(): void {
    const held = this.#end - this.#start;
    if (held === 0) {
      this.#start = this.#end = 0;
      // A large frame's room is not kept for small ones.
      if (this.#buffer.length > FIRST_BUFFER_BYTES * 64) this.#buffer = new Uint8Array(FIRST_BUFFER_BYTES);
    }
    if (this.#end < this.#buffer.length) return;
    const target = held * 2 > this.#buffer.length ? new Uint8Array(this.#buffer.length * 2) : this.#buffer;
    target.set(this.#buffer.subarray(this.#start, this.#end));
    this.#buffer = target;
    this.#start = 0;
    this.#end = held;
  }
}
