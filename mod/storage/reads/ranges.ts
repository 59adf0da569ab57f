/** Parses the `Range` header (RFC 9110, section 14; FR11 to FR18). */
import type { ByteRange } from "../../kit/http_request.ts";
import { storageLimits } from "../limits.ts";

const SPEC = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * Returns the ranges of a file of `size` bytes that a header requests, in ascending order, with overlapping or adjacent ones
 * merged and those outside the file dropped. `null` means the whole file: no header, a malformed one, another unit, or too
 * many ranges. An empty list means that no range is satisfiable.
 */
export function parseRanges(header: string | null, size: number): ByteRange[] | null {
  const list = header?.match(/^bytes=(.*)$/i)?.[1];
  if (list === undefined) return null;
  // Empty list elements are ignored (RFC 9110, section 5.6.1).
  const specs = list.split(",").map((spec) => spec.replace(/^[ \t]+|[ \t]+$/g, "")).filter((spec) =>
    spec !== ""
  );
  if (specs.length === 0 || specs.length > storageLimits.rangesMax) return null;
  const parts: ByteRange[] = [];
  for (const spec of specs) {
    const part = parseSpec(spec, size);
    if (part === "malformed") return null;
    if (part !== "outside") parts.push(part);
  }
  return joined(parts);
}

function parseSpec(spec: string, size: number): ByteRange | "malformed" | "outside" {
  const match = SPEC.exec(spec);
  if (match === null) return "malformed";
  const [, first, last = "", suffix] = match;
  if (first === undefined) {
    const length = Math.min(Number(suffix), size);
    return length === 0 ? "outside" : { start: size - length, end: size - 1 };
  }
  // Compares numbers of any length exactly.
  if (last !== "" && BigInt(last) < BigInt(first)) return "malformed";
  const start = Number(first);
  if (start >= size) return "outside";
  return { start, end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}

function joined(parts: readonly ByteRange[]): ByteRange[] {
  const result: ByteRange[] = [];
  for (const part of parts.toSorted((a, b) => a.start - b.start)) {
    const previous = result.at(-1);
    if (previous === undefined || part.start > previous.end + 1) result.push(part);
    else if (part.end > previous.end) result[result.length - 1] = { start: previous.start, end: part.end };
  }
  return result;
}
