/** Bundles the used part of an npm package as one module of the repository, because the package depends on many others. */
import { build, type BuildOptions, stop } from "esbuild";
import { createRequire, isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";

export interface PackageModule {
  /** The task that prints the module, for its first comment. */
  readonly task: string;
  /** Name of the package, for the same comment. */
  readonly package: string;
  /** Its license file. */
  readonly license: URL;
  /** Exports of the module, as source. */
  readonly entry: string;
  /** Maps the path of a resolved module. Optional. */
  readonly path?: (resolved: string) => string;
  /** Further options of the bundler. Its plugins run before packages are resolved. */
  readonly options?: Pick<BuildOptions, "plugins" | "define" | "platform">;
}

/** Returns the source of the module. */
export async function packageModule(
  { task, package: name, license, entry, path: mapped = (path) => path, options = {} }: PackageModule,
): Promise<string> {
  const terms = await Deno.readTextFile(license);
  const { outputFiles: [file] } = await build({
    stdin: { contents: entry, resolveDir: "/" },
    bundle: true,
    format: "esm",
    target: "esnext",
    minifyWhitespace: true,
    legalComments: "none",
    ...options,
    banner: {
      js: `/* @ts-self-types="./sdk.d.ts" */\n/* Built by "deno task ${task}" from the package ` +
        `${name}:\n\n${terms.trim()}\n*/`,
    },
    plugins: [...options.plugins ?? [], {
      name: "deno",
      setup({ onResolve }) {
        onResolve({ filter: /^zod(?:\/|$)/ }, ({ path }) => ({ path, external: true }));
        onResolve({ filter: /^[^./]/ }, ({ path, importer }) => {
          if (isBuiltin(path)) return { path: `node:${path.replace(/^node:/, "")}`, external: true };
          return {
            path: mapped(
              importer === "<stdin>"
                ? fileURLToPath(import.meta.resolve(path))
                : createRequire(importer).resolve(path),
            ),
          };
        });
      },
    }],
    write: false,
    logLevel: "warning",
  });
  await stop();
  if (file === undefined) throw new Error("esbuild produced no output");
  // The names of modules contain the paths of the machine that builds them.
  return file.text.replaceAll(/"(?:\.\.\/)+[^"]*"(?=\((?:exports|\)))/g, '"module"');
}
