import assert from "node:assert/strict";
import { logLine } from "../../mod/kit/log.ts";

const at = new Date(0);

Deno.test("logLine writes time, level, message and fields on one line", () => {
  assert.equal(
    logLine({ at, level: "warn", message: "slow", fields: { ms: 12, path: "a:b", none: undefined } }),
    "1970-01-01T00:00:00.000Z WARN  slow ms=12 path=a:b none=undefined\n",
  );
});

Deno.test("logLine quotes what could be taken for another field or line", () => {
  const line = logLine({ at, level: "info", message: "m", fields: { text: "a b=c\nd" } });
  assert.equal(line, '1970-01-01T00:00:00.000Z INFO  m text="a b=c\\nd"\n');
});

Deno.test("logLine puts the stack of an error below the line", () => {
  const error = new TypeError("bad");
  error.stack = "TypeError: bad\n    at here";
  assert.equal(
    logLine({ at, level: "error", message: "m", fields: { error } }),
    '1970-01-01T00:00:00.000Z ERROR m error="TypeError: bad"\nTypeError: bad\n    at here\n',
  );
});

Deno.test("logLine puts a field that is a stack below the line, without control characters", () => {
  assert.equal(
    logLine({
      at,
      level: "error",
      message: "m",
      fields: { stack: "    at f (a.ts:1:2)\n    at \x1b[2Jg", n: 1 },
    }),
    "1970-01-01T00:00:00.000Z ERROR m n=1\n    at f (a.ts:1:2)\n    at ?[2Jg\n",
  );
});
