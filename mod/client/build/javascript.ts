/** The package's modules: one for each entry and one for what they share, readable, for the app's builder to minify. */
import * as esbuild from "esbuild";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { ENTRIES, EXTERNAL } from "./package_files.ts";

/** What every supported browser and Node 20 understand. */
const TARGET = "es2022";

/** Writes the modules into a folder; an entry names its module relative to this one. */
export async function writeModules(
  dir: string,
  entries: Readonly<Record<string, string>> = ENTRIES,
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
}

/** Bytes of an app's share of the package when it imports whole entries, minified and compressed with gzip. */
export async function sizeOf(dir: string, entries: readonly string[]): Promise<number> {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: entries.map((name) => `export * from "./${name}.js";`).join("\n"), resolveDir: dir },
    bundle: true,
    minify: true,
    format: "esm",
    target: TARGET,
    external: [...EXTERNAL],
    write: false,
    logLevel: "warning",
  });
  return gzipSync(outputFiles[0]?.contents ?? new Uint8Array(), { level: 9 }).byteLength;
}
