/**
 * Starts the server of a clone from bundles, which take less memory and processor time than hundreds of modules. Builds them
 * if the sources have changed since the last start. Where that is not possible, the server starts from its sources.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
/** Contains a folder for each state of the sources. */
const FOLDER = "mod/.bundles/";
/** Newest bundles that remain: a server may still run from those before the newest. */
const KEPT = 2;
/** Time to build bundles. */
const BUILD_MS_MAX = 120_000;

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

function isFolder(url: URL): boolean {
  try {
    return Deno.statSync(url).isDirectory;
  } catch {
    return false;
  }
}

/** Builds the bundles of this state. Returns whether they exist. */
async function build(state: string): Promise<boolean> {
  const all = new URL(FOLDER, root);
  const built = new URL(state, all);
  // Another start may build the same ones. They get their name when they are complete.
  const unfinished = `${state}.${Deno.pid}`;
  let failure: Record<string, unknown> = {};
  try {
    Deno.mkdirSync(all, { recursive: true });
    const { success, code, stderr } = await new Deno.Command("sh", {
      // Only a shell may be started.
      args: ["-c", 'exec "$0" "$@"', Deno.execPath(), ...builderArguments(`${FOLDER}${unfinished}`)],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
      signal: AbortSignal.timeout(BUILD_MS_MAX),
    }).output();
    if (success) Deno.renameSync(new URL(unfinished, all), built);
    else failure = { exitCode: code, stack: new TextDecoder().decode(stderr).trimEnd() || "no output" };
  } catch (error) {
    // The folder is read-only, or another start was faster.
    failure = { error };
  }
  removeIfPossible(new URL(unfinished, all));
  if (isFolder(built)) {
    removeOld(all);
    return true;
  }
  const { stderrLog } = await import("../kit/log.ts");
  stderrLog({ debug: false })("warn", "Cannot build bundles; starting from the sources", failure);
  return false;
}

function builderArguments(folder: string): string[] {
  const path = (name: string) => fileURLToPath(new URL(name, root));
  const all = path(FOLDER).replaceAll(",", ",,");
  return [
    ...["run", "--quiet", "--no-prompt", "--config", path("deno.serve.json")],
    ...["--allow-read", `--allow-write=${all}`, "--allow-env", "--allow-run", "--allow-sys"],
    ...[path("mod/build/bundles.ts"), folder],
  ];
}

function removeOld(all: URL): void {
  const folders = [...Deno.readDirSync(all)].map(({ name }) => {
    const url = new URL(name, all);
    return { url, time: modifiedAt(url) };
  });
  for (const { url } of folders.sort((a, b) => b.time - a.time).slice(KEPT)) removeIfPossible(url);
}

/** Returns 0 for a folder that another start has removed. */
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

const state = stateOfSources();
const isBuilt = isFolder(new URL(`${FOLDER}${state}`, root)) || await build(state);
await import(new URL(isBuilt ? `${FOLDER}${state}/main.js` : "main.ts", root).href);
