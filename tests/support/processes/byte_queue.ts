/** Bytes to send on a connection: appended during a write, and all taken for the next write. */

const FIRST_BYTES = 1024;
const SPARE_BYTES_MAX = 262_144;

export class ByteQueue {
  #bytes = new Uint8Array(FIRST_BYTES);
  #spare: Uint8Array<ArrayBuffer> | null = null;
  #length = 0;

  /** The buffer of the range returned by {@linkcode reserve}. Replaced by each reservation or take. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Reserves `count` bytes and returns their offset. */
  reserve(count: number): number {
    const at = this.#length;
    if (at + count > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(at + count, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, at));
      this.#bytes = larger;
    }
    this.#length = at + count;
    return at;
  }

  append(bytes: Uint8Array): void {
    // Reserve first, because it may replace the buffer.
    const at = this.reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** Returns everything queued and empties the queue. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = this.#spare ?? new Uint8Array(FIRST_BYTES);
    this.#spare = null;
    this.#length = 0;
    return taken;
  }

  /** Returns a written buffer for reuse. */
  giveBack(taken: Uint8Array<ArrayBuffer>): void {
    if (taken.buffer.byteLength <= SPARE_BYTES_MAX) this.#spare = new Uint8Array(taken.buffer);
  }
}
