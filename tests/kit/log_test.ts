import assert from "node:assert/strict";
import { explainedAt, explainingPages } from "../../mod/explained.ts";
import { logLine, withDocsLink } from "../../mod/kit/log.ts";
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

Deno.test("DO3 warnings and errors link to the page that explains them, other messages do not", () => {
  const message = "A function failed";
  const fields = { message: "ctx.env is not available in queries and mutations: use it in an action" };
  assert.deepEqual(withDocsLink("error", { message, fields }), { ...fields, docs: "/_/docs/functions" });
  assert.deepEqual(withDocsLink("info", { message, fields }), fields);
  const error = new RangeError("The arguments have 9 characters, more than the limit of 8");
  assert.equal(withDocsLink("warn", { message: "A thing", fields: { error } })["docs"], "/_/docs/limits");
  assert.deepEqual(withDocsLink("error", { message: "A listener failed", fields: {} }), {});
});

Deno.test("DO3 an app's own errors and log lines have no link", () => {
  const own = { message: "The bucket of the provider is full, restore the backup with --force" };
  assert.deepEqual(withDocsLink("error", { message: "A function failed", fields: own }), own);
  const said = { message: "a:b: more than the limit of 3", fields: { docs: undefined } };
  assert.deepEqual(withDocsLink("warn", said), {});
});

Deno.test("DO3 common messages link to their page", () => {
  for (
    const [message, page] of [
      [
        'The app in "/a" cannot be served: x.ts:1:1: cannot find "left-pad": packages are installed in the app\'s folder, beside or above the functions folder (npm install left-pad)',
        "functions#npm-packages",
      ],
      ['The app in "/a" cannot be served: /a/x.ts:3:37: SyntaxError: Expected a comma', "functions"],
      ["Port 3210 of 127.0.0.1 is in use", "self_hosting"],
      ["Unknown variable SYNCLINE_PROT: did you mean SYNCLINE_PORT?", "options"],
      ["--smtp-url needs a sender address: pass --mail-from", "authentication"],
      ["Give a deploy key in SYNCLINE_DEPLOY_KEY", "deploying"],
      ["Documents do not fit the schema", "data_migrations"],
    ] as const
  ) assert.equal(explainedAt(message, "server"), `/_/docs/${page}`, message);
});

Deno.test("DO3 every linked page and heading exists", async () => {
  const docs = new DocsPages();
  for (const named of new Set(explainingPages)) {
    const [page = "", heading] = named.split("#");
    const html = await (await docs.respond(page))?.text() ?? "";
    assert.ok(html.includes("<h1"), named);
    if (heading !== undefined) assert.ok(html.includes(`id="${heading}"`), named);
  }
});
