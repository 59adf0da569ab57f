/**
 * The server in a form that starts in three quarters of the processor time: what main, commands, workers and isolates load
 * is in a few files instead of hundreds. `tests/run.ts` makes it for most files, and `Child` starts it where a test starts
 * `main.ts` or `cli.ts`; permissions, import maps and all other files are those of the project.
 */
import * as esbuild from "esbuild";
import { basename, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { copyTree } from "../../mod/npm/build/copy_tree.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
/** The same place each time: what the runtime keeps of modules is by their paths. */
const program = join(repository, "dist/test_program");

/** What of the project the server needs. */
const PARTS = ["mod", "dashboard/public", "docs", "examples/chat"];
const FILES = [
  ...["main.ts", "cli.ts", "LICENSE"],
  ...["deno.json", "deno.lock", "deno.serve.json", "deno.serve.lock"],
];
/** Modules that processes begin with. Three have much in common, and load parts of it late; isolates have their own. */
const ENTRIES = ["main.ts", "cli.ts", "mod/server/workers/main.ts"];
const ISOLATE = "mod/server/isolate_entry.ts";

/** Copies the server and puts bundles into the places of its entries. Gives the folder. */
export async function makeProgram(): Promise<string> {
  await Deno.remove(program, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  for (const part of PARTS) await copyTree(join(repository, part), join(program, part));
  for (const file of FILES) await Deno.copyFile(join(repository, file), join(program, file));
  try {
    await Promise.all([bundle(ENTRIES), bundle([ISOLATE])]);
    // The runtime takes longer for a large file of TypeScript.
    await Promise.all([...ENTRIES, ISOLATE].map(async (entry) => {
      await Deno.writeTextFile(join(program, entry), `import "./${basename(entry, ".ts")}.js";\n`);
    }));
  } finally {
    await esbuild.stop();
  }
  return program;
}

async function bundle(entries: readonly string[]): Promise<void> {
  await esbuild.build({
    entryPoints: entries.map((entry) => join(repository, entry)),
    outbase: repository,
    outdir: program,
    chunkNames: "mod/chunks/[hash]",
    bundle: true,
    splitting: entries.length > 1,
    format: "esm",
    platform: "neutral",
    target: "esnext",
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: true,
    logLevel: "error",
    plugins: [{
      name: "places",
      setup(build) {
        // Packages, and modules of the runtime.
        build.onResolve({ filter: /^[^./]/ }, ({ path }) => ({ path, external: true }));
        build.onLoad({ filter: /\.ts$/ }, async ({ path }) => ({
          contents: placed(await Deno.readTextFile(path), relative(repository, path)),
          loader: "ts",
        }));
      },
    }],
  });
}

/** The text of a module that knows where it would stand in the program, and is not what the process begins with. */
function placed(text: string, path: string): string {
  const url = JSON.stringify(pathToFileURL(join(program, path)).href);
  return text.replaceAll("import.meta.url", url).replaceAll("import.meta.main", "false");
}
