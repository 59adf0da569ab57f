/** Disk quota of all unfinished uploads. */
import { ServiceError } from "../../errors.ts";

export class UploadQuota {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves bytes. Throws `overloaded` if the quota is exceeded. */
  reserve(bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new ServiceError(
        "overloaded",
        "The disk quota of unfinished uploads is used up. Try again later.",
      );
    }
    this.#bytes += bytes;
  }

  /** Adds existing bytes, even beyond the quota. */
  addExisting(bytes: number): void {
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}
