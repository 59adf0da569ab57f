/** Which callers may be among many: a set of bits that says no for sure, and yes with a small chance of error. */
import { callerNumber } from "./caller_number.ts";

const BITS_EACH = 16;
const BITS_MIN = 64;
/** Bits set for a caller. With sixteen bits for each, one foreign caller in 400 is taken for one of them. */
const MARKS = 4;

export function markCallers(callers: readonly string[]): Uint8Array<ArrayBuffer> {
  let bits = BITS_MIN;
  while (bits < callers.length * BITS_EACH) bits *= 2;
  const marks = new Uint8Array(bits / 8);
  for (const caller of callers) {
    for (const bit of bitsOf(caller, bits)) marks[bit >>> 3] = (marks[bit >>> 3] ?? 0) | 1 << (bit & 7);
  }
  return marks;
}

export function mayHaveCaller(marks: Uint8Array, caller: string): boolean {
  return bitsOf(caller, marks.length * 8).every((bit) => ((marks[bit >>> 3] ?? 0) >>> (bit & 7) & 1) === 1);
}

/** `bits` is a power of two. */
function bitsOf(caller: string, bits: number): number[] {
  const number = callerNumber(caller);
  const low = number >>> 0;
  // Odd, so that the steps from it lead to different bits.
  const apart = Math.floor(number / 0x100000000) | 1;
  return Array.from({ length: MARKS }, (_, mark) => (low + mark * apart >>> 0) & bits - 1);
}
