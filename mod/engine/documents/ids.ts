/**
 * Document ids: 26 characters of lower-case Crockford base32. 4 for the table number (20 bits), 20 for 96 random bits, and 2
 * check characters that detect every wrong character and every swap of neighbours.
 */

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
export const ID_CHARS = 26;
/** Ids consist of groups of 10 bits, two characters each. The last random group has 6 bits. */
const GROUPS = 12;
const LAST_GROUP_MAX = 63;
/** The largest prime below 2^10: with distinct weights every single error changes the sum. */
const CHECK_PRIME = 1021;
export const TABLE_NUMBER_MAX = 2 ** 20 - 1;

const pairs: string[] = [];
for (const first of ALPHABET) for (const second of ALPHABET) pairs.push(first + second);

const valueOfCode = new Int8Array(128).fill(-1);
for (let value = 0; value < ALPHABET.length; value++) valueOfCode[ALPHABET.charCodeAt(value)] = value;

const WORDS_PER_ID = 3;
const IDS_PER_POOL = 1024;

function pair(group: number): string {
  return pairs[group] ?? "";
}

/** Returns a new id of a table. Throws a `RangeError` for an invalid table number. */
export type NewId = (tableNumber: number) => string;

/** Returns a generator of ids. `fill` provides the random bits. */
export function idSource(fill: (pool: Uint32Array<ArrayBuffer>) => void): NewId {
  const pool = new Uint32Array(WORDS_PER_ID * IDS_PER_POOL);
  let next = pool.length;
  return (tableNumber) => {
    if (!Number.isInteger(tableNumber) || tableNumber < 0 || tableNumber > TABLE_NUMBER_MAX) {
      throw new RangeError(`Cannot create an id: ${tableNumber} is not a table number`);
    }
    if (next === pool.length) {
      fill(pool);
      next = 0;
    }
    return encodeId(tableNumber, pool[next++] ?? 0, pool[next++] ?? 0, pool[next++] ?? 0);
  };
}

export const newId: NewId = idSource(crypto.getRandomValues.bind(crypto));

function encodeId(tableNumber: number, a: number, b: number, c: number): string {
  const t0 = tableNumber >>> 10;
  const t1 = tableNumber & 1023;
  const r0 = a >>> 22;
  const r1 = (a >>> 12) & 1023;
  const r2 = (a >>> 2) & 1023;
  const r3 = ((a & 3) << 8) | (b >>> 24);
  const r4 = (b >>> 14) & 1023;
  const r5 = (b >>> 4) & 1023;
  const r6 = ((b & 15) << 6) | (c >>> 26);
  const r7 = (c >>> 16) & 1023;
  const r8 = (c >>> 6) & 1023;
  const r9 = c & 63;
  const check =
    (t0 + t1 * 2 + r0 * 3 + r1 * 4 + r2 * 5 + r3 * 6 + r4 * 7 + r5 * 8 + r6 * 9 + r7 * 10 + r8 * 11 +
      r9 * 12) % CHECK_PRIME;
  return pair(t0) + pair(t1) + pair(r0) + pair(r1) + pair(r2) + pair(r3) + pair(r4) + pair(r5) + pair(r6) +
    pair(r7) + pair(r8) + pair(r9) + pair(check);
}

/** Returns the contents of an id, or `null` if the string is not an id. */
export function decodeId(text: string): { readonly tableNumber: number } | null {
  const tableNumber = tableNumberOf(text);
  return tableNumber < 0 ? null : { tableNumber };
}

/** Returns the table number of an id, or -1 if the string is not an id. */
export function tableNumberOf(text: string): number {
  if (typeof text !== "string" || text.length !== ID_CHARS) return -1;
  let sum = 0;
  let group = 0;
  let tableNumber = 0;
  for (let index = 0; index < GROUPS; index++) {
    group = groupAt(text, index);
    if (group < 0) return -1;
    if (index === 0) tableNumber = group << 10;
    else if (index === 1) tableNumber |= group;
    sum += group * (index + 1);
  }
  if (group > LAST_GROUP_MAX) return -1;
  return groupAt(text, GROUPS) === sum % CHECK_PRIME ? tableNumber : -1;
}

/** Returns the group at a position, or -1 for an invalid character. */
function groupAt(text: string, index: number): number {
  const first = valueOfCode[text.charCodeAt(index * 2)] ?? -1;
  const second = valueOfCode[text.charCodeAt(index * 2 + 1)] ?? -1;
  return first < 0 || second < 0 ? -1 : first * 32 + second;
}
