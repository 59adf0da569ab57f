/** Bundles an app and its packages into one file with a source map, in a child process that runs none of its code. */
import { builtinModules, isBuiltin } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { programRoot } from "../../kit/processes/program_root.ts";
import { packageLimits } from "../limits.ts";
import { SOURCES_URL } from "../wire/app_sources.ts";
import { findModules } from "../module_files.ts";
import { failureOf, retryFlags } from "./bundle_errors.ts";
import { type BundleInputs, checkInputs } from "./bundle_inputs.ts";
import { docComments } from "./doc_comments.ts";
import { runBundler, splitMap, withMap } from "./bundler_process.ts";
import { type AppPlace, isInside, nameBelow, packageRoots } from "./package_roots.ts";

/** The name of a bundle in its code folder. */
export const BUNDLE_NAME = "bundle.js";

export interface AppBundle {
  /** The folder that contains all sources. The source map names files below it. */
  readonly folder: string;
  readonly code: Uint8Array<ArrayBuffer>;
  /** Whether the sources are as they were when bundling began. */
  readonly unchanged: () => boolean;
}

export interface BundleSource extends AppPlace {
  /** The folder that contains all sources. Found by their packages if absent. */
  readonly within?: string;
}

/** Replacements for modules that isolates provide. */
const MODULES = fileURLToPath(new URL("mod/functions/packages/modules/", programRoot));
const ZOD = `${MODULES}zod.js`;
const ENTRY = "syncline-entry.js";
/** Apart from the names behind it, which the build of a server replaces in its sources. */
const META = "import.meta";
/** Times of files are this coarse. */
const FILE_TIME_STEP_MS = 10;
/** Runs of the bundler for one bundle. Each one has more flags that solve the errors of the one before. */
const RUNS_MAX = 4;

/** Bundles a functions folder (a real path). @throws BundleFailure with the author's file and line. */
export async function bundleApp({ functionsDir, dataDir, within }: BundleSource): Promise<AppBundle> {
  const startedAt = Date.now();
  const root = dirname(functionsDir);
  const entry = entryOf(functionsDir);
  const roots = within === undefined ? [functionsDir, ...packageRoots({ functionsDir, dataDir })] : [within];
  const added = new Set<string>();
  for (let runs = 1;; runs++) {
    const { ok, output, report } = await runBundler({
      flags: bundlerFlags(functionsDir, added),
      input: entry,
      folder: dirname(functionsDir),
      // Packages that have no zod of their own find the one of isolates here.
      env: { NODE_PATH: MODULES },
    });
    if (!ok) {
      const flags = retryFlags(report);
      if (flags === null || runs >= RUNS_MAX) {
        throw failureOf(report, { functionsDir, quoted: within ?? "/" });
      }
      for (const flag of flags) added.add(flag);
      continue;
    }
    const { inputs } = JSON.parse(report) as { readonly inputs: BundleInputs };
    const sources = checkInputs(inputs, { functionsDir, roots, ignored: [join(root, ENTRY), ZOD] });
    const folder = within ?? commonFolder([root, ...sources.map(dirname)]);
    return {
      folder,
      code: assemble(output, { root, folder, required: builtinsRequired(inputs) }),
      unchanged: () => !sources.some((path) => changedSince(path, startedAt)),
    };
  }
}

/**
 * A module with the app's modules: name, path prefix, a function that loads it, so that errors can name it, and the doc
 * comments of its exports, which bundles drop.
 */
function entryOf(functionsDir: string): string {
  const below = `./${basename(functionsDir)}/`;
  const rows = findModules(functionsDir).map(({ file, name, modulePath }) => {
    const docs = JSON.stringify(docComments(Deno.readTextFileSync(file)));
    const load = `()=>import(${JSON.stringify(below + name)})`;
    return `[${JSON.stringify(name)},${JSON.stringify(modulePath)},${load}${
      docs === "{}" ? "" : `,${docs}`
    }]`;
  });
  return `export default [${rows.join(",\n")}];\n`;
}

function bundlerFlags(functionsDir: string, added: ReadonlySet<string>): string[] {
  return [
    "--bundle",
    "--format=esm",
    "--platform=node",
    "--conditions=module-sync",
    "--main-fields=main",
    "--target=esnext",
    // The runtime has no decorators. Dynamic imports load modules of the bundle only.
    "--supported:decorators=false",
    "--supported:dynamic-import=false",
    // A bundle has no files of its own to read.
    `--define:${META}.url="file:///${BUNDLE_NAME}"`,
    `--define:${META}.filename="/${BUNDLE_NAME}"`,
    `--define:${META}.dirname="/"`,
    `--define:${META}.main=false`,
    "--sourcemap=inline",
    "--sources-content=false",
    "--loader:.css=empty",
    "--log-level=error",
    "--log-override:import-is-undefined=error",
    "--log-override:ignored-bare-import=error",
    "--log-limit=0",
    "--color=false",
    "--external:*.node",
    "--external:syncline/server",
    "--external:syncline:zod",
    // The bundler knows modules of the runtime, but not all of these.
    ...builtinModules.filter((name) => name.includes("/")).map((name) => `--external:${name}`),
    ...added,
    // These options are for files outside of packages. The bundler ignores them for an app that is inside of one.
    `--tsconfig-raw=${JSON.stringify({ compilerOptions: { paths: { zod: [ZOD] } } })}`,
    ...functionsDir.includes("/node_modules/") ? [`--alias:zod=${ZOD}`] : [],
    `--sourcefile=${ENTRY}`,
    "--outfile=/dev/stdout",
    "--metafile=/dev/stderr",
  ];
}

/** Modules of the runtime that CommonJS files require. */
function builtinsRequired(inputs: BundleInputs): string[] {
  const names = Object.values(inputs).flatMap(({ imports }) =>
    imports.filter(({ kind, external, path }) => external && kind !== "import-statement" && isBuiltin(path))
  );
  return [...new Set(names.map(({ path }) => path))].sort();
}

/** Adds `require` in a first line and the app's own sources, and makes the source map independent of where the app is. */
function assemble(
  output: string,
  { root, folder, required }: {
    readonly root: string;
    readonly folder: string;
    readonly required: readonly string[];
  },
): Uint8Array<ArrayBuffer> {
  const { code: bundled, map } = splitMap(output);
  // The bundler names them by URL, relative to the folder of its output.
  const paths = map.sources.map((source) => resolve("/dev", decodeURIComponent(source)));
  const isNamed = (path: string) => isInside(path, [folder]) && path !== join(root, ENTRY);
  const sources = paths.map((path) =>
    isNamed(path) ? SOURCES_URL + pathToFileURL(`/${nameBelow(folder, path)}`).pathname.slice(1) : ""
  );
  let left = packageLimits.sourcesBytesMax;
  const sourcesContent = paths.map((path) => {
    if (!isNamed(path) || path.includes("/node_modules/")) return null;
    try {
      left -= Deno.statSync(path).size;
      return left < 0 ? null : Deno.readTextFileSync(path);
    } catch {
      // It was removed in the meantime, which `unchanged` notices.
      return null;
    }
  });
  // The only path that depends on where the server is installed.
  const code = bundled.replaceAll(relative(root, ZOD), "zod");
  const mapped = { ...map, sources, sourcesContent, mappings: `;${map.mappings}` };
  const text = withMap(`${firstLine(required)}\n${code}`, mapped);
  return new TextEncoder().encode(text);
}

/** `require` for CommonJS files and for `import()`: it has the modules of the runtime that the app names, and no others. */
function firstLine(required: readonly string[]): string {
  const imports = required.map((name, index) => `import $syncline${index} from ${JSON.stringify(name)};`);
  const known = required.map((name, index) => `[${JSON.stringify(name)},$syncline${index}]`);
  // Declared with `var`, because the app may declare the same names.
  return `${imports.join("")}var __filename="/${BUNDLE_NAME}",__dirname="/",require=(()=>{` +
    `const known=new Map([${known.join()}]);` +
    `const find=(name)=>{` +
    `if(known.has(name))return known.get(name);` +
    `if(/\\.node$/.test(name))throw new TypeError(name+" is a native addon, which functions cannot load");` +
    `throw Object.assign(new Error("Cannot find module "+JSON.stringify(name)+` +
    `": install the package in the app's folder, and name it with a string literal"),{code:"MODULE_NOT_FOUND"})};` +
    `return Object.assign(find,{resolve:(name)=>name,cache:{},extensions:{},main:undefined})})();`;
}

/** Returns the innermost folder that contains all of these, or is one of them. */
function commonFolder(folders: readonly string[]): string {
  let [common = "/"] = folders;
  for (const folder of folders) {
    while (!isInside(folder, [common])) common = dirname(common);
  }
  return common;
}

function changedSince(path: string, time: number): boolean {
  try {
    const { mtime, ctime } = Deno.statSync(path);
    const at = Math.max(mtime?.getTime() ?? 0, ctime?.getTime() ?? 0);
    // A time in the future comes from another clock.
    return at >= time - FILE_TIME_STEP_MS && at <= Date.now();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  }
}
