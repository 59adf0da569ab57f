/** Runs as columns of numbers: lossless for all numbers. */
import assert from "node:assert/strict";
import { encodeColumns, NumberColumns } from "../../../mod/ops/log/packs/number_columns.ts";
import { packMessage, packOf, RunPacker } from "../../../mod/ops/log/packs/run_pack.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";
import { markCallers, mayHaveCaller } from "../../../mod/ops/log/store/caller_marks.ts";
import { packed, unpackRuns } from "./support/packed.ts";

const columnsOfNumbers: Readonly<Record<string, readonly number[]>> = {
  "equal": [7, 7, 7],
  "small": [3, 255, 0],
  "a range of 256": [1_000, 1_256, 1_001],
  "two bytes": [-30_000, 35_535, 0],
  "more than two bytes": [0, 65_536, 1],
  "four bytes": [1, 4_294_967_296, 2],
  "more than four bytes": [0, 4_294_967_296, 2],
  "times": [1_893_456_000_000, 1_893_456_000_200, 1_893_455_999_000],
  "the largest": [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0],
  "fractions": [0.25, 1 / 3, -1e-9],
  "none of them numbers to count with": [Infinity, -Infinity, 1e300],
};

Deno.test("columns of numbers of any range are decoded unchanged", () => {
  const given = Object.values(columnsOfNumbers);
  const shape = { columns: given.length, rows: 3 };
  const table = Float64Array.from([0, 1, 2].flatMap((row) => given.map((values) => values[row] ?? NaN)));
  const bytes = encodeColumns(table, shape);
  const moved = new Uint8Array(bytes.length + 3);
  moved.set(bytes, 3);
  for (const read of [bytes, moved.subarray(3)]) {
    const columns = new NumberColumns(read, shape);
    for (const [column, name] of Object.keys(columnsOfNumbers).entries()) {
      assert.deepEqual([0, 1, 2].map((row) => columns.at(column, row)), given[column], name);
    }
  }
});

Deno.test("invalid columns are rejected", () => {
  const shape = { columns: 3, rows: 100 };
  const whole = encodeColumns(Float64Array.from({ length: 300 }, (_, i) => i * i), shape);
  for (const size of [0, 5, 27, 40, whole.length - 8]) {
    assert.throws(() => new NumberColumns(whole.slice(0, size), shape), RangeError, `${size} bytes`);
  }
  const foreign = whole.slice();
  foreign[24] = 3;
  assert.throws(() => new NumberColumns(foreign, shape), RangeError);
});

const quiet: RunRecord = [1_893_456_000_000, "a:b", 1, null, 0, 0, 7, null, 0.25, 0, 1, 2, 3, 4, null, []];
const records: readonly RunRecord[] = [
  quiet,
  [1_893_456_000_003, "a:b", 0, "user:u1", 0, 0, 8, 0, 12.34, 1_000_000_000, 0, 0, 0, 0, null, []],
  [1_893_455_999_003, "c:d", 0, "admin:é", 2, 0, 8, 9, 0.01, 0.02, 0, 0, 0, 0, {
    kind: "internal",
    message: "m",
  }, []],
  [1_893_456_000_004, "c:d", 3, "user:u1", 0, 2, 9, null, 1, 1, 0, 0, 0, 0, null, ["[INFO] x"]],
];

Deno.test("[EL4] a batch returns its runs, also as a message, and is empty afterwards", () => {
  const packer = new RunPacker();
  for (let turn = 0; turn < 3; turn++) {
    for (const record of records) packer.add(record);
    assert.equal(packer.count, records.length);
    const pack = packer.take();
    assert.equal(packer.count, 0);
    assert.deepEqual(unpackRuns(pack), records);
    assert.deepEqual(unpackRuns(packOf(JSON.parse(JSON.stringify(packMessage(pack))))), records);
    assert.deepEqual(unpackRuns(packer.take()), []);
  }
});

Deno.test("[EL18] a thousand uneventful queued runs take thirty bytes each", () => {
  const runs = Array.from({ length: 1_000 }, (_, i): RunRecord => {
    const [at, path, kind, , ...rest] = quiet;
    return [at + i % 200, path, kind, `user:u${i % 50}`, ...rest];
  });
  const { columns, callers, told } = packed(runs);
  assert.deepEqual([callers.length, told.length], [50, 0]);
  assert.ok(columns.length < 30_000, `${columns.length} bytes`);
});

Deno.test("[EL8] caller marks contain all marked callers, and few others", () => {
  for (const count of [0, 1, 3, 1_000]) {
    const callers = Array.from({ length: count }, (_, i) => `user:${i * 7_919}`);
    const marks = markCallers(callers);
    assert.ok(callers.every((caller) => mayHaveCaller(marks, caller)));
    const foreign = Array.from({ length: 10_000 }, (_, i) => `user:other${i}`);
    const taken = foreign.filter((caller) => mayHaveCaller(marks, caller)).length;
    assert.ok(taken < 200, `${taken} of 10,000 beside ${count}`);
  }
});
