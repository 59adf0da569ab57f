/** The exporters of OpenTelemetry in the repository match the packages, and are loaded only if they are used. */
import assert from "node:assert/strict";
import { posix } from "node:path";
import { stop } from "esbuild";
import { makeBundles } from "../../mod/build/bundles.ts";
import { otlpSdk } from "../../mod/build/otlp_sdk.ts";
import { bundleFolder } from "../../mod/build/payload.ts";

const stored = new URL("../../mod/ops/telemetry/sdk/sdk.js", import.meta.url);

// esbuild's service process ends a moment after it was stopped.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the exporters are up to date: deno task build:otlp", options, async () => {
  const [kept, built] = await Promise.all([Deno.readTextFile(stored), otlpSdk()]);
  // `equal` would print both files.
  assert.ok(kept === built, "mod/ops/telemetry/sdk/sdk.js differs from the packages");
  assert.ok(!/\/npm\/|node_modules|sourceMappingURL/.test(kept), "it contains paths of the build");
});

Deno.test("[OT1] a server without --otlp-endpoint loads no code of the export", options, async () => {
  const files = new Map((await makeBundles()).map(({ path, text }) => [path, text]));
  await stop();
  const exporting = [...files].filter(([, text]) => text.includes("BatchSpanProcessor")).map(([path]) =>
    path
  );
  assert.equal(exporting.length, 1, "one file, apart from the others");
  for (const entry of ["main.js", "mod_server_worker_main.js"]) {
    const loaded = new Set([`${bundleFolder}/${entry}`]);
    for (const path of loaded) {
      const imports = files.get(path)?.matchAll(/^(?:import|export)\b[^"';()]*["'](\.[^"']+)["'];/gm);
      assert.ok(imports !== undefined, path);
      for (const [, to = ""] of imports) loaded.add(posix.join(posix.dirname(path), to));
    }
    assert.ok(loaded.size > 2, entry);
    assert.ok(!loaded.has(exporting[0] ?? ""), entry);
  }
});
