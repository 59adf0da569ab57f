/** Sums of files, remembered while a file is as it was. */
import { createHash } from "node:crypto";
import type { VersionFile } from "./manifest.ts";

/** A file may change twice within one step of the clock that stamps it: one this young is read again. */
const SETTLED_MS = 2_000;

/** Files are read through this, a piece at a time. */
const piece = new Uint8Array(64 * 1024);

interface Known extends VersionFile {
  /** What tells one state of the file from the next. */
  readonly stamp: string;
}

export class FileSums {
  #known = new Map<string, Known>();
  #used = new Map<string, Known>();

  /** The sum of a file that is there. */
  of(path: string): VersionFile {
    const stamp = stampOf(path);
    const known = this.#known.get(path);
    const current = known?.stamp === stamp.text ? known : { ...sumOfFile(path), stamp: stamp.text };
    if (Date.now() - stamp.changedAt > SETTLED_MS) this.#used.set(path, current);
    return { bytes: current.bytes, sum: current.sum };
  }

  /** Forgets files that were not asked for since the last time. */
  settle(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }
}

/** Of a file of any size, a piece of which is in memory at a time. */
function sumOfFile(path: string): VersionFile {
  using file = Deno.openSync(path);
  const sum = createHash("sha256");
  let bytes = 0;
  for (;;) {
    const count = file.readSync(piece);
    if (count === null) return { bytes, sum: sum.digest("hex") };
    sum.update(piece.subarray(0, count));
    bytes += count;
  }
}

export function sumOf(content: Uint8Array): VersionFile {
  return { bytes: content.length, sum: createHash("sha256").update(content).digest("hex") };
}

function stampOf(path: string): { readonly text: string; readonly changedAt: number } {
  const { mtime, ctime, size, ino, dev } = Deno.statSync(path);
  const changedAt = Math.max(mtime?.getTime() ?? 0, ctime?.getTime() ?? 0);
  return { text: [mtime?.getTime(), ctime?.getTime(), size, ino, dev].join(), changedAt };
}
