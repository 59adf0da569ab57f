/** The streams of a server that leads: actions write them, and each is stored as a file when it ends. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import type { Identity } from "../functions/identity.ts";
import { type CallingRun, type MainAction, mainAction } from "../functions/main_actions.ts";
import { type Clock, steadyClock, type Timer } from "../kit/clock.ts";
import type { StreamRefusal } from "./followed_streams.ts";
import { streamLimits } from "./limits.ts";
import { LiveStream } from "./live_stream.ts";

/** A file to store. */
export interface StreamFile {
  readonly content: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  readonly name: string | null;
  readonly createdBy: string | null;
}

/** Stores a file and returns its id. */
export type StoreFile = (file: StreamFile) => Promise<string>;

interface KnownStream extends Pick<StreamFile, "name" | "createdBy"> {
  readonly live: LiveStream;
  /** Whether its content is stored when it ends. */
  readonly isStored: boolean;
  /** Action that created it. */
  readonly udfPath: string;
  readonly startedAt: number;
  /** Whether `end()` was called. Its content is complete, and the result of storing it decides how it ends. */
  isEnding: boolean;
  /** The end of its time in memory; `null` while it is open. */
  dropAt: number | null;
}

/** Totals, and the newest streams. */
export interface StreamSummary {
  readonly open: number;
  readonly ended: number;
  readonly readers: number;
  readonly bytes: number;
  readonly newest: readonly {
    readonly udfPath: string;
    readonly contentType: string;
    readonly size: number;
    readonly readers: number;
    readonly state: "open" | "ended" | "failed";
    readonly ageMs: number;
  }[];
}

/** Streams in the summary. */
const SHOWN_MAX = 50;

const createSchema = z.strictObject({
  contentType: z.string().min(1).max(streamLimits.nameCharsMax),
  name: z.string().max(streamLimits.nameCharsMax).nullable(),
  store: z.boolean(),
});
const writeSchema = z.strictObject({
  stream: z.string(),
  text: z.string().max(streamLimits.chunkBytesMax).optional(),
  bytes: z.base64().max(Math.ceil(streamLimits.chunkBytesMax / 3) * 4).optional(),
});
const streamSchema = z.strictObject({ stream: z.string() });
const encoder = new TextEncoder();

/** A content type that is safe as a header. */
const CONTENT_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:; *[\w!#$&^.+-]+=[\w!#$&^.+-]+)*$/;

export class Streams implements Disposable {
  readonly #store: StoreFile;
  readonly #clock: Clock;
  /** By id, in the order created. */
  readonly #streams = new Map<string, KnownStream>();
  /** Open streams of running actions. */
  readonly #ofActions = new Map<Promise<unknown>, Set<string>>();
  #bytes = 0;
  #areReadersEnded = false;
  #check: Timer | null = null;

  constructor(store: StoreFile, clock: Clock = steadyClock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Back `ctx.streams`, by function path. */
  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([
      [
        "_ctx/streams:create",
        mainAction(createSchema, (args, identity, caller) => this.#create(args, identity, caller)),
      ],
      [
        "_ctx/streams:write",
        mainAction(writeSchema, ({ stream, text, bytes }) => {
          const chunk = text === undefined ? Uint8Array.fromBase64(bytes ?? "") : encoder.encode(text);
          return Promise.resolve(this.#write(stream, chunk));
        }),
      ],
      ["_ctx/streams:end", mainAction(streamSchema, ({ stream }) => this.#endStream(stream))],
      [
        "_ctx/streams:fail",
        mainAction(streamSchema, ({ stream }) => Promise.resolve(this.#fail(stream))),
      ],
    ]);
  }

  /** Ends all responses before the server stops. Actions may still write, and store what they have written. */
  endReaders(): void {
    this.#areReadersEnded = true;
    for (const { live } of this.#streams.values()) live.endReaders();
  }

  /** Returns a stream that can be read. Ids are unguessable, and ended streams expire. */
  find(id: string): LiveStream | StreamRefusal {
    if (this.#areReadersEnded) return "unavailable";
    const known = this.#streams.get(id);
    return known === undefined || this.#isExpired(known) ? "not_found" : known.live;
  }

  get readers(): number {
    return this.#streams.values().reduce((sum, { live }) => sum + live.readers, 0);
  }

  get summary(): StreamSummary {
    const all = [...this.#streams.values()];
    const open = all.filter(({ live }) => live.end === null).length;
    const now = this.#clock.now();
    return {
      open,
      ended: all.length - open,
      readers: this.readers,
      bytes: this.#bytes,
      newest: all.slice(-SHOWN_MAX).reverse().map(({ live, udfPath, startedAt }) => ({
        udfPath,
        contentType: live.contentType,
        size: live.size,
        readers: live.readers,
        state: live.end ?? "open",
        ageMs: Math.round(now - startedAt),
      })),
    };
  }

  /** Ends all open streams with an error. */
  [Symbol.dispose](): void {
    this.#check?.cancel();
    for (const { live } of this.#streams.values()) live.finish("failed");
    this.#streams.clear();
  }

  #create(
    { contentType, name, store }: z.output<typeof createSchema>,
    { userId, adminId }: Identity,
    { calledBy = "", callerEnded }: CallingRun,
  ): Promise<string> {
    if (!CONTENT_TYPE.test(contentType)) throw new ServiceError("invalid_content_type");
    const ended = callerEnded ?? Promise.resolve();
    const own = this.#ofActions.get(ended) ?? new Set();
    const { perActionMax, streamsMax } = streamLimits;
    if (own.size >= perActionMax) {
      throw new UserError("too_many_streams", `An action may have ${perActionMax} open streams`);
    }
    if (this.#streams.size >= streamsMax && !this.#dropOldest()) throw new ServiceError("overloaded");
    const id = randomBytes(24).toString("base64url");
    this.#streams.set(id, {
      live: new LiveStream(contentType, this.#clock),
      isStored: store,
      name,
      createdBy: userId ?? adminId,
      udfPath: calledBy,
      startedAt: this.#clock.now(),
      isEnding: false,
      dropAt: null,
    });
    this.#bytes += streamLimits.firstBytes;
    if (!this.#ofActions.has(ended)) {
      this.#ofActions.set(ended, own);
      // An action that has ended, or whose process has, writes nothing more.
      void ended.finally(() => {
        this.#ofActions.delete(ended);
        for (const stream of own) this.#fail(stream);
      });
    }
    own.add(id);
    this.#check ??= this.#clock.every(streamLimits.checkMs, () => this.#dropExpired());
    return Promise.resolve(id);
  }

  #write(id: string, chunk: Uint8Array): void {
    const { live } = this.#open(id);
    const { streamBytesMax, totalBytesMax, chunkBytesMax } = streamLimits;
    if (chunk.length > chunkBytesMax) {
      throw new UserError(
        "chunk_too_large",
        `A chunk has ${chunk.length} bytes, the limit is ${chunkBytesMax}`,
      );
    }
    if (live.size + chunk.length > streamBytesMax) {
      this.#fail(id);
      throw new UserError("stream_too_large", `A stream has at most ${streamBytesMax} bytes`);
    }
    // The buffer may double.
    while (this.#bytes + live.memoryBytes + chunk.length > totalBytesMax) {
      if (!this.#dropOldest()) throw new ServiceError("overloaded", "The streams use all of their memory");
    }
    this.#bytes -= live.memoryBytes;
    live.append(chunk);
    this.#bytes += live.memoryBytes;
  }

  /** Returns the id of the stored file; `null` if it is not stored. Readers receive the end when it is. */
  async #endStream(id: string): Promise<string | null> {
    const stream = this.#open(id);
    const { live: { content, contentType }, isStored, name, createdBy } = stream;
    stream.isEnding = true;
    try {
      const file = isStored ? await this.#store({ content, contentType, name, createdBy }) : null;
      this.#finish(id, "ended");
      return file;
    } catch (error) {
      this.#finish(id, "failed");
      throw error;
    }
  }

  #open(id: string): KnownStream {
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.isEnding || stream.live.end !== null) {
      throw new UserError("stream_ended", "The stream has ended");
    }
    return stream;
  }

  /** Ends a stream with an error, unless `end()` was called. */
  #fail(id: string): void {
    if (this.#streams.get(id)?.isEnding !== true) this.#finish(id, "failed");
  }

  #finish(id: string, end: "ended" | "failed"): void {
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.live.end !== null) return;
    stream.live.finish(end);
    stream.dropAt = this.#clock.now() + streamLimits.keptMs;
    for (const own of this.#ofActions.values()) own.delete(id);
  }

  #isExpired({ dropAt }: KnownStream): boolean {
    return dropAt !== null && dropAt <= this.#clock.now();
  }

  #dropExpired(): void {
    for (const [id, stream] of this.#streams) {
      // Responses in progress complete, unless others need the memory.
      if (this.#isExpired(stream) && stream.live.readers === 0) this.#drop(id);
    }
    if (this.#streams.size > 0) return;
    this.#check?.cancel();
    this.#check = null;
  }

  /** Drops the oldest ended stream, if possible one without readers. Returns `false` if there is none. */
  #dropOldest(): boolean {
    const ended = [...this.#streams].filter(([, { dropAt }]) => dropAt !== null);
    const oldest = ended.find(([, { live }]) => live.readers === 0) ?? ended[0];
    if (oldest !== undefined) this.#drop(oldest[0]);
    return oldest !== undefined;
  }

  #drop(id: string): void {
    const live = this.#streams.get(id)?.live;
    this.#bytes -= live?.memoryBytes ?? 0;
    live?.drop();
    this.#streams.delete(id);
  }
}
