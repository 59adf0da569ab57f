import assert from "node:assert/strict";
import process from "node:process";
import { setImmediate } from "node:timers";
import fc from "fast-check";
import { CsvError, type CsvRow, csvRows, csvText } from "../../mod/kit/csv.ts";
import { csvLimits } from "../../mod/kit/limits.ts";

const encoder = new TextEncoder();

/** Yields a file in pieces of this many bytes. */
async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

/** Returns all rows of a file and the error after them. */
async function read(
  file: string | Uint8Array,
  size = 7,
): Promise<{ rows: CsvRow[]; error: CsvError | null }> {
  const rows: CsvRow[] = [];
  const bytes = typeof file === "string" ? encoder.encode(file) : file;
  try {
    for await (const row of csvRows(inPieces(bytes, size))) rows.push(row);
  } catch (error) {
    assert.ok(error instanceof CsvError, String(error));
    return { rows, error };
  }
  return { rows, error: null };
}

async function cellsOf(file: string, size?: number): Promise<(readonly string[])[]> {
  const { rows, error } = await read(file, size);
  assert.equal(error, null);
  return rows.map((row) => row.cells);
}

Deno.test("[EX9] rows are read as they were written, in pieces of any size", async () => {
  const cell = fc.oneof(
    fc.string({ unit: "binary" }).filter((text) => text.isWellFormed()),
    fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "\ufeff", " ", "a", "\0", "=", "é", "🦀") }),
  );
  const table = fc.integer({ min: 1, max: 4 }).chain((columns) =>
    fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), { maxLength: 6 })
  ).filter((rows) => (rows[0]?.length ?? 0) < 2 || rows.every((row) => row.some((text) => text !== "")));
  await fc.assert(fc.asyncProperty(table, fc.integer({ min: 1, max: 40 }), async (rows, size) => {
    assert.deepEqual(await cellsOf(csvText(rows), size), rows);
  }));
});

Deno.test("[EX9] cells with commas, quotes and line ends are quoted, others are not", () => {
  assert.equal(
    csvText([["a,b", 'say "hi"', "x\r\ny", "x\ry", "", "=1+1", " b ", "\ufeffz"]]),
    '"a,b","say ""hi""","x\r\ny","x\ry",,=1+1, b ,"\ufeffz"\r\n',
  );
});

Deno.test("a byte order mark, both line ends, a last row without one and blank lines are read", async () => {
  assert.deepEqual(await cellsOf('\ufeff"a",b\r\n1,""\n\n\r\n2,x'), [["a", "b"], ["1", ""], ["2", "x"]]);
  assert.deepEqual(await cellsOf("a\n\n1\n"), [["a"], [""], ["1"]]);
  assert.deepEqual(await cellsOf(""), []);
});

Deno.test("each row has the number of its first line, even with line ends within cells", async () => {
  const { rows } = await read('a,b\r\n"1\r\n\r\n2",x\r\n"\r","\n"\n3,y\n');
  assert.deepEqual(rows.map((row) => row.line), [1, 2, 5, 7]);
});

Deno.test("empty lines are distinguished from line ends inside quotes, and counted", async () => {
  const file = 'a,b\r\n\r\n\n"x\n\n\r\n""",y\r\n\n\r\n1,"\n"\n\r\n\n2,3';
  for (const size of [1, 2, 3, 1000]) {
    const { rows, error } = await read(file, size);
    assert.equal(error, null);
    assert.deepEqual(rows, [
      { line: 1, cells: ["a", "b"] },
      { line: 4, cells: ['x\n\n\r\n"', "y"] },
      { line: 10, cells: ["1", "\n"] },
      { line: 14, cells: ["2", "3"] },
    ]);
    assert.match(String((await read("a,b\n1,2\n\n\r\n3\n", size)).error), /Line 5: the row has 1 cells/);
    assert.match(String((await read("a,b\n\r", size)).error), /Line 2: the row has 1 cells/);
    assert.match(String((await read('a,b\n""\n', size)).error), /Line 2: the row has 1 cells/);
  }
});

Deno.test("a file of empty lines is skipped without blocking the event loop", async () => {
  const blankLines = (count: number) => encoder.encode(`a,b\n${"\n".repeat(count)}1,2\n`);
  const tenth = blankLines(100_000);
  const tenthStarted = process.cpuUsage();
  await read(tenth, tenth.length);
  const tenthUs = process.cpuUsage(tenthStarted).user;
  const blank = blankLines(1_000_000);
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const started = process.cpuUsage();
  const { rows } = await read(blank, blank.length);
  const tookUs = process.cpuUsage(started).user;
  counting = false;
  assert.deepEqual(rows.at(-1), { line: 1_000_002, cells: ["1", "2"] });
  assert.ok(turns > 50, String(turns));
  // The library alone needs a hundred times as long for ten times as many.
  assert.ok(tookUs < 50 * tenthUs, `${tookUs} µs of processor time, a tenth of them ${tenthUs} µs`);
  await new Promise((resolve) => setImmediate(resolve));
});

for (
  const [what, file, message] of [
    ["a row that is too short", "a,b\n1,2\n3\n4,5\n", /^Line 3: the row has 1 cells and the header has 2$/],
    ["a row that is too long", 'a,b\n"1\n",2\n3,4,5\n', /^Line 4: the row has 3 cells/],
    ["text after a closing quote", 'a,b\n1,2\n"3"x,4\n', /^Line 3: a closing quote must be followed/],
    ["a quote in a bare cell", 'a,b\n1,2\n3"x,4\n', /^Line 3: an unquoted cell contains a quote/],
    [
      "a quote that is left open",
      'a,b\n1,2\n3,"4\n5,6\n',
      /^Line 3: a quote in this row is never closed/,
    ],
  ] as const
) {
  for (const size of [1, 1000]) {
    Deno.test(`${what} is refused after the rows before it (pieces of ${size})`, async () => {
      const { rows, error } = await read(file, size);
      assert.deepEqual(rows[0]?.cells, ["a", "b"]);
      assert.equal(rows.length, 2);
      assert.match(error?.message ?? "", message);
    });
  }
}

Deno.test("bytes that are not UTF-8 are refused, not replaced", async () => {
  for (const tail of [[0xff, 0x0a], [0xc3], [0xed, 0xa0, 0x80]]) {
    const file = new Uint8Array([...encoder.encode("a\n1\n"), ...tail, ...encoder.encode("\n2\n")]);
    const byByte = await read(file, 1);
    assert.match(byByte.error?.message ?? "", /^Line 3: here.*not UTF-8/);
    assert.ok(byByte.rows.every(({ cells }) => !cells[0]?.includes("\ufffd")));
    assert.match((await read(file, 100)).error?.message ?? "", /^Line 1: here, or in one up to line [56],/);
  }
});

Deno.test("a row without an end and a header without an end are refused before they are in memory", async () => {
  for (const filler of ["x", ","]) {
    let given = 0;
    let closed = false;
    const endless = async function* () {
      try {
        yield encoder.encode("a\n");
        const piece = encoder.encode(filler.repeat(1024 * 1024));
        while (true) {
          given += piece.length;
          yield piece;
        }
      } finally {
        closed = true;
      }
    };
    await assert.rejects(async () => {
      for await (const row of csvRows(endless())) assert.equal(row.line, 1);
    }, /Line 2: the row is longer than/);
    assert.ok(given <= csvLimits.rowBytesMax + 2 * 1024 * 1024, `${given} bytes were read`);
    assert.ok(closed, "the source was left open");
  }
  const columns = csvLimits.columnsMax;
  assert.deepEqual((await cellsOf(",".repeat(columns - 1) + "\n", 1000)).map((cells) => cells.length), [
    columns,
  ]);
  assert.match(
    (await read(",".repeat(columns) + "\n", 1000)).error?.message ?? "",
    /^Line 1: the header has/,
  );
});
