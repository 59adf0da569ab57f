/**
 * One side of an authenticated connection: messages leave in order, what waits is bounded, a beat tells the other side
 * that this one lives, and a side of which nothing is heard is given up.
 */
import type { Clock, Timer } from "../../kit/clock.ts";
import { closeQuietly } from "../../kit/local_socket.ts";
import { linkLimits } from "../limits.ts";
import { type Frame, frameBody, framed, type FrameReader, parseBody } from "./frames.ts";
import type { Seal } from "./sealing.ts";

/**
 * `closed`: by this side, or by the other. `silent`: nothing came for too long. `full`: the other side does not read.
 * `nonsense`: it said what it may not.
 */
export type LinkEnd = "closed" | "silent" | "full" | "nonsense";

export interface LinkOptions {
  readonly conn: Deno.Conn;
  readonly reader: FrameReader;
  readonly seal: Seal | null;
  readonly clock: Clock;
  readonly beatMs?: number;
  readonly silentBeatsMax?: number;
  readonly unsentBytesMax?: number;
}

const BEAT = { t: "beat" } as const;

export class Link {
  readonly #options: LinkOptions;
  readonly #ended = Promise.withResolvers<{ readonly end: LinkEnd; readonly detail: string }>();
  readonly #beat: Timer;
  #queue: Uint8Array[] = [];
  #unsentBytes = 0;
  #writing = false;
  /** Bytes that had come at the last beat: also a frame that takes long is a sign of life. */
  #received = 0;
  #silentBeats = 0;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#beat = options.clock.every(options.beatMs ?? linkLimits.beatMs, () => this.#onBeat());
  }

  /** Resolves at its end, after the last message that came. Never rejects. */
  get ended(): Promise<{ readonly end: LinkEnd; readonly detail: string }> {
    return this.#ended.promise;
  }

  get open(): boolean {
    return !this.#closed;
  }

  /** Bytes that the system has not taken yet. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** What comes from now on; an error of the receiver counts as nonsense, and ends the link. To be called once. */
  receive(onFrame: (frame: Frame) => void): void {
    void this.#read(onFrame);
  }

  /** Whether it was taken: a link that has ended, or ends by this because too much waits, takes nothing. */
  send(message: object, text = ""): boolean {
    return this.sendBody(frameBody(message, text));
  }

  /** Like {@linkcode send}, for what is sent to several and was made once. */
  sendBody(body: Uint8Array): boolean {
    if (this.#closed) return false;
    const { seal, unsentBytesMax = linkLimits.unsentBytesMax } = this.#options;
    if (this.#unsentBytes > unsentBytesMax) {
      this.#end("full", `${this.#unsentBytes} bytes wait for it`);
      return false;
    }
    const frame = framed(seal === null ? body : seal.seal(body));
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
    this.#beat.cancel();
    this.#queue = [];
    closeQuietly(this.#options.conn);
    this.#ended.resolve({ end, detail });
  }

  /** A look counts, not the time: a process that was stopped for a while has heard nothing, and nobody is to blame. */
  #onBeat(): void {
    const { received } = this.#options.reader;
    this.#silentBeats = received > this.#received ? 0 : this.#silentBeats + 1;
    this.#received = received;
    const { silentBeatsMax = linkLimits.silentBeatsMax } = this.#options;
    if (this.#silentBeats >= silentBeatsMax) {
      this.#end("silent", `nothing came for ${this.#silentBeats} beats`);
    } else if (this.#unsentBytes === 0) this.send(BEAT);
  }

  async #write(): Promise<void> {
    this.#writing = true;
    const { conn } = this.#options;
    try {
      // What piles up while bytes are on their way leaves together.
      while (this.#queue.length > 0 && !this.#closed) {
        const batch = this.#queue;
        this.#queue = [];
        for (const bytes of joined(batch)) {
          for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
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
    const { reader, seal } = this.#options;
    try {
      for (;;) {
        const body = await reader.next(linkLimits.frameBytesMax);
        if (body === null) return this.#end("closed", "the other side has closed it");
        if (this.#closed) return;
        try {
          const frame = parseBody(seal === null ? body : seal.open(body));
          if (isBeat(frame.message)) continue;
          onFrame(frame);
        } catch (error) {
          return this.#end("nonsense", error instanceof Error ? error.message : String(error));
        }
      }
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      this.#end(error instanceof RangeError ? "nonsense" : "closed", detail);
    }
  }
}

function isBeat(message: unknown): boolean {
  return typeof message === "object" && message !== null && "t" in message && message.t === BEAT.t;
}

/** Small frames as one, so that many leave by one call of the system. */
function joined(frames: readonly Uint8Array[]): readonly Uint8Array[] {
  const [first] = frames;
  if (frames.length === 1 && first !== undefined) return frames;
  const out: Uint8Array[] = [];
  let group: Uint8Array[] = [];
  let bytes = 0;
  const flush = () => {
    if (group.length === 0) return;
    const one = new Uint8Array(bytes);
    let at = 0;
    for (const frame of group) {
      one.set(frame, at);
      at += frame.length;
    }
    out.push(one);
    group = [];
    bytes = 0;
  };
  for (const frame of frames) {
    if (frame.length > JOINED_BYTES_MAX) {
      flush();
      out.push(frame);
      continue;
    }
    if (bytes + frame.length > JOINED_BYTES_MAX) flush();
    group.push(frame);
    bytes += frame.length;
  }
  flush();
  return out;
}

const JOINED_BYTES_MAX = 65_536;
