/** The package's type declarations: one file for each entry and one for shared types. */
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import ts from "typescript";
import { EXTERNAL } from "./package_files.ts";

/** Locations of the types of npm packages, because there is no `node_modules` folder. */
const require = createRequire(import.meta.url);
const typesOf = (name: string) => dirname(require.resolve(`${name}/package.json`));

/** References the library that `using` needs, which an app's `lib` setting may lack. */
function withLibs(code: string): string | null {
  return /\b(?:Disposable|AsyncDisposable|[dD]ispose)\b/.test(code)
    ? `/// <reference lib="esnext.disposable" />\n${code}`
    : null;
}

/** Throws if a chunk contains types of zod: to the app they would be other types than those that it imports. */
function refuseZod(code: string): void {
  const [found] = /\binterface \$?Zod\w+/.exec(code) ?? [];
  if (found === undefined) return;
  throw new Error(
    `The types contain "${found}" of zod: an exported constant or function lacks an explicit type`,
  );
}

/** Writes the declarations into a folder. Throws if they contain types of zod, or rollup warns. */
export async function writeDeclarations(
  dir: string,
  entries: Readonly<Record<string, string>>,
): Promise<void> {
  const bundle = await rollup({
    input: Object.fromEntries(
      Object.entries(entries).map(([name, path]) => [name, fileURLToPath(new URL(path, import.meta.url))]),
    ),
    external: [...EXTERNAL],
    plugins: [
      dts({
        compilerOptions: {
          target: ts.ScriptTarget.ESNext,
          module: ts.ModuleKind.ESNext,
          moduleResolution: ts.ModuleResolutionKind.Bundler,
          lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
          types: [],
          paths: {
            "react": [typesOf("@types/react")],
            "solid-js": [typesOf("solid-js")],
            "svelte": [typesOf("svelte")],
            "vue": [typesOf("vue")],
            "zod": [typesOf("zod")],
          },
          strict: true,
          noUncheckedIndexedAccess: true,
          exactOptionalPropertyTypes: true,
          allowImportingTsExtensions: true,
          skipLibCheck: true,
        },
      }),
      {
        name: "libs",
        renderChunk(code) {
          refuseZod(code);
          return withLibs(code);
        },
      },
    ],
    onwarn: ({ code, message }) => {
      // Types are not executed, so circular imports are harmless.
      if (code === "CYCLIC_CROSS_CHUNK_REEXPORT") return;
      // Only relevant for apps that emit declarations, which need no types of functions.
      if (message.includes("private shared type exports")) return;
      throw new Error(`Cannot bundle the types: ${message}`);
    },
  });
  await bundle.write({ dir, format: "es", chunkFileNames: "shared/[name].d.ts" });
  await bundle.close();
}
