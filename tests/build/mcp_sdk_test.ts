/** The part of the MCP SDK in the repository matches the package. */
import assert from "node:assert/strict";
import { mcpSdk } from "../../mod/build/mcp_sdk.ts";

const stored = new URL("../../mod/mcp/sdk/sdk.js", import.meta.url);

// esbuild's service process ends a moment after it was stopped.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the part of the MCP SDK is up to date: deno task build:mcp", options, async () => {
  const [kept, built] = await Promise.all([Deno.readTextFile(stored), mcpSdk()]);
  // Not with `equal`: it would print all of both.
  assert.ok(kept === built, "mod/mcp/sdk/sdk.js is not what the package gives");
  assert.ok(!/\/npm\/|node_modules|sourceMappingURL/.test(kept), "it names where it was built");
});
