/** The processes of a reader pool: one from the start, more on demand, fewer when idle. */
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import type { Isolate, IsolateStarter } from "../process/isolate.ts";
import { Restarts } from "../process/restarts.ts";
import type { Reader } from "./reader.ts";

/** How long an additional reader is kept after a slow query, or any query. */
const SPARE_KEPT_MS = 600_000;

export interface ReaderProcessesOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  readonly readersMax: number;
  /** Whether to keep a spare reader while queries of the app arrive. */
  readonly spare: boolean;
  readonly create: (isolate: Isolate) => Reader;
  /** Called after each start or failed start that `add` requested. */
  readonly onChanged: () => void;
  /** Called if a reader cannot be started and there is no other one. */
  readonly onFailed: (message: string) => void;
}

export class ReaderProcesses implements Iterable<Reader> {
  readonly #options: ReaderProcessesOptions;
  readonly #readers = new Set<Reader>();
  readonly #restarts = new Restarts();
  /** When a query was last found to be slow, and when one last arrived. */
  #slowFoundAt = -Infinity;
  #queriedAt = -Infinity;
  /** Whether `add` is starting a reader. */
  #isStarting = false;
  /** Increased by `replace`: older readers have other code. */
  #generation = 0;
  /** Consecutive failed starts. */
  #failures = 0;
  #closing = false;
  /** Set while there is more than one reader. */
  #idleTimer: Timer | null = null;
  /** Set while a retry of a failed start is pending. */
  #retryTimer: Timer | null = null;
  /** Set for a while after a query that found no spare reader. */
  #spareTimer: Timer | null = null;

  constructor(options: ReaderProcessesOptions) {
    this.#options = options;
  }

  [Symbol.iterator](): Iterator<Reader> {
    return this.#readers.values();
  }

  get size(): number {
    return this.#readers.size;
  }

  get hasFree(): boolean {
    return this.some(({ free }) => free);
  }

  some(matches: (reader: Reader) => boolean): boolean {
    for (const reader of this.#readers) if (matches(reader)) return true;
    return false;
  }

  /** Starts the first reader. Throws if that fails. */
  async start(): Promise<void> {
    const started = await this.#options.starter.start("reader");
    if (!started.ok) throw new Error(started.message);
    this.#install(started.isolate);
  }

  /** Starts a reader if the limit allows, one at a time, delayed after frequent deaths or failed starts. */
  add(): void {
    const { clock, readersMax } = this.#options;
    if (this.#isStarting || this.#closing || this.#retryTimer !== null) return;
    if (this.#readers.size >= readersMax) return;
    const pauseMs = this.#restarts.pauseMs(clock.now(), this.#failures);
    if (pauseMs === 0) void this.#startOne();
    else this.#retryTimer = clock.after(pauseMs, () => void this.#startOne());
  }

  async #startOne(): Promise<void> {
    this.#retryTimer = null;
    this.#isStarting = true;
    const generation = this.#generation;
    const started = await this.#options.starter.start("reader");
    this.#isStarting = false;
    if (started.ok && generation !== this.#generation) {
      // Code was replaced while it was starting.
      started.isolate.kill();
    } else if (started.ok) {
      this.#failures = 0;
      this.#install(started.isolate);
    } else this.#startFailed(started.message);
    this.#options.onChanged();
  }

  /** Starts a reader with new code and retires the others, even if that fails. Starts are then retried. */
  async replace(): Promise<void> {
    this.#generation++;
    const old = [...this.#readers];
    const started = await this.#options.starter.start("reader");
    for (const reader of old) this.#retire(reader);
    if (started.ok) this.#install(started.isolate);
    else this.#startFailed(started.message);
  }

  /** Removes a reader whose process has ended. Returns whether it belonged to the pool. */
  remove(reader: Reader): boolean {
    return this.#readers.delete(reader);
  }

  /** Ends a retired reader that has become free. */
  onFree(reader: Reader): void {
    if (reader.retired) this.#end(reader);
  }

  /** Records a query of the app. Starts a second reader before a slow query delays those behind it. */
  noteQuery(): void {
    const { clock, spare } = this.#options;
    this.#queriedAt = clock.now();
    if (!spare || this.#closing || this.#spareTimer !== null || this.#readers.size > 1) return;
    this.#spareTimer = clock.after(isolateLimits.spareReaderMs, () => {
      this.#spareTimer = null;
      if (this.#readers.size < 2) this.add();
    });
  }

  /** Records a slow query. */
  noteSlow(): void {
    this.#slowFoundAt = this.#options.clock.now();
  }

  /** Ends all readers. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of [this.#idleTimer, this.#retryTimer, this.#spareTimer]) timer?.cancel();
    await Promise.all([...this.#readers].map((reader) => {
      reader.kill();
      return reader.close();
    }));
  }

  #install(isolate: Isolate): void {
    if (this.#closing) {
      isolate.kill();
      return;
    }
    this.#readers.add(this.#options.create(isolate));
    this.#retireIdleLater();
  }

  #startFailed(message: string): void {
    const { log, onFailed } = this.#options;
    this.#failures++;
    log("error", "Cannot start a reader", { message });
    if (this.#readers.size === 0) onFailed(message);
  }

  /** Stops assigning work to the reader. Ends it when it is free. */
  #retire(reader: Reader): void {
    reader.retired = true;
    if (!reader.busy) this.#end(reader);
  }

  #end(reader: Reader): void {
    this.#readers.delete(reader);
    void reader.close();
  }

  /** Readers kept while idle: one more if queries were slow, or arrived, recently. */
  get #idleMax(): number {
    const since = this.#options.clock.now() - SPARE_KEPT_MS;
    return this.#slowFoundAt > since || (this.#options.spare && this.#queriedAt > since) ? 2 : 1;
  }

  #retireIdleLater(): void {
    if (this.#readers.size <= 1) return;
    this.#idleTimer ??= this.#options.clock.after(isolateLimits.readerIdleMs, () => {
      this.#idleTimer = null;
      const since = this.#options.clock.now() - isolateLimits.readerIdleMs;
      for (const reader of this.#readers) {
        if (this.#readers.size > this.#idleMax && reader.free && reader.freeSince <= since) {
          this.#retire(reader);
        }
      }
      this.#retireIdleLater();
    });
  }
}
