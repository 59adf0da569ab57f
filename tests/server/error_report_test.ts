/** The runtime's messages as authors read them about their code. */
import assert from "node:assert/strict";
import { cleanReport, withFullPaths } from "../../mod/server/dev/error_report.ts";
import { checkTypes } from "../../mod/server/dev/type_check.ts";
import { TempFolder } from "../support/temp_folder.ts";

const REPORT = `\x1b[1merror\x1b[0m: Type checking failed.
TS2322 [ERROR]: Type 'string' is not assignable to type 'number'.
const n: number = "x";
      ^
    at file:///app/functions/x.ts:3:37

TS2307 [ERROR]: Cannot find module 'file:///app/functions/y'. Maybe add a '.ts' extension or run with --sloppy-imports

Found 2 errors.

  info: The program failed type-checking, but it still might work correctly.
  hint: Re-run with --no-check to skip type-checking.

Stack backtrace:
   0: <unknown>
`;

Deno.test("DV10 a type report omits the runtime's flags and frames", () => {
  assert.equal(
    cleanReport(REPORT),
    `TS2322 [ERROR]: Type 'string' is not assignable to type 'number'.
const n: number = "x";
      ^
    at /app/functions/x.ts:3:37

TS2307 [ERROR]: Cannot find module '/app/functions/y'. Maybe add a '.ts' extension

Found 2 errors.`,
  );
  assert.equal(cleanReport("error: Uncaught (in promise) TypeError: no\n"), "TypeError: no");
});

Deno.test("DV10 files of the app are named with their full path, others are unchanged", () => {
  const message =
    "mail/send.ts:3:7: no\n    at send (mail/send.ts:3:7)\n    at file:///other/x.ts:1:1 /abs/y.ts:2:2";
  assert.equal(
    withFullPaths(message, "/app/functions"),
    "/app/functions/mail/send.ts:3:7: no\n    at send (/app/functions/mail/send.ts:3:7)\n    at file:///other/x.ts:1:1 /abs/y.ts:2:2",
  );
});

Deno.test("DV10 the real checker's report is plain, too", async () => {
  await using folder = await TempFolder.with({
    "functions/x.ts": "export const n: number = 'x';\n",
    "functions/y.ts": "import './nowhere';\n",
  });
  const result = await checkTypes(folder.at("functions"), new AbortController().signal);
  assert.ok(result?.ok === false);
  assert.match(result.report, /functions\/[xy]\.ts/);
  assert.doesNotMatch(result.report, /backtrace|--no-check|sloppy|^error: |file:\/\/\//m);
});
