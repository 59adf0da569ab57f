/**
 * The progress file: 16 bytes in which an isolate records what it is running, so that main can identify the call that hung or
 * killed it. Two float64: the position of the call in its batch (-1 when idle, -2 while committing or starting a group), and
 * the start time in milliseconds since the epoch.
 */
const PROGRESS_BYTES = 16;
const IDLE = -1;
const STORING = -2;
const realNow = Date.now;
const { Start: start } = Deno.SeekMode;

/** The current work of an isolate. */
export interface Progress {
  /** Position of the call in its batch, from 0. `null` while it starts or commits a group. */
  readonly position: number | null;
  /** Start time, milliseconds since the epoch. */
  readonly startedAt: number;
}

/** Contents of a file without progress. */
export const idleProgress: Uint8Array = new Uint8Array(new Float64Array([IDLE, 0]).buffer);

/** Reads the progress. Returns `null` if the isolate is idle or has recorded nothing yet. */
export function parseProgress(bytes: Uint8Array): Progress | null {
  if (bytes.length < PROGRESS_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const position = view.getFloat64(0, true);
  if (position === IDLE) return null;
  return { position: position === STORING ? null : position, startedAt: view.getFloat64(8, true) };
}

/** The isolate's writer of the file. A write takes less than a microsecond. */
export class ProgressFile implements Disposable {
  readonly #file: Deno.FsFile;
  readonly #bytes = new Uint8Array(PROGRESS_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);

  constructor(path: string) {
    // Not truncated: main has allocated the file, so that isolates can start while the disk is full.
    this.#file = Deno.openSync(path, { write: true, create: true });
    this.idle();
  }

  /** Records the start of the call at this position. Returns the time. */
  begin(position: number): number {
    return this.#note(position);
  }

  /** Records that a group is being started or committed: delays are now due to the disk. */
  storing(): void {
    this.#note(STORING);
  }

  /** Records that the isolate is idle. */
  idle(): void {
    this.#note(IDLE);
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }

  #note(position: number): number {
    const now = realNow();
    this.#view.setFloat64(0, position, true);
    this.#view.setFloat64(8, now, true);
    // Two calls instead of one of `node:fs`, which takes 9 ms to load.
    this.#file.seekSync(0, start);
    this.#file.writeSync(this.#bytes);
    return now;
  }
}
