import assert from "node:assert/strict";
import { parseByteRange } from "../../mod/kit/http_request.ts";

const cases: [header: string | null, size: number, expected: ReturnType<typeof parseByteRange>][] = [
  [null, 10, null],
  ["bytes=0-3", 10, { start: 0, end: 3 }],
  ["bytes=4-", 10, { start: 4, end: 9 }],
  ["bytes=-3", 10, { start: 7, end: 9 }],
  ["bytes=-30", 10, { start: 0, end: 9 }],
  ["bytes=9-20", 10, { start: 9, end: 9 }],
  ["BYTES= 0-0 ", 10, { start: 0, end: 0 }],
  ["bytes=10-", 10, "unsatisfiable"],
  ["bytes=-0", 10, "unsatisfiable"],
  ["bytes=0-", 0, "unsatisfiable"],
  ["bytes=-5", 0, "unsatisfiable"],
  ["bytes=3-2", 10, null],
  ["bytes=-", 10, null],
  ["bytes=0-1,3-4", 10, null],
  ["lines=0-1", 10, null],
  ["bytes=a-b", 10, null],
  ["bytes=99999999999999999999-", 10, "unsatisfiable"],
];

Deno.test("parseByteRange reads one range and ignores malformed headers", () => {
  for (const [header, size, expected] of cases) {
    assert.deepEqual(parseByteRange(header, size), expected, `${header} of ${size} bytes`);
  }
});
