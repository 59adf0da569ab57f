import assert from "node:assert/strict";
import { runInNewContext } from "node:vm";
import { StartError } from "../../mod/config/start_error.ts";
import { helpPages, withHelp } from "../../mod/explained.ts";
import { logLine, plainFields, withDocsLink } from "../../mod/kit/log.ts";
import { DocsPages } from "../../mod/server/docs/docs_pages.ts";

const at = new Date(0);

Deno.test("logLine writes time, level, message and fields on one line", () => {
  assert.equal(
    logLine({ at, level: "warn", message: "slow", fields: { ms: 12, path: "a:b", none: undefined } }),
    "1970-01-01T00:00:00.000Z WARN  slow ms=12 path=a:b none=undefined\n",
  );
});

Deno.test("logLine quotes values that look like another field or line", () => {
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

Deno.test("logLine prints an error of another context", () => {
  const error: unknown = runInNewContext("new RangeError('bad')");
  assert.match(logLine({ at, level: "error", message: "m", fields: { error } }), /error="RangeError: bad"\n/);
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

Deno.test("plain fields survive JSON, including numbers that it lacks", () => {
  const fields = plainFields({ ms: NaN, limit: Infinity, count: 1, ok: true, list: [1], none: undefined });
  assert.deepEqual(fields, { ms: "NaN", limit: "Infinity", count: 1, ok: true, list: "[1]" });
  assert.deepEqual(JSON.parse(JSON.stringify(fields)), fields);
});

Deno.test("DO3 warnings and errors with a code link to the page that explains it, other messages do not", () => {
  const fields = { message: "ctx.env is not available in queries and mutations", code: "function_kind" };
  const { code: _, ...others } = fields;
  assert.deepEqual(withDocsLink("error", fields), { ...others, docs: "/_/docs/functions" });
  const link = "http://127.0.0.1:3210/_/docs/functions";
  assert.deepEqual(withDocsLink("error", fields, (path) => `http://127.0.0.1:3210${path}`), {
    ...others,
    docs: link,
  });
  assert.deepEqual(withDocsLink("info", fields), fields);
  const error = new StartError("--metrics-token needs --metrics", { code: "metrics" });
  assert.deepEqual(withDocsLink("warn", { error }), { error, docs: "/_/docs/metrics" });
  const coded = withHelp(new RangeError("too long"), "limit");
  assert.deepEqual(withDocsLink("error", { error: coded }), { error: coded, docs: "/_/docs/limits" });
  assert.deepEqual(withDocsLink("error", { error: new StartError("no page") })["docs"], undefined);
  assert.deepEqual(withDocsLink("error", {}), {});
});

Deno.test("DO3 messages and unknown codes have no link", () => {
  for (
    const fields of [
      { message: "The bucket of the provider is full, restore the backup with --force" },
      { code: 1012 },
      { code: "ENOENT" },
      { code: "toString" },
      { code: "limit", docs: "/_/docs/errors" },
    ]
  ) assert.deepEqual(withDocsLink("error", fields), fields);
});

Deno.test("DO3 every linked page and heading exists", async () => {
  const docs = new DocsPages();
  for (const named of new Set<string>(Object.values(helpPages))) {
    const [page = "", heading] = named.split("#");
    const html = await (await docs.respond(page))?.text() ?? "";
    assert.ok(html.includes("<h1"), named);
    if (heading !== undefined) assert.ok(html.includes(`id="${heading}"`), named);
  }
});
