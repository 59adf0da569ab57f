/** Truncation of log lines and errors. */
import assert from "node:assert/strict";
import { functionLimits } from "../../../mod/limits.ts";
import { logLimits } from "../../../mod/ops/limits.ts";
import { keptLines, keptPath, levelOf, runError } from "../../../mod/ops/log/execution_log.ts";

Deno.test("[EL12] lines are kept up to the limit, and a line reports the number of truncated ones", () => {
  const line = `[INFO] ${"x".repeat(993)}`;
  const fitting = Math.floor(logLimits.linesCharsMax / line.length);
  const all = Array.from({ length: fitting }, () => line);
  assert.deepEqual(keptLines(all), { lines: all, chars: fitting * line.length });
  const { lines } = keptLines([...all, line, line, line]);
  assert.deepEqual(lines.slice(0, fitting), all);
  assert.deepEqual(lines.slice(fitting), [
    `[WARN] 3 more log lines were truncated (limit: ${logLimits.linesCharsMax} characters per run)`,
  ]);
  assert.equal(levelOf(lines), 3, "the mark is a warning that a filter finds");
});

Deno.test("[EL12] large errors and unknown names are truncated and marked", () => {
  const max = functionLimits.errorCharsMax;
  const long = "y".repeat(max + 1);
  const { message, code, stack, kind } = runError({
    kind: "user",
    message: long,
    data: { code: long, data: null },
    stack: long,
  });
  assert.equal(kind, "user");
  for (const text of [message, code, stack]) assert.equal(text, `${"y".repeat(max - 3)}...`);
  assert.equal(runError({ kind: "internal", message: "y".repeat(max), data: null }).message.length, max);
  const path = "p".repeat(logLimits.pathCharsMax);
  assert.deepEqual([keptPath(path), keptPath(`${path}p`)], [path, `${path.slice(3)}...`]);
});
