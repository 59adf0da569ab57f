/**
 * The progress file: 16 bytes in which an isolate notes what it is about to run, so that main can tell which call a
 * silent or dead isolate was busy with. Two float64: the position of the call in its batch or wave (-1 when it waits for
 * one, -2 while it works with the database for all of them), and when that began, in milliseconds since the epoch.
 */
import { closeSync, openSync, writeSync } from "node:fs";

const PROGRESS_BYTES = 16;
const IDLE = -1;
const STORING = -2;
const realNow = Date.now;

/** What an isolate is running. */
export interface Progress {
  /** Position of the call in its batch or wave, from 0; `null` while it begins or commits a group. */
  readonly position: number | null;
  /** When it began, milliseconds since the epoch. */
  readonly startedAt: number;
}

/** Reads what an isolate noted; `null` when it waits for something to do, or has noted nothing yet. */
export function parseProgress(bytes: Uint8Array): Progress | null {
  if (bytes.length < PROGRESS_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const position = view.getFloat64(0, true);
  if (position === IDLE) return null;
  return { position: position === STORING ? null : position, startedAt: view.getFloat64(8, true) };
}

/** The isolate's end of the file. A write is positioned and takes less than a microsecond. */
export class ProgressFile implements Disposable {
  readonly #file: number;
  readonly #bytes = new Uint8Array(PROGRESS_BYTES);
  readonly #view = new DataView(this.#bytes.buffer);

  constructor(path: string) {
    this.#file = openSync(path, "w");
    this.idle();
  }

  /** Notes that the call at this position begins now. Returns the time noted. */
  begin(position: number): number {
    return this.#note(position);
  }

  /** Notes that it begins or commits a group: what takes long now is the disk's fault. */
  storing(): void {
    this.#note(STORING);
  }

  /** Notes that it waits for something to do. */
  idle(): void {
    this.#note(IDLE);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }

  #note(position: number): number {
    const now = realNow();
    this.#view.setFloat64(0, position, true);
    this.#view.setFloat64(8, now, true);
    writeSync(this.#file, this.#bytes, 0, PROGRESS_BYTES, 0);
    return now;
  }
}
