/**
 * The newest ts a server has answered for, as 8 bytes in the data folder. A worker is told of commits over its link, but
 * may be busy while a client that has its answer already asks it for something: it reads here what it has yet to hear.
 */
import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const NAME = "workers.newest";
const BYTES = 8;

/** The end of the process that commits. */
export class NewestTsFile implements Disposable {
  readonly #path: string;
  readonly #file: number;
  readonly #view = new DataView(new ArrayBuffer(BYTES));
  #closed = false;

  constructor(dataDir: string, ts: number) {
    this.#path = join(dataDir, NAME);
    this.#file = openSync(this.#path, "w", 0o600);
    this.write(ts);
  }

  /** A positioned write of a few microseconds. Without effect once closed. */
  write(ts: number): void {
    if (this.#closed) return;
    this.#view.setFloat64(0, ts, true);
    writeSync(this.#file, this.#view, 0, BYTES, 0);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    closeSync(this.#file);
    rmSync(this.#path, { force: true });
  }
}

/** A worker's end. */
export class NewestTsReader implements Disposable {
  readonly #file: number;
  readonly #view = new DataView(new ArrayBuffer(BYTES));

  constructor(dataDir: string) {
    this.#file = openSync(join(dataDir, NAME), "r");
  }

  get ts(): number {
    readSync(this.#file, this.#view, 0, BYTES, 0);
    return this.#view.getFloat64(0, true);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
