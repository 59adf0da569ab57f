/** Ranges: the contract's cases, then random headers against an oracle that marks bytes. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { multipart, multipartStream, parseRanges } from "../../mod/storage/reads/ranges.ts";
import { repeats } from "../support/long_runs.ts";
import { startTestStorage, type TestStorage } from "./support/test_storage.ts";

const CONTENTS = Array.from({ length: 1_000 }, (_, at) => String.fromCharCode(32 + (at * 7) % 90)).join("");

interface Part {
  readonly type: string | null;
  readonly range: string | null;
  readonly body: string;
}

/** Parses a multipart body byte by byte as specified in the contract. */
function partsOf(contentType: string, body: string): Part[] {
  const boundary = /^multipart\/byteranges; boundary=([0-9a-f]{32})$/.exec(contentType)?.[1];
  assert.ok(boundary !== undefined, contentType);
  const end = `--${boundary}--\r\n`;
  assert.ok(body.endsWith(end));
  const parts: Part[] = [];
  let rest = body.slice(0, -end.length);
  while (rest !== "") {
    const match =
      /^--([0-9a-f]{32})\r\nContent-Type: ([^\r]*)\r\nContent-Range: bytes (\d+)-(\d+)\/\d+\r\n\r\n/
        .exec(rest);
    assert.ok(match !== null && match[1] === boundary, rest.slice(0, 200));
    const [head, , type = "", start, last] = match;
    const length = Number(last) - Number(start) + 1;
    parts.push({ type, range: `${start}-${last}`, body: rest.slice(head.length, head.length + length) });
    rest = rest.slice(head.length + length);
    assert.ok(rest.startsWith("\r\n"));
    rest = rest.slice(2);
  }
  return parts;
}

interface Read {
  readonly status: number;
  readonly parts: readonly Part[];
  readonly headers: Headers;
}

async function read(s: TestStorage, id: string, headers: Record<string, string>): Promise<Read> {
  const response = await s.request(`/api/storage/${id}`, { headers });
  const body = new TextDecoder("latin1").decode(await response.arrayBuffer());
  if (response.status !== 416) assert.equal(response.headers.get("content-length"), String(body.length));
  const type = response.headers.get("content-type");
  const range = response.headers.get("content-range")?.replace(/^bytes (.*)\/\d+$/, "$1") ?? null;
  const parts = type?.startsWith("multipart/") ? partsOf(type, body) : [{ type, range, body }];
  return { status: response.status, parts, headers: response.headers };
}

const scenarios: { name: string; range: string; status: number; parts?: string[] }[] = [
  { name: "FR11 first to last", range: "bytes=0-9", status: 206, parts: ["0-9"] },
  { name: "FR11 one byte", range: "bytes=999-999", status: 206, parts: ["999-999"] },
  { name: "FR11 past the end", range: "bytes=990-5000", status: 206, parts: ["990-999"] },
  { name: "FR11 from a byte on", range: "bytes=990-", status: 206, parts: ["990-999"] },
  { name: "FR11 the last bytes", range: "bytes=-10", status: 206, parts: ["990-999"] },
  { name: "FR11 more last bytes than there are", range: "bytes=-5000", status: 206, parts: ["0-999"] },
  { name: "FR11 the unit in capitals", range: "BYTES=0-9", status: 206, parts: ["0-9"] },
  { name: "FR12 another unit", range: "lines=0-9", status: 200 },
  { name: "FR12 backwards", range: "bytes=9-0", status: 200 },
  { name: "FR12 no number", range: "bytes=-", status: 200 },
  { name: "FR12 nothing", range: "bytes=", status: 200 },
  { name: "FR12 only commas", range: "bytes=,,", status: 200 },
  { name: "FR12 a sign", range: "bytes=+1-2", status: 200 },
  { name: "FR12 a hexadecimal number", range: "bytes=0x1-2", status: 200 },
  { name: "FR12 space inside", range: "bytes=0 - 9", status: 200 },
  { name: "FR12 one malformed of three", range: "bytes=0-1,x,4-5", status: 200 },
  { name: "FR12 one backwards of two", range: "bytes=0-1,9-8", status: 200 },
  {
    name: "FR12 reversed beyond the precision of numbers",
    range: "bytes=9007199254740993-9007199254740992",
    status: 200,
  },
  { name: "FR13 beyond the end", range: "bytes=1000-", status: 416 },
  { name: "FR13 far beyond the end", range: `bytes=${"9".repeat(400)}-`, status: 416 },
  { name: "FR13 the last no bytes", range: "bytes=-0", status: 416 },
  { name: "FR13 several beyond the end", range: "bytes=1000-1001,-0,2000-", status: 416 },
  { name: "FR14 two ranges", range: "bytes=0-9,20-29", status: 206, parts: ["0-9", "20-29"] },
  {
    name: "FR14 in ascending order",
    range: "bytes=-5, 20-29,\t0-9",
    status: 206,
    parts: ["0-9", "20-29", "995-999"],
  },
  { name: "FR14 overlapping", range: "bytes=0-9,5-14,40-49", status: 206, parts: ["0-14", "40-49"] },
  { name: "FR14 adjacent", range: "bytes=10-19,0-9,40-49", status: 206, parts: ["0-19", "40-49"] },
  { name: "FR14 one inside another", range: "bytes=0-99,5-6,200-", status: 206, parts: ["0-99", "200-999"] },
  {
    name: "FR14 unsatisfiable ones dropped",
    range: "bytes=0-9,5000-,20-29",
    status: 206,
    parts: ["0-9", "20-29"],
  },
  { name: "FR15 one that remains", range: "bytes=0-9,5000-", status: 206, parts: ["0-9"] },
  { name: "FR15 one that is joined", range: "bytes=0-9,10-19", status: 206, parts: ["0-19"] },
  { name: "FR15 empty elements of the list", range: "bytes=,0-9, ,", status: 206, parts: ["0-9"] },
  {
    name: "FR16 sixteen ranges",
    range: `bytes=${Array.from({ length: 16 }, (_, at) => `${at * 10}-${at * 10 + 1}`)}`,
    status: 206,
    parts: Array.from({ length: 16 }, (_, at) => `${at * 10}-${at * 10 + 1}`),
  },
  {
    name: "FR16 seventeen ranges",
    range: `bytes=${Array.from({ length: 17 }, (_, at) => `${at * 10}-${at * 10 + 1}`)}`,
    status: 200,
  },
];

Deno.test("ranges, case by case", async (t) => {
  await using s = await startTestStorage();
  const id = await s.upload(CONTENTS, { type: "text/plain" });
  for (const { name, range, status, parts } of scenarios) {
    await t.step(name, async () => {
      const got = await read(s, id, { Range: range });
      assert.equal(got.status, status);
      if (status === 416) {
        assert.equal(got.headers.get("content-range"), "bytes */1000");
        assert.equal(got.headers.get("cache-control"), "no-store");
        const { status: reported, errorMessage, errorData } = JSON.parse(got.parts[0]?.body ?? "");
        assert.deepEqual([reported, typeof errorMessage], ["error", "string"]);
        assert.deepEqual(errorData, { code: "range_not_satisfiable", data: null });
      }
      if (status === 200) assert.deepEqual(got.parts, [{ type: "text/plain", range: null, body: CONTENTS }]);
      if (parts === undefined) return;
      const expected = parts.map((part) => {
        const [start = 0, end = 0] = part.split("-").map(Number);
        return { type: "text/plain", range: part, body: CONTENTS.slice(start, end + 1) };
      });
      assert.deepEqual(got.parts, expected);
      assert.equal(got.headers.get("accept-ranges"), "bytes");
    });
  }
});

Deno.test("FR17 If-Range with the file's tag keeps the range, anything else drops it", async () => {
  await using s = await startTestStorage();
  const id = await s.upload(CONTENTS);
  const { headers } = await read(s, id, {});
  const etag = headers.get("etag") ?? "";
  const range = { Range: "bytes=0-1" };
  assert.equal((await read(s, id, { ...range, "If-Range": etag })).status, 206);
  for (const ifRange of ['"other"', `W/${etag}`, "Tue, 01 Jan 2030 00:00:00 GMT", "*"]) {
    assert.equal((await read(s, id, { ...range, "If-Range": ifRange })).status, 200, ifRange);
  }
});

Deno.test("FR13 no range of an empty file is satisfiable", async () => {
  await using s = await startTestStorage();
  const id = await s.upload(new Uint8Array(0));
  for (const range of ["bytes=0-", "bytes=-5", "bytes=0-0"]) {
    const got = await read(s, id, { Range: range });
    assert.equal(got.status, 416);
    assert.equal(got.headers.get("content-range"), "bytes */0");
  }
  assert.equal((await read(s, id, { Range: "x" })).status, 200);
});

/** Result of a header without range arithmetic: each byte is tested against the specs. */
function oracle(header: string, size: number): boolean[] | "whole" | "nothing" {
  if (!/^bytes=/i.test(header)) return "whole";
  const specs = header.slice("bytes=".length).split(",").map((spec) => spec.replace(/^[ \t]*|[ \t]*$/g, ""))
    .filter((spec) => spec.length > 0);
  if (specs.length === 0 || specs.length > 16) return "whole";
  const wanted = new Array<boolean>(size).fill(false);
  for (const spec of specs) {
    const dash = spec.indexOf("-");
    const [first, last] = [spec.slice(0, dash), spec.slice(dash + 1)];
    if (dash < 0 || ![first, last].every((digits) => /^[0-9]*$/.test(digits)) || spec === "-") return "whole";
    if (first !== "" && last !== "" && BigInt(first) > BigInt(last)) return "whole";
    // Rounding of large numbers is irrelevant for such small positions.
    const [from, to] = [Number(first), last === "" ? Infinity : Number(last)];
    for (let at = 0; at < size; at++) {
      wanted[at] ||= first === "" ? at >= size - to : at >= from && at <= to;
    }
  }
  return wanted.includes(true) ? wanted : "nothing";
}

function runsOf(wanted: readonly boolean[]): { start: number; end: number }[] {
  const runs: { start: number; end: number }[] = [];
  for (const [at, wants] of wanted.entries()) {
    if (!wants) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.end === at - 1) last.end = at;
    else runs.push({ start: at, end: at });
  }
  return runs;
}

const number = fc.oneof(
  { weight: 20, arbitrary: fc.nat(70).map(String) },
  { weight: 1, arbitrary: fc.constantFrom("007", "9007199254740993", "9".repeat(40), "") },
);
const spec = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(number, number).map(([a, b]) => `${a}-${b}`) },
  { weight: 4, arbitrary: fc.tuple(fc.nat(60), fc.nat(6)).map(([a, n]) => `${a}-${a + n}`) },
  { weight: 1, arbitrary: fc.constantFrom("", " ", "-", "x", "1", "1-2-3", "--1", "1 -2", "é") },
);
const header = fc.tuple(
  fc.oneof(
    { weight: 30, arbitrary: fc.constant("bytes=") },
    fc.constantFrom("Bytes=", "bytes", "", "items="),
  ),
  fc.array(spec, { maxLength: 18 }),
  fc.constantFrom(",", ", ", " ,\t"),
).map(([unit, specs, comma]) => unit + specs.join(comma));

/** Headers tried. */
const numRuns = repeats(5_000, 1_000_000);

Deno.test("FR18 random Range headers select the oracle's bytes", () => {
  fc.assert(
    fc.property(header, fc.integer({ min: 0, max: 64 }), (text, size) => {
      const expected = oracle(text, size);
      const parts = parseRanges(text, size);
      if (expected === "whole") assert.equal(parts, null);
      else assert.deepEqual(parts, expected === "nothing" ? [] : runsOf(expected));
    }),
    { numRuns },
  );
});

Deno.test("FR18 random Range headers return the oracle's bytes", async () => {
  await using s = await startTestStorage();
  const contents = CONTENTS.slice(0, 64);
  const id = await s.upload(contents);
  await fc.assert(
    fc.asyncProperty(header.map((text) => text.replace("é", "?")), async (text) => {
      const expected = oracle(text, contents.length);
      const got = await read(s, id, { Range: text });
      if (expected === "nothing") assert.equal(got.status, 416);
      else if (expected === "whole") assert.deepEqual([got.status, got.parts[0]?.body], [200, contents]);
      else {
        assert.equal(got.status, 206);
        const runs = runsOf(expected);
        assert.deepEqual(
          got.parts.map(({ body }) => body),
          runs.map(({ start, end }) => contents.slice(start, end + 1)),
        );
      }
    }),
    { numRuns: Math.ceil(numRuns / 50) },
  );
});

Deno.test("FR10 a disconnect while the next part is being opened closes it", async () => {
  const { pieces } = multipart([{ start: 0, end: 0 }, { start: 2, end: 2 }], {
    boundary: "b",
    contentType: "text/plain",
    size: 3,
  });
  const opening = Promise.withResolvers<ReadableStream<Uint8Array<ArrayBuffer>>>();
  const isOpening = Promise.withResolvers<void>();
  const reader = multipartStream(pieces, {
    first: new Blob(["a"]).stream(),
    open: () => {
      isOpening.resolve();
      return opening.promise;
    },
  }).getReader();
  const read = (async () => {
    for (let done = false; !done;) ({ done } = await reader.read());
  })();
  await isOpening.promise;
  await reader.cancel();
  const closed = Promise.withResolvers<void>();
  opening.resolve(new ReadableStream({ cancel: () => closed.resolve() }));
  await Promise.all([closed.promise, read]);
});
