/** Builds a command for Node: bundled files, started by a small file that old Node versions can parse. */
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
  await bundle(join(folder, "bin/main.mjs"), {
    entry: `../node/${entry}`,
    define: {
      SYNCLINE_VARIABLES: JSON.stringify(optionVariables()),
      SYNCLINE_SERVER: JSON.stringify(server),
    },
    plugins: [{
      name: "conformance",
      setup({ onResolve }) {
        onResolve(
          { filter: /\/conformance\/run\.ts$/ },
          () => ({ path: "./conformance.mjs", external: true }),
        );
      },
    }],
  });
  await Deno.writeTextFile(join(folder, `bin/${name}.mjs`), firstFile(), { mode: 0o755 });
}

/** Writes `bin/conformance.mjs`, which the command of the same name loads: it contains the package ws. */
export async function writeConformance(folder: string): Promise<void> {
  const ws = import.meta.resolve("ws");
  await bundle(join(folder, "bin/conformance.mjs"), {
    entry: "../conformance/run.ts",
    notice: `/*!\nContains ws, https://github.com/websockets/ws\n\n${await Deno.readTextFile(
      new URL("LICENSE", ws),
    )}*/\n`,
    plugins: [{
      name: "packages",
      setup({ onResolve }) {
        onResolve({ filter: /^ws$/ }, () => ({ path: fileURLToPath(ws) }));
      },
    }],
  });
}

async function bundle(
  outfile: string,
  { entry, notice = "", define = {}, plugins }: {
    readonly entry: string;
    /** Comment at the beginning of the file. */
    readonly notice?: string;
    readonly define?: Record<string, string>;
    readonly plugins: esbuild.Plugin[];
  },
): Promise<void> {
  await esbuild.build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    // Resolved from the app; the others are optional packages of ws.
    external: ["vite", "bufferutil", "utf-8-validate"],
    plugins,
    // For packages in CommonJS.
    banner: {
      js: `${notice}import { createRequire as __createRequire } from "node:module"; ` +
        "const require = __createRequire(import.meta.url);",
    },
    define,
    logLevel: "warning",
  });
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
