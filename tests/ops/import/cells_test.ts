/** Conversion of CSV cells according to the table's schema. */
import assert from "node:assert/strict";
import { z } from "zod";
import { defineTable, id } from "../../../mod/functions/api/mod.ts";
import { ImportWorld, source } from "./support/import_world.ts";

/** Value of a cell in a document: `{}` if it is omitted. */
async function stored(field: z.ZodType, cells: readonly string[]): Promise<unknown[]> {
  await using world = new ImportWorld({ rows: defineTable({ n: z.number(), field }) });
  const values: unknown[] = [];
  for (const cell of cells) {
    const text = `n,field\n1,"${cell.replaceAll('"', '""')}"\n`;
    const refusal = await world.refusal(source("rows", text, { format: "csv" }), "replace");
    if (refusal !== "") {
      assert.match(refusal, /^Nothing was imported\.\nrows\.csv, line 2: /);
      values.push(/\bfield\b.*: /.test(refusal) ? "refused" : refusal);
      continue;
    }
    const [row] = await world.fields("rows");
    values.push(row !== undefined && "field" in row ? row["field"] : {});
  }
  return values;
}

const scenarios: readonly [name: string, field: () => z.ZodType, cells: Record<string, unknown>][] = [
  ["text", () => z.string(), {
    a: "a",
    "42": "42",
    true: "true",
    "[1]": "[1]",
    null: "null",
    "": "",
    " a ": " a ",
    'a "b"\r\nc': 'a "b"\r\nc',
  }],
  ["optional text", () => z.string().optional(), { a: "a", "": {} }],
  ["text or null", () => z.string().nullable(), { a: "a", null: "null", "": null }],
  ["optional text or null", () => z.string().nullish(), { "": null }],
  ["text with a default", () => z.string().default("d"), { "": "d", a: "a" }],
  ["text that is never empty", () => z.string().min(1), { "": "refused", a: "a" }],
  ["trimmed text", () => z.string().trim(), { " a ": "a" }],
  ["email", () => z.email(), { "a@example.com": "a@example.com", no: "refused" }],
  ["number", () => z.number(), {
    "42": 42,
    "-1.5e3": -1500,
    " 7 ": 7,
    "007": 7,
    "+3": 3,
    ".5": 0.5,
    a: "refused",
    true: "refused",
    "": "refused",
    "1e999": "refused",
    "0x10": "refused",
    NaN: "refused",
  }],
  ["whole number", () => z.int().min(0), { "42": 42, "4.5": "refused", "-1": "refused" }],
  ["optional number", () => z.number().optional(), { "": {}, "1": 1 }],
  ["number or null", () => z.number().nullable(), { "": null, "1": 1 }],
  ["truth", () => z.boolean(), {
    true: true,
    false: false,
    TRUE: true,
    "1": "refused",
    yes: "refused",
    "": "refused",
  }],
  ["array", () => z.array(z.number()), {
    "[1,2]": [1, 2],
    "[]": [],
    "[1": "refused",
    "": "refused",
    "1": "refused",
  }],
  ["object", () => z.object({ a: z.string() }), { '{"a":"b"}': { a: "b" }, '{"a":1}': "refused" }],
  ["record", () => z.record(z.string(), z.number()), { '{"a":1}': { a: 1 } }],
  ["tuple", () => z.tuple([z.string(), z.number()]), { '["a",1]': ["a", 1] }],
  ["text of a list", () => z.enum(["a", "b", "1"]), { a: "a", "1": "1", c: "refused" }],
  ["literals", () => z.literal([1, "1a", true]), { "1": 1, "1a": "1a", true: true, "2": "refused" }],
  ["number or text", () => z.union([z.string(), z.number()]), {
    "42": 42,
    "042": "042",
    "4.20": "4.20",
    a: "a",
    "": "",
  }],
  ["truth or text", () => z.union([z.string(), z.boolean()]), { true: true, maybe: "maybe" }],
  ["array or text", () => z.union([z.string(), z.array(z.string())]), {
    '["a"]': ["a"],
    "[1]": "[1]",
    a: "a",
  }],
  ["number or a word", () => z.union([z.number().max(9), z.literal("10")]), {
    "9": 9,
    "10": "10",
    "11": "refused",
  }],
  ["anything", () => z.any(), {
    "42": 42,
    '"42"': "42",
    '{"a":1}': { a: 1 },
    true: true,
    null: null,
    "hello world": "hello world",
    "007": "007",
    "": null,
  }],
  ["unknown", () => z.unknown(), { "[1]": [1], a: "a", "": null }],
  ["refined", () => z.number().refine((n) => n !== 3), { "2": 2, "3": "refused" }],
  ["readonly", () => z.array(z.number()).readonly(), { "[1]": [1] }],
  ["lazy", () => z.lazy(() => z.number()), { "1": 1 }],
  ["piped", () => z.string().pipe(z.string().min(2)), { ab: "ab", "12": "12" }],
];

for (const [name, field, cells] of scenarios) {
  Deno.test(`[IM9] cells of a field: ${name}`, async () => {
    const values = await stored(field(), Object.keys(cells));
    assert.deepEqual(Object.fromEntries(Object.keys(cells).map((cell, n) => [cell, values[n]])), cells);
  });
}

Deno.test("[IM9] ids stay strings, and an empty optional one is omitted", async () => {
  await using world = new ImportWorld({
    users: defineTable({ name: z.string() }),
    notes: defineTable({ author: id("users"), editor: id("users").optional(), seen: id("users").nullable() }),
  });
  const user = await world.insert("users", { name: "Ann" });
  await world.import(
    source("notes", `author,editor,seen\n${user},${user},${user}\n${user},,\n`, { format: "csv" }),
  );
  assert.deepEqual(await world.fields("notes"), [
    { author: user, editor: user, seen: user },
    { author: user, seen: null },
  ]);
  const wrong = `author,seen\n42,\n`;
  assert.match(
    await world.refusal(source("notes", wrong, { format: "csv" })),
    /line 2: .*author: Expected an id of table "users"/,
  );
});

Deno.test("[IM9] in a table of a union, the row determines the object type", async () => {
  await using world = new ImportWorld({
    shapes: defineTable(z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("text"), value: z.string() }),
      z.object({ kind: z.literal("number"), value: z.number(), unit: z.string().optional() }),
    ])),
  });
  const file = "kind,value,unit\ntext,42,\nnumber,42,\nnumber,1,m\n";
  await world.import(source("shapes", file, { format: "csv" }));
  assert.deepEqual(await world.fields("shapes"), [
    { kind: "text", value: "42" },
    { kind: "number", value: 42 },
    { kind: "number", value: 1, unit: "m" },
  ]);
  for (const row of ["text,a,m", "number,a,", "other,1,"]) {
    assert.match(
      await world.refusal(source("shapes", `kind,value,unit\n${row}\n`, { format: "csv" })),
      /line 2/,
    );
  }
});

Deno.test("[IM10] CSV: quotes, line ends inside of cells, CRLF, a byte order mark, ids and creation times", async () => {
  await using world = new ImportWorld({ notes: defineTable({ text: z.string(), n: z.number().optional() }) });
  const own = await world.insert("notes", { text: "x" });
  const file = `\ufeff_id,text,n,_creationTime\r\n${own},"a, ""b""\r\nc",1,5\r\n,"",,\r\n`;
  await world.import(source("notes", file, { format: "csv", pieceBytes: 5 }), "upsert");
  const [first, second] = await world.rows("notes");
  assert.deepEqual(first, { _id: own, _creationTime: 5, text: 'a, "b"\r\nc', n: 1 });
  assert.equal(second?.["text"], "");
  const late = `text,n\n"a\nb\nc",1\n"d\n",x\n`;
  assert.match(
    await world.refusal(source("notes", late, { format: "csv" })),
    /^Nothing was imported\.\nnotes\.csv, line 5: .*n: /,
  );
});

Deno.test("[IM10] unknown columns are rejected by name, and so are malformed files", async () => {
  await using world = new ImportWorld({ notes: defineTable({ text: z.string(), n: z.number().optional() }) });
  const cases: [string, RegExp][] = [
    [
      "text,wrong,m\na,1,2\n",
      /notes\.csv: Table "notes" has no fields "wrong", "m"; its fields are "text", "n"$/,
    ],
    ["text,wrong\n", /has no field "wrong"/],
    ["text,text\na,b\n", /Duplicate columns in the header: "text"/],
    ["", /line 1: the file has no header/],
    ["text,n\na\n", /line 2: the row has 1 cells and the header has 2/],
    ['text\na\n"b\n', /line 3: .*never closed/],
    ["text,n\na,1\nb,x\n", /line 3: .*n: /],
    ["_id,text\nnonsense,a\n", /line 2: .*not an id/],
    ["_creationTime,text\nsoon,a\n", /line 2: .*_creationTime must be a number/],
  ];
  for (const [text, message] of cases) {
    assert.match(await world.refusal(source("notes", text, { format: "csv" })), message);
  }
  assert.deepEqual(await world.rows("notes"), []);
  assert.equal(await world.refusal(source("notes", "text\n", { format: "csv" })), "");
});
