/** The package's types: one file for each entry and one for what they share. */
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import ts from "typescript";
import { ENTRIES, EXTERNAL } from "./package_files.ts";

/** Where the types of a package stand: there is no `node_modules` folder to look into. */
const require = createRequire(import.meta.url);
const typesOf = (name: string) => dirname(require.resolve(`${name}/package.json`));

/** Writes the types into a folder. Throws when the sources do not type-check. */
export async function writeDeclarations(
  dir: string,
  entries: Readonly<Record<string, string>> = ENTRIES,
): Promise<void> {
  const bundle = await rollup({
    input: Object.fromEntries(
      Object.entries(entries).map(([name, path]) => [name, fileURLToPath(new URL(path, import.meta.url))]),
    ),
    external: [...EXTERNAL],
    plugins: [dts({
      compilerOptions: {
        target: ts.ScriptTarget.ESNext,
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Bundler,
        lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
        types: [],
        paths: { react: [typesOf("@types/react")], zod: [typesOf("zod")] },
        strict: true,
        noUncheckedIndexedAccess: true,
        exactOptionalPropertyTypes: true,
        allowImportingTsExtensions: true,
        skipLibCheck: true,
      },
    })],
    onwarn: ({ code, message }) => {
      // Types are not executed, in no order.
      if (code === "CYCLIC_CROSS_CHUNK_REEXPORT") return;
      // Only for apps that emit declarations of their own, which nobody needs whose functions are called by type.
      if (message.includes("private shared type exports")) return;
      throw new Error(`Cannot bundle the types: ${message}`);
    },
  });
  await bundle.write({ dir, format: "es", chunkFileNames: "shared/[name].d.ts" });
  await bundle.close();
}
