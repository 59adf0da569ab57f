import assert from "node:assert/strict";
import { markdown, met, type Row } from "./table.ts";

const row: Row = {
  name: "a",
  measured: "2/s",
  control: "10/s",
  ratio: 0.2,
  target: { atLeast: 0.08 },
  details: {},
};

Deno.test("a row is met on the target's own side", () => {
  assert.equal(met(row), true);
  assert.equal(met({ ...row, target: { atLeast: 0.3 } }), false);
  assert.equal(met({ ...row, target: { atMost: 0.3 } }), true);
  assert.equal(met({ ...row, target: { atMost: 0.1 } }), false);
  assert.equal(met({ ...row, target: null }), null);
});

Deno.test("the table names the ratio, the target and what was missed", () => {
  assert.equal(
    markdown([row, { ...row, name: "bb", target: { atMost: 0.1 } }]),
    [
      "| row | measured | control | ratio | target    | met |",
      "| --- | -------- | ------- | ----- | --------- | --- |",
      "| a   | 2/s      | 10/s    | 0.200 | >= 0.0800 | yes |",
      "| bb  | 2/s      | 10/s    | 0.200 | <= 0.100  | NO  |",
    ].join("\n"),
  );
});
