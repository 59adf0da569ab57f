/**
 * Bundles the server's modules into a few files, because finding and reading hundreds of modules dominates start time.
 * When run as a program, writes the bundles of a clone to a folder, or prints those of a build that may not start the
 * bundler.
 */
import * as esbuild from "esbuild";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type BundledFile, bundleFolder } from "./payload.ts";

const projectDir = fileURLToPath(new URL("../../", import.meta.url));

/** Entry modules. Those of the server share most code and load some of it lazily. */
const SERVER = ["main.ts", "cli.ts", "mod/server/worker/main.ts"];
/** Entry modules bundled separately. */
const HELPERS = [
  "mod/ops/backups/scheduled/folder_process.ts",
  "mod/ops/log/worker/main.ts",
  "mod/ops/maintenance/process.ts",
  "mod/ops/replication/process/main.ts",
  "mod/storage/thumbnails/process.ts",
];
/** One file each, so that nothing is loaded after app code starts. */
const ISOLATES = ["mod/server/isolate_entry.ts", "mod/functions/isolate/main.ts"];
export const ENTRIES: readonly string[] = [...SERVER, ...HELPERS, ...ISOLATES];

/**
 * Builds the bundles of a released server. The caller stops the bundler with `esbuild.stop()`. `more` are further entry
 * modules, which share the server's code.
 */
export async function makeBundles(more: readonly string[] = []): Promise<BundledFile[]> {
  const built = await bundles({ folder: bundleFolder, define: {}, more });
  // Entries keep their paths. Plain JavaScript loads faster than a large TypeScript file.
  const shims = [...ENTRIES, ...more].map((entry) => ({
    path: entry,
    text: `import ${JSON.stringify(address(dirname(entry), `${bundleFolder}/${nameOf(entry)}.js`))};\n`,
  }));
  return [...built, ...shims];
}

/** Writes the bundles of a clone. Its entry modules remain, so that processes are started with the bundles. */
async function writeClone(folder: string): Promise<void> {
  // Its last part is the state of the sources, followed by the id of the process that builds it.
  const finalFolder = folder.replace(/\.\d+$/, "");
  for (const { path, text } of await bundles({ folder, define: { BUNDLES: JSON.stringify(finalFolder) } })) {
    const file = join(projectDir, path);
    await Deno.mkdir(dirname(file), { recursive: true });
    await Deno.writeTextFile(file, text);
  }
}

interface BundleOptions {
  /** Relative to the project. */
  readonly folder: string;
  /** Values of constants. */
  readonly define: Readonly<Record<string, string>>;
  /** Entry modules in addition to the server's. */
  readonly more?: readonly string[];
}

async function bundles(options: BundleOptions): Promise<BundledFile[]> {
  const built = await Promise.all([
    bundled([...SERVER, ...options.more ?? []], { ...options, late: true }),
    ...HELPERS.map((entry) => bundled([entry], { ...options, late: true })),
    ...ISOLATES.map((entry) => bundled([entry], { ...options, late: false })),
  ]);
  return built.flat();
}

/** With `late`, modules imported dynamically remain separate files. */
async function bundled(
  entries: readonly string[],
  { late, folder, define }: BundleOptions & { readonly late: boolean },
): Promise<BundledFile[]> {
  const { outputFiles } = await esbuild.build({
    absWorkingDir: projectDir,
    entryPoints: entries.map((entry) => ({ in: join(projectDir, entry), out: nameOf(entry) })),
    outdir: join(projectDir, folder),
    define,
    chunkNames: "[hash]",
    bundle: true,
    write: false,
    splitting: late,
    format: "esm",
    platform: "neutral",
    target: "esnext",
    // Keep line breaks, so that stack traces can be mapped to the sources. With `keepNames`, each closure would get its name
    // when it is created, which takes 256 bytes.
    minifySyntax: true,
    logLevel: "error",
    plugins: [{
      name: "original-urls",
      setup(build) {
        // npm packages and runtime modules.
        build.onResolve({ filter: /^[^./]/ }, ({ path }) => ({ path, external: true }));
        build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
          const file = relative(projectDir, path);
          const text = await Deno.readTextFile(path);
          return {
            contents: withOriginalUrl(text, {
              file,
              root: `${relative(folder, ".")}/`,
              isEntry: entries.includes(file),
            }),
            loader: "ts",
          };
        });
      },
    }],
  });
  return outputFiles.map(({ path, text }) => ({ path: relative(projectDir, path), text }));
}

/** The bundle with its original module URL, and whether it is the entry of the process. */
function withOriginalUrl(
  text: string,
  { file, root, isEntry }: { readonly file: string; readonly root: string; readonly isEntry: boolean },
): string {
  const url = `new URL(${JSON.stringify(root + file)}, import.meta.url).href`;
  return text
    .replaceAll("import.meta.main", String(isEntry))
    .replaceAll(/import\.meta\.url\b/g, url);
}

function nameOf(entry: string): string {
  return entry.replace(/\.ts$/, "").replaceAll("/", "_");
}

function address(folder: string, file: string): string {
  const path = relative(folder, file);
  return path.startsWith(".") ? path : `./${path}`;
}

if (import.meta.main) {
  const [folder] = Deno.args;
  if (folder !== undefined) await writeClone(folder);
  else await new Blob([JSON.stringify(await makeBundles())]).stream().pipeTo(Deno.stdout.writable);
  await esbuild.stop();
}
