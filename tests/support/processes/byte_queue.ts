/** Bytes to send on a connection: appended during a write, taken all at once for the next write. */

const FIRST_BYTES = 1024;
const SPARE_BYTES_MAX = 262_144;

export class ByteQueue {
  #bytes = new Uint8Array(FIRST_BYTES);
  #spare: Uint8Array<ArrayBuffer> | null = null;
  #length = 0;

  /** The buffer that {@linkcode reserve} gives places in; another one after each reservation or take. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Makes room for `count` bytes and returns where it begins. */
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
    // The room is made first: reserving may replace the buffer.
    const at = this.reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** Everything queued; the queue is empty afterwards. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = this.#spare ?? new Uint8Array(FIRST_BYTES);
    this.#spare = null;
    this.#length = 0;
    return taken;
  }

  /** Gives a taken buffer back for reuse once it was written. */
  giveBack(taken: Uint8Array<ArrayBuffer>): void {
    if (taken.buffer.byteLength <= SPARE_BYTES_MAX) this.#spare = new Uint8Array(taken.buffer);
  }
}
