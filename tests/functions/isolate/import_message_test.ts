/** Error messages for authors about imports that fail in a call. */
import assert from "node:assert/strict";
import { importMessage } from "../../../mod/functions/isolate/app/import_message.ts";
import { RealHost } from "../host/support/real_host.ts";

const lockfile = `The lockfile is out of date. Run \`deno install --frozen=false\`, or rerun with ...
changes:
 6 | +    "npm:lodash@*": "4.18.1",`;

Deno.test("DV10 runtime messages on imports in calls are rewritten, others are unchanged", () => {
  const registry =
    /^cannot import an "npm:" or "jsr:" address, nor anything new after that: app code imports/;
  assert.match(importMessage(lockfile), registry);
  assert.match(importMessage("JSR package manifest for '@std/path' failed to load. Requires"), registry);
  assert.equal(importMessage("My lockfile is gone"), "My lockfile is gone");
});

Deno.test("an import() leads to modules of the bundle only, also in generated code", async () => {
  await using it = await RealHost.start({
    "late.ts": `import { untypedAction, untypedQuery } from "syncline/server";
import { z } from "zod";
const args = { what: z.string() };
const load = new Function("what", "return import(what)");
const handler = async (_ctx: unknown, { what }: { what: string }) => Object.keys(await load(what)).length;
const name = "./other.ts";
export const plain = untypedQuery({ handler: async () => Object.keys(await import(name)) });
export const inQuery = untypedQuery({ args, handler });
export const inAction = untypedAction({ args, handler });
`,
  });
  const ours = import.meta.resolve("../../../mod/functions/isolate/app/loader.ts");
  assert.match(
    String(await it.query("late:plain", {})),
    /Cannot find module "\.\/other\.ts": install the package/,
  );
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
