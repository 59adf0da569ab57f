/**
 * Compares two sets of index entries without storing them: their count, and the sum of a hash of each with a random
 * seed. The order does not matter.
 */
const seeds = crypto.getRandomValues(new Uint32Array(2));
const [SEED_A = 0, SEED_B = 0] = seeds;

export class EntryChecksum {
  count = 0;
  #a = 0;
  #b = 0;

  /** `text` is the index's data for the document with this row id. */
  add(text: string, rid: number): void {
    let a = SEED_A ^ (rid | 0);
    let b = SEED_B ^ (rid / 0x1_0000_0000 | 0);
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      a = Math.imul(a ^ code, 0x85eb_ca6b);
      b = Math.imul(b ^ code, 0xc2b2_ae35);
      a ^= b >>> 15;
      b = b + a | 0;
    }
    this.count++;
    this.#a = this.#a + mixed(a ^ b >>> 7) >>> 0;
    this.#b = this.#b + mixed(b ^ a >>> 11) >>> 0;
  }

  equals(other: EntryChecksum): boolean {
    return this.count === other.count && this.#a === other.#a && this.#b === other.#b;
  }
}

function mixed(value: number): number {
  let bits = Math.imul(value ^ value >>> 16, 0x7feb_352d);
  bits = Math.imul(bits ^ bits >>> 15, 0x846c_a68b);
  return (bits ^ bits >>> 16) >>> 0;
}
