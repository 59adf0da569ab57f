/** The built page of the chat in the repository matches its sources. */
import assert from "node:assert/strict";
import { buildChat } from "../../examples/chat/build/build.ts";

// esbuild's service process ends a moment after it was stopped.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the chat's built files are up to date: deno task build:chat", options, async () => {
  const built = await buildChat();
  assert.deepEqual([...built.keys()], ["app.js", "vendor/react.js"]);
  for (const [path, text] of built) {
    const stored = await Deno.readTextFile(new URL(`../../examples/chat/public/${path}`, import.meta.url));
    // Not with `equal`: it would print all of both.
    assert.ok(stored === text, `examples/chat/public/${path} is not what examples/chat/app gives`);
    assert.ok(!text.includes("/npm/") && !text.includes("registry."), `${path} names where it was built`);
  }
});
