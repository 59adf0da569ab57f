import assert from "node:assert/strict";
import { markdown, meetsTarget, type Row } from "./table.ts";

const row: Row = {
  name: "a",
  measured: "2/s",
  control: "10/s",
  ratio: 0.2,
  target: { atLeast: 0.08 },
  details: {},
};

Deno.test("meetsTarget compares the ratio with a minimum or maximum", () => {
  assert.equal(meetsTarget(row), true);
  assert.equal(meetsTarget({ ...row, target: { atLeast: 0.3 } }), false);
  assert.equal(meetsTarget({ ...row, target: { atMost: 0.3 } }), true);
  assert.equal(meetsTarget({ ...row, target: { atMost: 0.1 } }), false);
  assert.equal(meetsTarget({ ...row, target: null }), null);
});

Deno.test("markdown shows ratios, targets and missed targets", () => {
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
