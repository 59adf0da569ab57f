import assert from "node:assert/strict";
import fc from "fast-check";
import { openExport } from "../../../mod/engine/mod.ts";
import { csvRows } from "../../../mod/kit/csv.ts";
import { csvLimits } from "../../../mod/kit/limits.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { ExportError } from "../../../mod/ops/tables/export/mod.ts";
import { exportPieces } from "../../../mod/ops/tables/export/pieces.ts";
import { anyTable, TestDatabase } from "../../engine/support.ts";
import { databaseOf, textOf } from "./support.ts";

const HOSTILE = [
  'say "hi"',
  "a,b",
  "line\nline\r\nline\rline",
  "nul\0nul",
  "=1+1",
  "@SUM(A1)",
  "\ufeffmark",
  " spaces ",
  "é🦀\u2028\u2029",
  "\x7f\x1b[0m",
];

async function rowsOf(text: string): Promise<(readonly string[])[]> {
  const rows: (readonly string[])[] = [];
  const bytes = async function* () {
    yield new TextEncoder().encode(text);
  };
  for await (const { cells } of csvRows(bytes())) rows.push(cells);
  return rows;
}

/** Documents of a table as the engine returns them. */
function stored(database: TestDatabase): Record<string, unknown>[] {
  using snapshot = openExport(database.path);
  return [...snapshot.documents("items")].map((text) => JSON.parse(text));
}

Deno.test("[EX2] each line of JSONL is one document, its id and creation time first, other fields as stored", () => {
  using database = databaseOf([
    { b: 1, a: [1, { c: null }], text: HOSTILE.join("") },
    { "7": true, z: "\ud800 half" },
    {},
    JSON.parse('{"inner": {"__proto__": {"x": 1}}, "constructor": -0, "toJSON": 1e300}'),
  ]);
  const text = textOf(database.path, "jsonl");
  const lines = text.split("\n");
  assert.equal(lines.pop(), "");
  const documents = stored(database);
  assert.equal(documents.length, 4);
  assert.deepEqual(lines.map((line) => JSON.parse(line)), documents);
  for (const line of lines) assert.match(line, /^\{"_id":"[0-9a-z]{26}","_creationTime":[0-9.]+[,}]/);
  assert.match(lines[0] ?? "", /"b":1,"a":\[1,\{"c":null\}\],"text":/);
  assert.match(lines[1] ?? "", /,"7":true,"z":"\\ud800 half"\}$/);
});

Deno.test("[EX3] the CSV header has id, creation time and every field of any document, in order of occurrence", async () => {
  using database = databaseOf([{ b: 1 }, { a: 2, b: 3 }, { constructor: "p", toString: "t" }, {
    c: null,
  }]);
  const rows = await rowsOf(textOf(database.path, "csv"));
  assert.deepEqual(rows[0], ["_id", "_creationTime", "b", "a", "constructor", "toString", "c"]);
  assert.deepEqual(rows.slice(1).map((row) => row.slice(2)), [
    ["1", "", "", "", ""],
    ["3", "2", "", "", ""],
    ["", "", "p", "t", ""],
    ["", "", "", "", ""],
  ]);
});

Deno.test("[EX4] cells: strings unchanged, numbers, booleans, lists and objects as JSON, null and missing empty", async () => {
  using database = databaseOf([
    ...HOSTILE.map((value) => ({ value })),
    { value: 42 },
    { value: 0.1 },
    { value: 1e300 },
    { value: true },
    { value: false },
    { value: null },
    {},
    { value: "" },
    { value: [1, "a,b", null] },
    { value: { a: { b: "\ud800" } } },
    { value: "42" },
  ]);
  const cells = (await rowsOf(textOf(database.path, "csv"))).slice(1).map((row) => row[2]);
  assert.deepEqual(cells, [
    ...HOSTILE,
    "42",
    "0.1",
    "1e+300",
    "true",
    "false",
    "",
    "",
    "",
    '[1,"a,b",null]',
    '{"a":{"b":"\\ud800"}}',
    "42",
  ]);
  const documents = stored(database);
  const rows = (await rowsOf(textOf(database.path, "csv"))).slice(1);
  assert.deepEqual(
    rows.map((row) => [row[0], Number(row[1])]),
    documents.map((doc) => [doc._id, doc._creationTime]),
  );
});

Deno.test("[EX4] documents can be restored from their CSV if the type of each field is known", async () => {
  const text = fc.string({ unit: "binary", minLength: 1 }).filter((value) => value.isWellFormed());
  const document = fc.record({
    text,
    number: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    flag: fc.boolean(),
    list: fc.array(fc.string({ unit: "binary" })),
  }, { requiredKeys: [] });
  await fc.assert(
    fc.asyncProperty(fc.array(document, { maxLength: 5 }), async (documents) => {
      using database = databaseOf(documents);
      const [header = [], ...rows] = await rowsOf(textOf(database.path, "csv"));
      const read = rows.map((row) => {
        const doc: Record<string, unknown> = {};
        row.forEach((cell, at) => {
          const field = header[at] ?? "";
          if (cell === "") return;
          doc[field] = field === "text" || field === "_id" ? cell : JSON.parse(cell);
        });
        return doc;
      });
      assert.deepEqual(read, stored(database));
    }),
    { numRuns: 30 },
  );
});

Deno.test("[EX5] documents that CSV cannot represent are rejected before the first output, with advice", () => {
  const { columnsMax } = csvLimits;
  const wide = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${from + at}`, 1]));
  const fields = columnsMax - 2;
  for (
    const [documents, message] of [
      [
        [{ a: "x" }, { a: "half \udc00" }],
        /document "[0-9a-z]{26}" has a lone surrogate in field "a".*jsonl/,
      ],
      [[{ ["\ud800"]: 1 }], /a lone surrogate in field "\\ud800".*jsonl/],
      [
        [wide(0, 1000), wide(1000, 1000), wide(2000, fields - 2000 + 1)],
        /more than 2048 different fields.*jsonl/,
      ],
    ] as const
  ) {
    using database = databaseOf(documents);
    using snapshot = openExport(database.path);
    const pieces = exportPieces(snapshot, { table: "items", format: "csv" });
    assert.throws(() => {
      for (const piece of pieces) assert.equal(piece.text, "");
    }, (error) => error instanceof ExportError && error.code === "not_csv" && message.test(error.message));
    assert.equal(textOf(database.path, "jsonl").split("\n").length, documents.length + 1);
  }
  using widest = databaseOf([wide(0, 1000), wide(1000, 1000), wide(2000, fields - 2000)]);
  assert.equal(textOf(widest.path, "csv").split("\r\n")[0]?.split(",").length, columnsMax);
});

Deno.test("[EX2] [EX3] a table without documents is an empty file, or a header", () => {
  using database = databaseOf([]);
  assert.equal(textOf(database.path, "jsonl"), "");
  assert.equal(textOf(database.path, "csv"), "_id,_creationTime\r\n");
});

Deno.test("[EX8] tables of 20,000 documents and of large documents are exported in small pieces", () => {
  using database = new TestDatabase({ small: anyTable(), large: anyTable(), wide: anyTable() });
  database.writer.openGroup();
  for (let from = 0; from < 20_000; from += 10_000) {
    const tx = database.writer.beginMutation({ at: database.now });
    for (let n = from; n < from + 10_000; n++) tx.insert("small", { n });
    database.writer.releaseMutation();
  }
  database.writer.commitGroup("");
  for (let n = 0; n < 12; n++) {
    database.commit((tx) => tx.insert("large", { n, body: '"'.repeat(500_000) }));
  }
  for (let n = 0; n < 1_500; n++) database.commit((tx) => tx.insert("wide", { [`f${n}`]: n }));
  using snapshot = openExport(database.path);
  const most = opsLimits.exportPieceChars;
  for (const format of ["jsonl", "csv"] as const) {
    for (
      const [table, documents, largest] of [["small", 20_000, 0], ["large", 12, 1_000_100], [
        "wide",
        1_500,
        0,
      ]] as const
    ) {
      let count = 0;
      let longest = 0;
      for (const piece of exportPieces(snapshot, { table, format })) {
        count += piece.documents;
        longest = Math.max(longest, piece.text.length);
      }
      assert.equal(count, documents);
      assert.ok(
        longest <= most + Math.max(largest, 2 * 1024),
        `${table} as ${format}: ${longest} characters`,
      );
    }
  }
});

Deno.test("[EX1] a snapshot shows one state until it is closed, and blocks no writer", () => {
  using database = new TestDatabase({ left: anyTable(), right: anyTable() });
  const both = () => {
    database.commit((tx) => {
      tx.insert("left", { body: "x".repeat(1000) });
      tx.insert("right", { body: "x".repeat(1000) });
    });
  };
  for (let n = 0; n < 300; n++) both();
  using snapshot = openExport(database.path);
  let left = 0;
  for (const piece of exportPieces(snapshot, { table: "left", format: "jsonl" })) {
    left += piece.documents;
    both();
  }
  let right = 0;
  for (const piece of exportPieces(snapshot, { table: "right", format: "csv" })) {
    right += piece.documents;
    both();
  }
  assert.deepEqual([left, right, snapshot.ts], [300, 300, 300]);
  using later = openExport(database.path);
  assert.ok(later.ts > 305, String(later.ts));
});

Deno.test("a scan visits each document once, regardless of lengths, and can be aborted", () => {
  const lengths = [0, 1, 70_000, 3, 65_000, 600, 64_000, 2_000, ...Array.from({ length: 600 }, (_, n) => n)];
  using database = databaseOf(lengths.map((length) => ({ body: "x".repeat(length) })));
  using snapshot = openExport(database.path);
  const walk = snapshot.documents("items");
  assert.equal(walk.next().done, false);
  walk.return();
  const met = [...snapshot.documents("items")].map((text) => JSON.parse(text).body.length);
  assert.deepEqual(met, lengths);
  assert.throws(() => snapshot.documents("absent").next(), /There is no table "absent"/);
});
