/** The package's modules: one for each entry and one shared, readable, to be minified by the app's bundler. */
import * as esbuild from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { EXTERNAL, SERVER_COMPONENTS } from "./package_files.ts";

/** Baseline of the supported browsers and Node 20. */
const TARGET = "es2022";

/** Writes the modules into a folder. An entry names its module relative to this one. */
export async function writeModules(
  dir: string,
  entries: Readonly<Record<string, string>>,
): Promise<void> {
  await esbuild.build({
    entryPoints: Object.entries(entries).map(([out, path]) => ({
      in: fileURLToPath(new URL(path, import.meta.url)),
      out,
    })),
    outdir: dir,
    chunkNames: "shared/[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    target: TARGET,
    external: [...EXTERNAL, "node:*"],
    logLevel: "warning",
  });
  await esbuild.build({
    entryPoints: [fileURLToPath(new URL(SERVER_COMPONENTS.path, import.meta.url))],
    outfile: join(dir, `${SERVER_COMPONENTS.name}.js`),
    bundle: true,
    format: "esm",
    target: TARGET,
    plugins: [{
      name: "client module",
      setup: ({ onResolve }) =>
        onResolve({ filter: /^\.\/mod\.ts$/ }, () => ({ path: "./react.js", external: true })),
    }],
    logLevel: "warning",
  });
}

/** Returns the minified, gzipped size of the entries when an app imports all of them. */
export async function sizeOf(dir: string, entries: readonly string[]): Promise<number> {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: entries.map((name) => `export * from "./${name}.js";`).join("\n"), resolveDir: dir },
    bundle: true,
    minify: true,
    format: "esm",
    target: TARGET,
    external: [...EXTERNAL],
    write: false,
    logLevel: "error",
  });
  return gzipSync(outputFiles[0]?.contents ?? new Uint8Array(), { level: 9 }).byteLength;
}
