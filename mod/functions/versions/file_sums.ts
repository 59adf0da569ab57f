/** Caches file hashes while the files are unchanged. */
import { createHash } from "node:crypto";
import type { VersionFile } from "./manifest.ts";

/** A file may change twice within one timestamp step: recently changed files are always hashed again. */
const SETTLED_MS = 2_000;

/** Buffer size for reading. */
const piece = new Uint8Array(64 * 1024);

interface Known extends VersionFile {
  /** Identifies a state of a file. */
  readonly stamp: string;
}

export class FileSums {
  #known = new Map<string, Known>();
  #used = new Map<string, Known>();

  of(path: string): VersionFile {
    const stamp = stampOf(path);
    const known = this.#known.get(path);
    const current = known?.stamp === stamp.text ? known : { ...sumOfFile(path), stamp: stamp.text };
    if (Date.now() - stamp.changedAt > SETTLED_MS) this.#used.set(path, current);
    return { bytes: current.bytes, sum: current.sum };
  }

  /** Drops files that were not requested since the last call. */
  settle(): void {
    this.#known = this.#used;
    this.#used = new Map();
  }
}

/** Hashes a file of any size with bounded memory. */
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
