/** Log lines: their format and their bounds. */
import assert from "node:assert/strict";
import { LogLines } from "../../../mod/functions/isolate/ctx/log_lines.ts";
import { functionLimits } from "../../../mod/limits.ts";

Deno.test("a line is [LEVEL] message key=value, quoted where a bare value could be misread", () => {
  const lines = new LogLines();
  lines.add("INFO", "sent", {
    channel: "general",
    count: 2,
    text: "two words",
    empty: "",
    list: [1],
    none: null,
  });
  lines.add("WARN", "odd", { eq: "a=b", error: new Error("bad"), big: 3n, missing: undefined });
  assert.deepEqual(lines.take(), [
    `[INFO] sent channel=general count=2 text="two words" empty="" list=[1] none=null`,
    `[WARN] odd eq="a=b" error="Error: bad" big=3 missing=undefined`,
  ]);
});

Deno.test("console values are shown as a console shows them", () => {
  const lines = new LogLines();
  lines.addConsole("DEBUG", ["got", { a: [1, 2] }, null, 3]);
  assert.deepEqual(lines.take(), ["[DEBUG] got { a: [ 1, 2 ] } null 3"]);
});

Deno.test("a flood of lines is only counted, and the last line shows the count", () => {
  const lines = new LogLines();
  let formatted = 0;
  const value = { [Symbol.for("Deno.customInspect")]: () => `formatted ${++formatted} times` };
  for (let i = 0; i < 100_000; i++) lines.addConsole("INFO", ["line", i, value]);
  const kept = lines.take();
  assert.equal(kept.length, functionLimits.logLinesMax + 1);
  assert.match(kept.at(-1) ?? "", /^\[WARN\] 99744 more log lines were dropped/);
  assert.equal(formatted, functionLimits.logLinesMax);
});

Deno.test("long lines are truncated, and hostile values do no harm", () => {
  const lines = new LogLines();
  lines.add("INFO", "x".repeat(100_000));
  lines.add("INFO", "trap", {
    get boom() {
      throw new Error("no");
    },
  });
  lines.addConsole("INFO", [
    new Proxy({}, {
      ownKeys() {
        throw new Error("no");
      },
    }),
  ]);
  const [long, trap] = lines.take();
  assert.equal(long?.length, functionLimits.logLineCharsMax);
  assert.match(trap ?? "", /^\[INFO\] trap \(fields could not be read/);
});
