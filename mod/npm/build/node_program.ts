/** Builds a command for Node: one bundled file, started by a small file that old Node versions can parse. */
import * as esbuild from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { optionVariables } from "../../config/options.ts";
import { nodeVersionMin } from "./manifests.ts";

/** Writes `bin/<name>.mjs` and the bundled `bin/main.mjs`. `server` is the id of the server in the same package. */
export async function writeProgram(
  folder: string,
  { name, entry, server = "" }: { readonly name: string; readonly entry: string; readonly server?: string },
): Promise<void> {
  await esbuild.build({
    entryPoints: [fileURLToPath(new URL(`../node/${entry}`, import.meta.url))],
    outfile: join(folder, "bin/main.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    // Resolved from the app; the others are optional packages of ws.
    external: ["vite", "bufferutil", "utf-8-validate"],
    plugins: [{
      name: "packages",
      setup({ onResolve }) {
        onResolve({ filter: /^ws$/ }, ({ path }) => ({ path: fileURLToPath(import.meta.resolve(path)) }));
      },
    }],
    // For packages in CommonJS.
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; ' +
        "const require = __createRequire(import.meta.url);",
    },
    define: {
      SYNCLINE_VARIABLES: JSON.stringify(optionVariables()),
      SYNCLINE_SERVER: JSON.stringify(server),
    },
    logLevel: "warning",
  });
  await Deno.writeTextFile(join(folder, `bin/${name}.mjs`), firstFile(), { mode: 0o755 });
}

function firstFile(): string {
  const [major, minor] = nodeVersionMin.split(".");
  return `#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major > ${major} || (major === ${major} && minor >= ${minor})) {
  await import("./main.mjs");
} else {
  console.error("Syncline needs Node ${nodeVersionMin} or newer, but this is " + process.version + ": install it from https://nodejs.org");
  process.exitCode = 1;
}
`;
}
