/** How much disk all unfinished uploads take together. */
import { ServiceError } from "../../errors.ts";

export class Space {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws `overloaded` when there is no room for these. */
  take(bytes: number): void {
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new ServiceError("overloaded", "There is no room for more unfinished uploads, try again later");
    }
    this.#bytes += bytes;
  }

  /** Counts bytes that are there whether or not there is room for them. */
  found(bytes: number): void {
    this.#bytes += bytes;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }
}
