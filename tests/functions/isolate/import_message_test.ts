/** Error messages for authors about imports that fail in a call. */
import assert from "node:assert/strict";
import { lateImportMessage } from "../../../mod/functions/isolate/app/import_message.ts";
import { RealHost } from "../host/support/real_host.ts";

const lockfile = `The lockfile is out of date. Run \`deno install --frozen=false\`, or rerun with ...
changes:
 6 | +    "npm:lodash@*": "4.18.1",`;

Deno.test("DV10 messages of the runtime on imports in calls are put plainly, others are left as they are", () => {
  const registry =
    /^cannot import an "npm:" or "jsr:" address, nor anything new after that: app code imports/;
  assert.match(lateImportMessage(lockfile), registry);
  assert.match(lateImportMessage("JSR package manifest for '@std/path' failed to load. Requires"), registry);
  assert.match(
    lateImportMessage('Import "left-pad" not a dependency'),
    /^cannot find "left-pad".*npm install/,
  );
  assert.equal(lateImportMessage("My lockfile is gone"), "My lockfile is gone");
  assert.equal(
    lateImportMessage(
      `Module not found "./schema". Maybe add a '.ts' extension or run with --sloppy-imports`,
    ),
    `Module not found "./schema". Maybe add a '.ts' extension`,
  );
  assert.equal(
    lateImportMessage(
      "[ERR_UNSUPPORTED_DIR_IMPORT] Directory import 'sub' is not supported resolving ES modules Maybe specify path to 'index.ts'",
    ),
    '"sub" is a folder: name the file in it, such as "sub/index.ts"',
  );
});

Deno.test("an import() of our sources or of the network says what app code imports", async () => {
  await using it = await RealHost.start({
    "late.ts": `import { action, query } from "syncline/server";
import { z } from "zod";
const args = { what: z.string() };
const handler = async (_ctx: unknown, { what }: { what: string }) => Object.keys(await import(what)).length;
export const inQuery = query({ args, handler });
export const inAction = action({ args, handler });
`,
  });
  const ours = import.meta.resolve("../../../mod/functions/isolate/app/loader.ts");
  for (
    const [what, message] of [[ours, /^cannot import a file of the server/], [
      "https://example.com/x.js",
      /^cannot import from the network/,
    ]] as const
  ) {
    for (
      const answer of [await it.query("late:inQuery", { what }), await it.act("late:inAction", { what })]
    ) {
      assert.match(String(answer).replace(/^internal: /, ""), message);
    }
  }
});
