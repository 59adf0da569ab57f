/** The `Range` header of a request for one part of a file (RFC 9110, section 14). */

/** Bytes of a file; both ends are inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the part of a file of `size` bytes that a `Range` header requests. `null` means the whole file: no header, a
 * malformed one, another unit, or several ranges. `"unsatisfiable"`: the part is outside the file.
 */
export function parseByteRange(header: string | null, size: number): ByteRange | "unsatisfiable" | null {
  const match = header?.match(/^bytes=\s*(\d*)-(\d*)\s*$/i);
  if (!match) return null;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return null;
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return null;
  if (start >= size) return "unsatisfiable";
  return { start, end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
