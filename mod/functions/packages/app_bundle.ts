/** Bundles an app and its packages into one file with a source map, in a child process that runs none of its code. */
import { builtinModules, isBuiltin } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { programRoot } from "../../kit/processes/program_root.ts";
import { packageLimits } from "../limits.ts";
import { SOURCES_URL } from "../wire/app_sources.ts";
import { findModules } from "../module_files.ts";
import { BundleFailure, failureOf, retryFlags } from "./bundle_errors.ts";
import { type BundleInputs, checkInputs } from "./bundle_inputs.ts";
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
const CPU_SECONDS_MAX = 120;
const MS_MAX = 120_000;
const MEMORY_KIB_MAX = 4 * 1024 * 1024;
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
    const { ok, output, report } = await runBundler({ functionsDir, entry, added });
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

/** A module with the app's modules: name, path prefix and a function that loads it, so that errors can name it. */
function entryOf(functionsDir: string): string {
  const below = `./${basename(functionsDir)}/`;
  const rows = findModules(functionsDir).map(({ name, modulePath }) =>
    `[${JSON.stringify(name)},${JSON.stringify(modulePath)},()=>import(${JSON.stringify(below + name)})]`
  );
  return `export default [${rows.join(",\n")}];\n`;
}

/** Limits the bundler (memory: not on macOS) and core dumps, which contain code. `exec`: a timeout ends the bundler. */
const SHELL_SCRIPT = `ulimit -c 0; ulimit -t "$0"; ulimit -d ${MEMORY_KIB_MAX} 2>/dev/null; exec "$@"`;

async function runBundler(
  { functionsDir, entry, added }: {
    readonly functionsDir: string;
    readonly entry: string;
    readonly added: ReadonlySet<string>;
  },
): Promise<{ readonly ok: boolean; readonly output: string; readonly report: string }> {
  const child = new Deno.Command("sh", {
    args: [
      "-c",
      SHELL_SCRIPT,
      String(CPU_SECONDS_MAX),
      bundlerPath(),
      ...bundlerFlags(functionsDir, added),
    ],
    cwd: dirname(functionsDir),
    clearEnv: true,
    // Packages that have no zod of their own find the one of isolates here.
    env: { NODE_PATH: MODULES },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const end = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const late = setTimeout(end, MS_MAX);
  const writer = child.stdin.getWriter();
  // A bundler that has ended reports why.
  const sent = writer.write(new TextEncoder().encode(entry)).then(() => writer.close()).catch(() => {});
  try {
    const [output, report, { success }] = await Promise.all([
      readBounded(child.stdout),
      readBounded(child.stderr),
      child.status,
      sent,
    ]);
    return { ok: success, output, report };
  } finally {
    clearTimeout(late);
    end();
  }
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

/** The bundler's program for this platform, from the same cache as all packages. */
function bundlerPath(): string {
  const [, registry = "", version = ""] = /^(.*)\/esbuild\/([^/]+)\/lib\//.exec(
    fileURLToPath(import.meta.resolve("esbuild")),
  ) ?? [];
  const machine = `${Deno.build.os}-${Deno.build.arch === "aarch64" ? "arm64" : "x64"}`;
  return `${registry}/@esbuild/${machine}/${version}/bin/esbuild`;
}

async function readBounded(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > packageLimits.bundleBytesMax) {
      throw new BundleFailure(
        `The app and its packages have more than ${packageLimits.bundleBytesMax} bytes of code`,
      );
    }
  }
  return text + decoder.decode();
}

/** Modules of the runtime that CommonJS files require. */
function builtinsRequired(inputs: BundleInputs): string[] {
  const names = Object.values(inputs).flatMap(({ imports }) =>
    imports.filter(({ kind, external, path }) => external && kind !== "import-statement" && isBuiltin(path))
  );
  return [...new Set(names.map(({ path }) => path))].sort();
}

const MAP_MARK = "//# sourceMappingURL=data:application/json;base64,";

/** Adds `require` in a first line, and makes the source map independent of where the app is. */
function assemble(
  output: string,
  { root, folder, required }: {
    readonly root: string;
    readonly folder: string;
    readonly required: readonly string[];
  },
): Uint8Array<ArrayBuffer> {
  const at = output.lastIndexOf(MAP_MARK);
  const map = JSON.parse(decoded(output.slice(at + MAP_MARK.length))) as {
    readonly sources: readonly string[];
    readonly mappings: string;
  };
  const sources = map.sources.map((source) => {
    // The bundler names them by URL, relative to the folder of its output.
    const path = resolve("/dev", decodeURIComponent(source));
    return isInside(path, [folder]) && path !== join(root, ENTRY)
      ? SOURCES_URL + pathToFileURL(`/${nameBelow(folder, path)}`).pathname.slice(1)
      : "";
  });
  const mapped = JSON.stringify({ ...map, sources, mappings: `;${map.mappings}` });
  // The only path that depends on where the server is installed.
  const code = output.slice(0, at).replaceAll(relative(root, ZOD), "zod");
  const text = `${firstLine(required)}\n${code}${MAP_MARK}`;
  return new TextEncoder().encode(text + new TextEncoder().encode(mapped).toBase64() + "\n");
}

function decoded(base64: string): string {
  return new TextDecoder().decode(Uint8Array.fromBase64(base64.trim()));
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
