/**
 * SHA-256 of contents as they come. Those of large files are made on a thread of their own: hashing is the longest part of
 * an upload, and main has everybody else to serve.
 */
import { createHash } from "node:crypto";
import { storageLimits } from "../../limits.ts";
import { HashThread } from "./hash_thread.ts";

/** A hash under way. Disposing of it gives it up. One call at a time. */
export interface ContentHash extends Disposable {
  /** Resolves when the chunk is the caller's again. */
  update(chunk: Uint8Array): Promise<void>;
  /** In hexadecimal; the hash has ended then. */
  digest(): Promise<string>;
}

export class ContentHashes implements Disposable {
  readonly #idleMs: number;
  /** Started with the first large file, ended when there was none for some time. */
  #thread: HashThread | null = null;
  /** Hashes under way on the thread. */
  #underWay = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ idleMs = storageLimits.hashIdleMs }: { readonly idleMs?: number } = {}) {
    this.#idleMs = idleMs;
  }

  /** A new hash. `length`: bytes that are announced; `null` when unknown. */
  begin(length: number | null): ContentHash {
    if (length === null || !(length >= storageLimits.hashThreadBytesMin)) return hashHere();
    if (this.#thread === null || this.#thread.failed) this.#thread = new HashThread();
    clearTimeout(this.#timer);
    this.#underWay++;
    const hash = this.#thread.begin();
    let over = false;
    return {
      update: (chunk) => hash.update(chunk),
      digest: () => hash.digest(),
      [Symbol.dispose]: () => {
        if (over) return;
        over = true;
        hash[Symbol.dispose]();
        this.#underWay--;
        if (this.#underWay === 0) this.#endWhenIdle();
      },
    };
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#thread?.[Symbol.dispose]();
  }

  #endWhenIdle(): void {
    this.#timer = setTimeout(() => {
      this.#thread?.[Symbol.dispose]();
      this.#thread = null;
    }, this.#idleMs);
    Deno.unrefTimer(this.#timer);
  }
}

function hashHere(): ContentHash {
  const hash = createHash("sha256");
  return {
    update: (chunk) => {
      hash.update(chunk);
      return Promise.resolve();
    },
    digest: () => Promise.resolve(hash.digest("hex")),
    [Symbol.dispose]: () => {},
  };
}
