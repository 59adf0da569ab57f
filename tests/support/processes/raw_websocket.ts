/**
 * A WebSocket client on plain TCP, for load and for tests that cut connections. By default, messages of one tick of the event
 * loop are sent in one write. Deno's own client delays frames for tens of milliseconds,
 * which would count as latency of the server.
 */
import { randomBytes } from "node:crypto";
import { Buffer } from "node:buffer";
import { ByteQueue } from "./byte_queue.ts";

export interface RawWebSocketOptions {
  readonly port: number;
  readonly path: string;
  /** Called synchronously with each text message of a read. */
  readonly onText: (text: string) => void;
  /** Whether each message is a separate write, like with the WebSocket packages that applications use. */
  readonly separateWrites?: boolean;
  /** Called once when the connection is closed, with the close code or 1006. */
  readonly onClose?: (code: number, reason: string) => void;
}

const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const READ_BYTES = 4096;
const READ_BYTES_MAX = 1_048_576;
const MESSAGE_BYTES_MAX = 64 * 1_048_576;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An open WebSocket to 127.0.0.1. */
export class RawWebSocket implements AsyncDisposable {
  /** Resolves when the connection is closed; never rejects. */
  readonly closed: Promise<void>;
  readonly #conn: Deno.TcpConn;
  readonly #options: RawWebSocketOptions;
  readonly #out = new ByteQueue();
  /** Lengths of the frames in `#out`. */
  #frameBytes: number[] = [];
  #incoming: Uint8Array<ArrayBuffer>;
  #start: number;
  #end: number;
  /** Payloads of an incomplete fragmented message. */
  #fragments: Uint8Array[] = [];
  #flushing = false;
  #over = false;
  #paused: PromiseWithResolvers<void> | null = null;

  private constructor(conn: Deno.TcpConn, options: RawWebSocketOptions, rest: Uint8Array<ArrayBuffer>) {
    this.#conn = conn;
    this.#options = options;
    this.#incoming = new Uint8Array(Math.max(READ_BYTES, rest.length));
    this.#incoming.set(rest);
    this.#start = 0;
    this.#end = rest.length;
    this.closed = this.#read();
  }

  /** Opens a connection. Throws if the server refuses the upgrade. */
  static async connect(options: RawWebSocketOptions): Promise<RawWebSocket> {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port: options.port });
    conn.setNoDelay(true);
    const key = Buffer.from(randomBytes(16)).toString("base64");
    const request = `GET ${options.path} HTTP/1.1\r\nHost: 127.0.0.1:${options.port}\r\n` +
      `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`;
    try {
      await conn.write(encoder.encode(request));
      const bytes = new Uint8Array(READ_BYTES);
      let length = 0;
      for (;;) {
        const read = await conn.read(bytes.subarray(length));
        if (read === null) throw new Error("The server closed the connection instead of upgrading it");
        length += read;
        const head = decoder.decode(bytes.subarray(0, length));
        const end = head.indexOf("\r\n\r\n");
        if (end < 0 && length < bytes.length) continue;
        if (!head.startsWith("HTTP/1.1 101 ")) throw new Error(`No upgrade: ${head.slice(0, 200)}`);
        return new RawWebSocket(conn, options, bytes.slice(end + 4, length));
      }
    } catch (error) {
      conn.close();
      throw error;
    }
  }

  /** Queues a text message, which is sent at the end of the current tick. Does nothing if the connection is closed. */
  send(text: string): void {
    if (!this.#over) this.#queue(TEXT, encoder.encode(text));
  }

  /** Stops reading, so that the server's send window fills up. */
  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = null;
  }

  /** Closes the connection without a close frame, like a network failure. */
  cut(): void {
    if (this.#over) return;
    this.#finish(1006, "");
  }

  /** Sends a close frame and waits until the connection is closed. */
  async close(): Promise<void> {
    if (!this.#over) {
      this.resume();
      this.#queue(CLOSE, new Uint8Array([0x03, 0xe8]));
      const timer = setTimeout(() => this.cut(), 1000);
      await this.closed;
      clearTimeout(timer);
    }
    await this.closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The mask is zero. It is required, but this client needs no protection from proxies. */
  #queue(opcode: number, payload: Uint8Array): void {
    const length = payload.length;
    const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
    const at = this.#out.reserve(6 + extended + length);
    const { bytes } = this.#out;
    bytes[at] = 0x80 | opcode;
    if (extended === 0) {
      bytes[at + 1] = 0x80 | length;
    } else {
      bytes[at + 1] = 0x80 | (extended === 2 ? 126 : 127);
      const view = new DataView(bytes.buffer, at + 2);
      if (extended === 2) view.setUint16(0, length);
      else view.setBigUint64(0, BigInt(length));
    }
    bytes.fill(0, at + 2 + extended, at + 6 + extended);
    bytes.set(payload, at + 6 + extended);
    this.#frameBytes.push(6 + extended + length);
    if (!this.#flushing) {
      this.#flushing = true;
      queueMicrotask(() => this.#flush());
    }
  }

  async #flush(): Promise<void> {
    try {
      while (this.#out.length > 0 && !this.#over) {
        const bytes = this.#out.take();
        const frameBytes = this.#frameBytes;
        this.#frameBytes = [];
        let from = 0;
        for (const length of this.#options.separateWrites ? frameBytes : [bytes.length]) {
          const end = from + length;
          while (from < end) from += await this.#conn.write(bytes.subarray(from, end));
        }
        this.#out.giveBack(bytes);
      }
    } catch {
      this.#finish(1006, "");
    } finally {
      this.#flushing = false;
    }
  }

  async #read(): Promise<void> {
    try {
      while (!this.#over) {
        this.#takeApart();
        if (this.#over) return;
        if (this.#paused !== null) await this.#paused.promise;
        const read = await this.#conn.read(this.#incoming.subarray(this.#end));
        if (read === null) break;
        this.#end += read;
      }
      this.#finish(1006, "");
    } catch {
      this.#finish(1006, "");
    }
  }

  /** Calls back with each complete frame and prepares the buffer for the next read. */
  #takeApart(): void {
    const bytes = this.#incoming;
    let needed = 0;
    while (this.#end - this.#start >= 2) {
      const first = bytes[this.#start] ?? 0;
      const short = (bytes[this.#start + 1] ?? 0) & 0x7f;
      const header = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (this.#end - this.#start < header) break;
      const view = new DataView(bytes.buffer, this.#start);
      const length = header === 2 ? short : header === 4 ? view.getUint16(2) : Number(view.getBigUint64(2));
      if (length > MESSAGE_BYTES_MAX) throw new RangeError(`A frame of ${length} bytes came in`);
      if (this.#end - this.#start < header + length) {
        needed = header + length;
        break;
      }
      const from = this.#start + header;
      this.#start = from + length;
      this.#onFrame(first, bytes.subarray(from, from + length));
      if (this.#over) return;
    }
    const full = this.#end === bytes.length;
    const kept = this.#end - this.#start;
    if (kept === 0 || full || this.#start + needed > bytes.length) {
      bytes.copyWithin(0, this.#start, this.#end);
      this.#start = 0;
      this.#end = kept;
    }
    // A full buffer means that more data is waiting. A larger buffer saves reads.
    if (needed > bytes.length || (full && bytes.length < READ_BYTES_MAX)) {
      this.#incoming = new Uint8Array(Math.max(needed, bytes.length * 2));
      this.#incoming.set(bytes.subarray(0, kept));
    }
  }

  #onFrame(first: number, payload: Uint8Array): void {
    const opcode = first & 0x0f;
    if (opcode === PING) return this.#queue(PONG, payload);
    if (opcode === PONG) return;
    if (opcode === CLOSE) {
      const code = payload.length >= 2 ? ((payload[0] ?? 0) << 8) | (payload[1] ?? 0) : 1005;
      return this.#finish(code, decoder.decode(payload.subarray(2)));
    }
    const last = (first & 0x80) !== 0;
    if (last && this.#fragments.length === 0) return this.#options.onText(decoder.decode(payload));
    this.#fragments.push(payload.slice());
    if (!last) return;
    const whole = Buffer.concat(this.#fragments);
    this.#fragments = [];
    this.#options.onText(decoder.decode(whole));
  }

  #finish(code: number, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.resume();
    this.#conn.close();
    this.#options.onClose?.(code, reason);
  }
}
