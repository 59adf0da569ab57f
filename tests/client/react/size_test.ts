/** Size that the hooks add to a page with the client. */
import assert from "node:assert/strict";
import * as esbuild from "esbuild";
import { fileURLToPath } from "node:url";

const HOOKS = fileURLToPath(new URL("../../../mod/client/react/", import.meta.url));

// The service behind esbuild exits shortly after it was stopped.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the hooks are under 5 KB on top of the client", options, async () => {
  try {
    const { outputFiles } = await esbuild.build({
      entryPoints: [`${HOOKS}mod.ts`],
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
      plugins: [{
        name: "modules of the page",
        setup: (build) =>
          build.onResolve(
            { filter: /^(react$|\.\.\/)/ },
            ({ path }) => path.startsWith("../bindings/") ? null : { path, external: true },
          ),
      }],
    });
    const [file] = outputFiles;
    assert.ok(file !== undefined && file.text.includes("useSyncExternalStore"));
    const zipped = new Blob([file.text]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = (await new Response(zipped).arrayBuffer()).byteLength;
    assert.ok(bytes < 5 * 1024, `${bytes} bytes, gzipped`);
  } finally {
    await esbuild.stop();
  }
});
