/** The zod of isolates matches the package. */
import assert from "node:assert/strict";
import { isolateZod } from "../../mod/build/isolate_zod.ts";

const stored = new URL("../../mod/functions/isolate/zod/zod.js", import.meta.url);

// esbuild's service process ends a moment after it was stopped.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the zod of isolates is up to date: deno task build:zod", options, async () => {
  const [kept, built] = await Promise.all([Deno.readTextFile(stored), isolateZod()]);
  // Not with `equal`: it would print all of both.
  assert.ok(kept === built, "mod/functions/isolate/zod/zod.js is not what the package zod gives");
  assert.ok(!/\/npm\/|node_modules|sourceMappingURL/.test(kept), "it names where it was built");
});

Deno.test("zod in isolates has the exports of the package, and is another instance with another address", async () => {
  const [one, other, whole] = await Promise.all([
    import(`${stored.href}?one`),
    import(`${stored.href}?other`),
    import("zod"),
  ]);
  assert.deepEqual(Object.keys(one).toSorted(), Object.keys(whole).toSorted());
  assert.notEqual(one.z.ZodString, other.z.ZodString);
});
