/**
 * A link between two processes: framed messages on an authenticated connection, in order, with a bounded send queue and
 * keepalives. A frame is a 32-bit big-endian length and a body. The body is one line of JSON, the message, and text that
 * belongs to it, such as a result, which is neither parsed nor escaped.
 */
import { Buffer } from "node:buffer";
import type { Clock, Timer } from "../kit/clock.ts";
import { closeQuietly } from "../kit/local_socket.ts";
import { linkLimits } from "./limits.ts";

/** The part of `Deno.Conn` that links use. */
export type LinkConn = Pick<Deno.Conn, "read" | "write" | "close" | "closeWrite" | "remoteAddr">;

export interface Frame {
  /** Parsed, but not validated. */
  readonly message: unknown;
  readonly text: string;
}

const HEADER_BYTES = 4;
const FIRST_BUFFER_BYTES = 65_536;
/** Small frames are written together, up to this size. */
const WRITE_BYTES_MAX = 65_536;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export function frameBody(message: object, text = ""): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${JSON.stringify(message)}\n${text}`);
}

/** Throws if the body is not a valid frame. */
export function parseBody(body: Uint8Array): Frame {
  const whole = decoder.decode(body);
  const end = whole.indexOf("\n");
  if (end < 0) throw new RangeError("A frame has no message");
  return { message: JSON.parse(whole.slice(0, end)), text: whole.slice(end + 1) };
}

/** Adds the length to a body. */
export function framed(body: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEADER_BYTES + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, HEADER_BYTES);
  return frame;
}

export async function writeAll(conn: Pick<LinkConn, "write">, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}

/** Reads the frames of a connection in order. */
export class FrameReader {
  readonly #conn: Pick<LinkConn, "read">;
  #buffer = new Uint8Array(FIRST_BUFFER_BYTES);
  #start = 0;
  #end = 0;
  /** Number of received bytes. */
  received = 0;

  constructor(conn: Pick<LinkConn, "read">) {
    this.#conn = conn;
  }

  /**
   * Returns the body of the next frame, valid until the next call; `null` when the other side has closed the connection.
   * The buffer grows with received bytes, not with the announced length.
   * @throws a `RangeError` if the body is longer than `bytesMax`.
   */
  async next(bytesMax: number): Promise<Uint8Array | null> {
    for (;;) {
      const available = this.#end - this.#start;
      if (available >= HEADER_BYTES) {
        const length = new DataView(this.#buffer.buffer, this.#start).getUint32(0);
        if (length > bytesMax) throw new RangeError(`A frame of ${length} bytes is too long`);
        if (available >= HEADER_BYTES + length) {
          const from = this.#start + HEADER_BYTES;
          this.#start = from + length;
          return this.#buffer.subarray(from, from + length);
        }
      }
      this.#grow();
      const read = await this.#conn.read(this.#buffer.subarray(this.#end));
      if (read === null) return null;
      this.#end += read;
      this.received += read;
    }
  }

  #grow(): void {
    const available = this.#end - this.#start;
    if (available === 0) {
      this.#start = this.#end = 0;
      // Release the buffer of a large frame.
      if (this.#buffer.length > FIRST_BUFFER_BYTES * 64) this.#buffer = new Uint8Array(FIRST_BUFFER_BYTES);
    }
    if (this.#end < this.#buffer.length) return;
    const target = available * 2 > this.#buffer.length
      ? new Uint8Array(this.#buffer.length * 2)
      : this.#buffer;
    target.set(this.#buffer.subarray(this.#start, this.#end));
    this.#buffer = target;
    this.#start = 0;
    this.#end = available;
  }
}

/** `silent`: no data arrived for too long. `full`: the other side does not read. `protocol`: it sent an invalid message. */
export type LinkEnd = "closed" | "silent" | "full" | "protocol";

export interface LinkOptions {
  readonly conn: LinkConn;
  readonly reader: FrameReader;
  readonly clock: Clock;
  readonly keepaliveMs?: number;
  readonly silentChecksMax?: number;
  readonly unsentBytesMax?: number;
}

const KEEPALIVE = { t: "keepalive" } as const;

export class Link {
  readonly #options: LinkOptions;
  readonly #ended = Promise.withResolvers<{ readonly end: LinkEnd; readonly detail: string }>();
  readonly #keepalive: Timer;
  #queue: Uint8Array[] = [];
  #unsentBytes = 0;
  #writing = false;
  /** Bytes received at the last check. A large frame in transfer also counts as a sign of life. */
  #received = 0;
  #silentChecks = 0;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#keepalive = options.clock.every(options.keepaliveMs ?? linkLimits.keepaliveMs, () => this.#check());
  }

  /** Resolves when the link has ended and the last message was handled. Never rejects. */
  get ended(): Promise<{ readonly end: LinkEnd; readonly detail: string }> {
    return this.#ended.promise;
  }

  get open(): boolean {
    return !this.#closed;
  }

  /** Bytes that the system has not accepted yet. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** Passes each message to `onFrame`. An error that it throws ends the link. Call it once. */
  receive(onFrame: (frame: Frame) => void): void {
    void this.#read(onFrame);
  }

  /** Returns `false` if the link has ended, or ends now because too much is queued. */
  send(message: object, text = ""): boolean {
    return this.sendBody(frameBody(message, text));
  }

  /** Like {@linkcode send}, for a body that is sent to several followers. */
  sendBody(body: Uint8Array): boolean {
    if (this.#closed) return false;
    const { unsentBytesMax = linkLimits.unsentBytesMax } = this.#options;
    if (this.#unsentBytes > unsentBytesMax) {
      this.#end("full", `${this.#unsentBytes} bytes are queued`);
      return false;
    }
    const frame = framed(body);
    this.#queue.push(frame);
    this.#unsentBytes += frame.length;
    if (!this.#writing) void this.#write();
    return true;
  }

  close(): void {
    this.#end("closed", "closed here");
  }

  #end(end: LinkEnd, detail: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#keepalive.cancel();
    this.#queue = [];
    closeQuietly(this.#options.conn);
    this.#ended.resolve({ end, detail });
  }

  /** Counts checks instead of time: a process that was suspended has not received anything either. */
  #check(): void {
    const { received } = this.#options.reader;
    this.#silentChecks = received > this.#received ? 0 : this.#silentChecks + 1;
    this.#received = received;
    const { silentChecksMax = linkLimits.silentChecksMax } = this.#options;
    if (this.#silentChecks >= silentChecksMax) {
      this.#end("silent", `no data arrived during ${this.#silentChecks} checks`);
    } else if (this.#unsentBytes === 0) this.send(KEEPALIVE);
  }

  async #write(): Promise<void> {
    this.#writing = true;
    try {
      while (this.#queue.length > 0 && !this.#closed) {
        const queue = this.#queue;
        this.#queue = [];
        for (const bytes of joined(queue)) {
          await writeAll(this.#options.conn, bytes);
          this.#unsentBytes -= bytes.length;
        }
      }
    } catch (error) {
      this.#end("closed", error instanceof Error ? error.message : String(error));
    } finally {
      this.#writing = false;
    }
  }

  async #read(onFrame: (frame: Frame) => void): Promise<void> {
    const { reader } = this.#options;
    try {
      for (;;) {
        const body = await reader.next(linkLimits.frameBytesMax);
        if (body === null) return this.#end("closed", "the other side has closed it");
        if (this.#closed) return;
        try {
          const frame = parseBody(body);
          if (!isKeepalive(frame.message)) onFrame(frame);
        } catch (error) {
          return this.#end("protocol", error instanceof Error ? error.message : String(error));
        }
      }
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      this.#end(error instanceof RangeError ? "protocol" : "closed", detail);
    }
  }
}

function isKeepalive(message: unknown): boolean {
  return typeof message === "object" && message !== null && "t" in message && message.t === KEEPALIVE.t;
}

/** Joins small frames, so that they need one system call. */
function* joined(frames: readonly Uint8Array[]): Generator<Uint8Array, void> {
  let group: Uint8Array[] = [];
  let bytes = 0;
  const take = () => {
    const [first] = group;
    const chunk = first !== undefined && group.length === 1 ? first : Buffer.concat(group);
    group = [];
    bytes = 0;
    return chunk;
  };
  for (const frame of frames) {
    if (group.length > 0 && bytes + frame.length > WRITE_BYTES_MAX) yield take();
    group.push(frame);
    bytes += frame.length;
  }
  if (group.length > 0) yield take();
}
