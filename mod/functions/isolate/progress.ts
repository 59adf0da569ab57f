/**
 * The progress file: 16 bytes in which an isolate notes what it is about to run, so that main can tell which call a
 * silent or dead isolate was busy with. Two float64: the position of the call in its batch or wave (-1 when none is
 * running), and when it began, in milliseconds since the epoch.
 */
import { closeSync, openSync, writeSync } from "node:fs";

const PROGRESS_BYTES = 16;
const IDLE = -1;
const realNow = Date.now;

/** What an isolate is running. */
export interface Progress {
  /** Position of the call in its batch or wave, from 0. */
  readonly position: number;
  /** When it began, milliseconds since the epoch. */
  readonly startedAt: number;
}

/** Reads what an isolate noted; `null` when it runs no call, or has noted nothing yet. */
export function parseProgress(bytes: Uint8Array): Progress | null {
  if (bytes.length < PROGRESS_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const position = view.getFloat64(0, true);
  return position < 0 ? null : { position, startedAt: view.getFloat64(8, true) };
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
    const now = realNow();
    this.#view.setFloat64(0, position, true);
    this.#view.setFloat64(8, now, true);
    writeSync(this.#file, this.#bytes, 0, PROGRESS_BYTES, 0);
    return now;
  }

  /** Notes that no call is running: what takes long now is nobody's fault. */
  idle(): void {
    this.begin(IDLE);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
