/**
 * A vector index in memory, one byte for each number, with what is needed to say how far a product of bytes can be from
 * the true one. Rows stand in blocks, so growing copies nothing.
 */
import type { VectorEntry, VectorIndex } from "./vector_index.ts";

const BLOCK_ROWS = 1024;
const CODE_MAX = 127;

/** Some rows of an index, side by side. */
interface Block {
  /** The numbers of each row, divided by its scale and rounded. */
  readonly codes: Int8Array<ArrayBuffer>;
  readonly scales: Float32Array<ArrayBuffer>;
  /** Upper bounds of the length of what rounding took from each row. */
  readonly errors: Float32Array<ArrayBuffer>;
  readonly rids: Float64Array<ArrayBuffer>;
  /** For each filter field, the number given to the row's value. */
  readonly filters: readonly Int32Array<ArrayBuffer>[];
}

/** A query in the form rows are compared with. */
export interface EncodedQuery {
  readonly codes: Int32Array<ArrayBuffer>;
  readonly scale: number;
  readonly error: number;
}

export class VectorStore {
  readonly #dimensions: number;
  readonly #blocks: Block[] = [];
  readonly #slots = new Map<number, number>();
  /** Numbers of the values met in each filter field. */
  readonly #values: readonly Map<string, number>[];

  constructor({ dimensions, filterFields }: VectorIndex) {
    this.#dimensions = dimensions;
    this.#values = filterFields.map(() => new Map());
  }

  get count(): number {
    return this.#slots.size;
  }

  /** Memory the rows take. */
  get bytes(): number {
    // Codes, scale, error, row id, filters, and about 50 bytes in the map of slots.
    return this.#blocks.length * BLOCK_ROWS * (this.#dimensions + 16 + 4 * this.#values.length + 50);
  }

  /** Adds a row, or replaces it. */
  put(rid: number, { vector, filters }: VectorEntry): void {
    const slot = this.#slots.get(rid) ?? this.#slots.size;
    this.#slots.set(rid, slot);
    const at = slot % BLOCK_ROWS;
    const block = this.#blocks[(slot - at) / BLOCK_ROWS] ?? this.#addBlock();
    const dimensions = this.#dimensions;
    let largest = 0;
    for (let index = 0; index < dimensions; index++) {
      largest = Math.max(largest, Math.abs(vector[index] ?? 0));
    }
    const scale = Math.fround(largest / CODE_MAX);
    let squares = 0;
    for (let index = 0; index < dimensions; index++) {
      const part = vector[index] ?? 0;
      const code = scale === 0 ? 0 : Math.round(part / scale);
      block.codes[at * dimensions + index] = code;
      squares += (part - code * scale) ** 2;
    }
    block.scales[at] = scale;
    // A little more than the root, for what float32 rounds away.
    block.errors[at] = Math.sqrt(squares) * 1.000001 + 1e-12;
    block.rids[at] = rid;
    const keys = JSON.parse(filters) as string[];
    this.#values.forEach((numbers, field) => {
      const codes = block.filters[field];
      if (codes !== undefined) codes[at] = numberOf(numbers, keys[field] ?? "");
    });
  }

  /** Removes a row, if it is there: the last one takes its place. */
  remove(rid: number): void {
    const slot = this.#slots.get(rid);
    if (slot === undefined) return;
    const last = this.#slots.size - 1;
    if (slot !== last) this.#move(last, slot);
    this.#slots.delete(rid);
    if (last % BLOCK_ROWS === 0) this.#blocks.pop();
  }

  /**
   * Compares the rows that pass the filters with a query. `scores` and `margins` receive, for each of them, the product
   * and how far from the true one it can be; `rids` their row ids. Gives back how many they are.
   */
  compare(
    query: EncodedQuery,
    out: {
      readonly filters: readonly (readonly [field: number, keys: readonly string[]])[];
      readonly scores: Float64Array<ArrayBuffer>;
      readonly margins: Float64Array<ArrayBuffer>;
      readonly rids: Float64Array<ArrayBuffer>;
    },
  ): number {
    const { scores, margins, rids } = out;
    const allowed = out.filters.map(([field, keys]) => ({ field, numbers: this.#numbersOf(field, keys) }));
    const dimensions = this.#dimensions;
    let found = 0;
    let left = this.count;
    for (const block of this.#blocks) {
      const rows = Math.min(BLOCK_ROWS, left);
      left -= rows;
      for (let row = 0; row < rows; row++) {
        if (
          allowed.length > 0 &&
          !allowed.every(({ field, numbers }) => numbers.has(block.filters[field]?.[row] ?? -1))
        ) {
          continue;
        }
        const scale = (block.scales[row] ?? 0) * query.scale;
        const error = block.errors[row] ?? 0;
        scores[found] = product(block.codes, { from: row * dimensions, query: query.codes }) * scale;
        // |q·v - q'·v'| <= |q - q'| |v'| + |q| |v - v'|, with |q| = 1 and |v'| <= 1 + |v - v'|.
        margins[found] = query.error * (1 + error) + error + 1e-6;
        rids[found++] = block.rids[row] ?? 0;
      }
    }
    return found;
  }

  #numbersOf(field: number, keys: readonly string[]): ReadonlySet<number> {
    const numbers = new Set<number>();
    for (const key of keys) {
      const number = this.#values[field]?.get(key);
      if (number !== undefined) numbers.add(number);
    }
    return numbers;
  }

  #addBlock(): Block {
    const block: Block = {
      codes: new Int8Array(BLOCK_ROWS * this.#dimensions),
      scales: new Float32Array(BLOCK_ROWS),
      errors: new Float32Array(BLOCK_ROWS),
      rids: new Float64Array(BLOCK_ROWS),
      filters: this.#values.map(() => new Int32Array(BLOCK_ROWS)),
    };
    this.#blocks.push(block);
    return block;
  }

  #move(from: number, to: number): void {
    const [fromAt, toAt] = [from % BLOCK_ROWS, to % BLOCK_ROWS];
    const source = this.#blocks[(from - fromAt) / BLOCK_ROWS];
    const target = this.#blocks[(to - toAt) / BLOCK_ROWS];
    if (source === undefined || target === undefined) throw new RangeError("No such row in the vector store");
    const dimensions = this.#dimensions;
    target.codes.set(
      source.codes.subarray(fromAt * dimensions, (fromAt + 1) * dimensions),
      toAt * dimensions,
    );
    target.scales[toAt] = source.scales[fromAt] ?? 0;
    target.errors[toAt] = source.errors[fromAt] ?? 0;
    const rid = source.rids[fromAt] ?? 0;
    target.rids[toAt] = rid;
    target.filters.forEach((codes, field) => codes[toAt] = source.filters[field]?.[fromAt] ?? 0);
    this.#slots.set(rid, to);
  }
}

/** A query for {@linkcode VectorStore.compare}. `unit` has length 1. */
export function encodeQuery(unit: Float64Array<ArrayBuffer>): EncodedQuery {
  // As fine as sums of products of these and of bytes stay within 32 bits.
  const codeMax = Math.min(32_767, Math.floor((2 ** 31 - 1) / (CODE_MAX * unit.length)) - 1);
  let largest = 0;
  for (const part of unit) largest = Math.max(largest, Math.abs(part));
  const scale = largest / codeMax;
  const codes = new Int32Array(unit.length);
  let squares = 0;
  unit.forEach((part, index) => {
    const code = scale === 0 ? 0 : Math.round(part / scale);
    codes[index] = code;
    squares += (part - code * scale) ** 2;
  });
  return { codes, scale, error: Math.sqrt(squares) * 1.000001 + 1e-12 };
}

/** The product of a row's codes and a query's, four at a time. */
function product(
  codes: Int8Array<ArrayBuffer>,
  { from, query }: { readonly from: number; readonly query: Int32Array<ArrayBuffer> },
): number {
  const { length } = query;
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let index = 0;
  // Positions are within both arrays, so the bitwise operators meet no undefined.
  for (; index + 3 < length; index += 4) {
    const at = from + index;
    a = (a + Math.imul(codes[at] as number, query[index] as number)) | 0;
    b = (b + Math.imul(codes[at + 1] as number, query[index + 1] as number)) | 0;
    c = (c + Math.imul(codes[at + 2] as number, query[index + 2] as number)) | 0;
    d = (d + Math.imul(codes[at + 3] as number, query[index + 3] as number)) | 0;
  }
  for (; index < length; index++) {
    a = (a + Math.imul(codes[from + index] as number, query[index] as number)) | 0;
  }
  return a + b + c + d;
}

function numberOf(numbers: Map<string, number>, key: string): number {
  const known = numbers.get(key);
  if (known !== undefined) return known;
  numbers.set(key, numbers.size);
  return numbers.size - 1;
}
