/**
 * Starts the server of a clone from bundles, which take less memory and processor time than hundreds of modules. Builds them
 * if the sources have changed since the last start. Where that is not possible, the server starts from its sources.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
/** Contains a folder for each state of the sources. */
const FOLDER = "mod/.bundles/";
/** Time to build bundles. */
const BUILD_MS_MAX = 120_000;
/** Time to list the imports of the bundles, which takes 0.2 s of processor time. */
const ANALYSIS_MS_MAX = 10_000;

const state = stateOfSources();
const all = new URL(FOLDER, root);
/** Bundles of this state. */
const built = new URL(state, all);

/** Hash of the names, sizes and times of all files that bundles depend on. */
function stateOfSources(): string {
  const hash = createHash("sha256").update(Deno.version.deno);
  const add = (path: string) => {
    const { size, mtime } = Deno.statSync(new URL(path, root));
    hash.update(`${path} ${size} ${mtime?.getTime()}\n`);
  };
  const addFolder = (folder: string) => {
    const entries = [...Deno.readDirSync(new URL(folder, root))].sort((a, b) => a.name < b.name ? -1 : 1);
    for (const { name, isDirectory } of entries) {
      if (isDirectory && !name.startsWith(".")) addFolder(`${folder}${name}/`);
      else if (name.endsWith(".ts")) add(`${folder}${name}`);
    }
  };
  for (const file of ["main.ts", "cli.ts", "deno.json", "deno.serve.lock"]) add(file);
  addFolder("mod/");
  return hash.digest("hex").slice(0, 16);
}

function mainOf(folder: URL): URL {
  return new URL(`${folder.href}/main.js`);
}

/** Protects the bundles of this state from removal until this process ends. Returns whether they exist. */
async function use(): Promise<boolean> {
  try {
    // The kernel releases the lock.
    const main = Deno.openSync(mainOf(built));
    // Without file locks nothing is removed, either.
    const locked = await main.tryLock(false).catch(() => true);
    if (locked && modifiedAt(mainOf(built)) > 0) return true;
    // Another start removes them.
    main.close();
  } catch {
    // They do not exist.
  }
  return false;
}

/** Builds the bundles of this state and uses them. Returns whether they exist. */
async function build(): Promise<boolean> {
  // Another start may build the same ones. They get their name when they are complete.
  const unfinished = `${state}.${Deno.pid}`;
  let failure: Failure | undefined;
  try {
    Deno.mkdirSync(all, { recursive: true });
    failure = await run(builderArguments(`${FOLDER}${unfinished}`), BUILD_MS_MAX);
    if (!failure) {
      // A removal that was interrupted may have left other files.
      if (modifiedAt(mainOf(built)) === 0) removeIfPossible(built);
      Deno.renameSync(new URL(unfinished, all), built);
    }
  } catch (error) {
    // The folder is read-only, or another start was faster.
    failure = { error };
  }
  removeIfPossible(new URL(unfinished, all));
  if (await use()) {
    await removeOld();
    // Under the lock, because it takes long.
    const unlisted = await run(analysisArguments(), ANALYSIS_MS_MAX).catch((error) => ({ error }));
    if (unlisted) {
      await warn(
        "Cannot list the imports of the bundles; the server takes more memory until its next start",
        unlisted,
      );
    }
    return true;
  }
  await warn("Cannot build bundles; starting from the sources", failure);
  return false;
}

/** Fields of a log line. */
type Failure = Record<string, unknown>;

async function warn(message: string, failure: Failure | undefined): Promise<void> {
  const { stderrLog } = await import("../kit/log.ts");
  stderrLog({ debug: false })("warn", message, failure);
}

/** Runs the Deno runtime in another process. Returns the failure, or `undefined`. */
async function run(args: readonly string[], timeoutMs: number): Promise<Failure | undefined> {
  const { success, code, stderr } = await new Deno.Command("sh", {
    // Only a shell may be started.
    args: ["-c", 'exec "$0" "$@"', Deno.execPath(), ...args],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal: AbortSignal.timeout(timeoutMs),
  }).output();
  if (success) return undefined;
  return { exitCode: code, stack: new TextDecoder().decode(stderr).trimEnd() || "no output" };
}

function path(name: string): string {
  return fileURLToPath(new URL(name, root));
}

/**
 * Lists the imports of the bundles, so that the runtime finds them in its cache. A process that parses a module to find its
 * imports keeps the syntax tree: 12 MB in main and 10 MB in each isolate.
 */
function analysisArguments(): string[] {
  const zod = new URL("mod/functions/isolate/zod/zod.js", root).href;
  const bundles = [...Deno.readDirSync(built)].map(({ name }) => `${built.href}/${name}`);
  // The import map of isolates has the instances of zod.
  const imports = [...bundles, `${zod}?service`, `${zod}?app`].map((url) => `import ${JSON.stringify(url)};`);
  return [
    ...["info", "--json", "--frozen", "--config", path("deno.serve.json")],
    `data:text/javascript,${encodeURIComponent(imports.join(""))}`,
  ];
}

function builderArguments(folder: string): string[] {
  const all = path(FOLDER).replaceAll(",", ",,");
  return [
    ...["run", "--quiet", "--no-prompt", "--config", path("deno.serve.json")],
    ...["--allow-read", `--allow-write=${all}`, "--allow-env", "--allow-run", "--allow-sys"],
    ...[path("mod/build/bundles.ts"), folder],
  ];
}

/** Removes bundles of other states that no process uses. */
async function removeOld(): Promise<void> {
  for (const { name } of [...Deno.readDirSync(all)]) {
    const folder = new URL(name, all);
    const isBeingBuilt = name.includes(".") && modifiedAt(folder) > Date.now() - BUILD_MS_MAX;
    if (name !== state && !isBeingBuilt) await removeUnused(folder);
  }
}

async function removeUnused(folder: URL): Promise<void> {
  try {
    // Locked until the folder is removed, so that no start uses it in between.
    using main = Deno.openSync(mainOf(folder));
    if (await main.tryLock(true)) removeIfPossible(folder);
  } catch (error) {
    // Otherwise another process may use it.
    if (error instanceof Deno.errors.NotFound) removeIfPossible(folder);
  }
}

/** Returns 0 for a file or folder that another start has removed. */
function modifiedAt(url: URL): number {
  try {
    return Deno.statSync(url).mtime?.getTime() ?? 0;
  } catch {
    return 0;
  }
}

function removeIfPossible(url: URL): void {
  try {
    Deno.removeSync(url, { recursive: true });
  } catch {
    // Another start has removed it, or this process may not. A start must not fail for it.
  }
}

const isBuilt = await use() || await build();
await import(isBuilt ? mainOf(built).href : new URL("main.ts", root).href);
