/** The newest answered ts (8 bytes in the data folder): the commits that workers wait for, whose link may lag behind. */
import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const NAME = "workers.newest";
const BYTES = 8;

/** Written by the process that commits. */
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

  /** A positioned write of a few microseconds. Has no effect after the file is closed. */
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
