/** The processes of a reader pool, which start on demand and stop when idle. */
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import type { Isolate, IsolateStarter } from "../process/isolate.ts";
import { Restarts } from "../process/restarts.ts";
import type { Reader } from "./reader.ts";

/** How long the last reader is kept after a query, and a second one after a slow query or one of the app. */
const KEPT_MS = 600_000;

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
  /** Called if a reader cannot be started and there is no other one with the current code. */
  readonly onFailed: (message: string) => void;
}

export class ReaderProcesses implements Iterable<Reader> {
  readonly #options: ReaderProcessesOptions;
  readonly #readers = new Set<Reader>();
  readonly #restarts = new Restarts();
  #slowFoundAt = -Infinity;
  #appQueriedAt = -Infinity;
  /** When a query, of the app or the service, last arrived or was expected. */
  #queriedAt = -Infinity;
  /** Whether `add` is starting a reader. */
  #isStarting = false;
  /** Increased by `replace`: older readers have other code. */
  #generation = 0;
  /** Consecutive failed starts. */
  #failures = 0;
  #closing = false;
  /** Set while there is a reader. */
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

  /** Whether there is a reader with the current code. */
  get hasCurrent(): boolean {
    return this.some(({ draining }) => !draining);
  }

  /** Ensures that there is a reader, or that one is starting. */
  prepare(): void {
    this.#queriedAt = this.#options.clock.now();
    if (!this.hasCurrent) this.add();
  }

  /** Starts a reader if the limit allows, one at a time, delayed after frequent deaths or failed starts. */
  add(): void {
    const { clock, readersMax } = this.#options;
    if (this.#isStarting || this.#closing || this.#retryTimer !== null) return;
    // Draining readers must not prevent the first one with new code.
    if (this.#readers.size >= readersMax && this.hasCurrent) return;
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
    if (this.#closing || generation !== this.#generation) {
      // The code was replaced in the meantime, or the server is stopping.
      if (started.ok) started.isolate.kill();
      this.add();
    } else if (started.ok) {
      this.#failures = 0;
      this.#readers.add(this.#options.create(started.isolate));
      this.#drainIdleLater();
    } else this.#startFailed(started.message);
    this.#options.onChanged();
  }

  /** Drains all readers, because there is new code. If there were any, starts one with it. */
  replace(): void {
    this.#generation++;
    const old = [...this.#readers];
    for (const reader of old) this.#drain(reader);
    if (old.length > 0) this.add();
  }

  /** Removes a reader whose process has ended. Returns whether it belonged to the pool. */
  remove(reader: Reader): boolean {
    return this.#readers.delete(reader);
  }

  /** Ends a draining reader that has become free. */
  onFree(reader: Reader): void {
    if (reader.draining) this.#end(reader);
  }

  /** Records queries. Those of the app start a second reader before a slow one delays those behind it. */
  noteQueries({ ofApp }: { readonly ofApp: boolean }): void {
    const { clock, spare } = this.#options;
    this.#queriedAt = clock.now();
    if (!ofApp) return;
    this.#appQueriedAt = this.#queriedAt;
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

  #startFailed(message: string): void {
    const { log, onFailed } = this.#options;
    this.#failures++;
    log("error", "Cannot start a reader", { message });
    if (!this.hasCurrent) onFailed(message);
  }

  /** Stops assigning work to the reader. Ends it when it is free. */
  #drain(reader: Reader): void {
    reader.draining = true;
    if (!reader.busy) this.#end(reader);
  }

  #end(reader: Reader): void {
    this.#readers.delete(reader);
    void reader.close();
  }

  /** Readers kept while idle. */
  get #idleMax(): number {
    const since = this.#options.clock.now() - KEPT_MS;
    if (this.#slowFoundAt > since || (this.#options.spare && this.#appQueriedAt > since)) return 2;
    return this.#queriedAt > since ? 1 : 0;
  }

  #drainIdleLater(): void {
    if (this.#readers.size === 0) return;
    this.#idleTimer ??= this.#options.clock.after(isolateLimits.readerIdleMs, () => {
      this.#idleTimer = null;
      const since = this.#options.clock.now() - isolateLimits.readerIdleMs;
      for (const reader of this.#readers) {
        if (this.#readers.size > this.#idleMax && reader.free && reader.freeSince <= since) {
          this.#drain(reader);
        }
      }
      this.#drainIdleLater();
    });
  }
}
