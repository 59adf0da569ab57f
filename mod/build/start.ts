/**
 * Starts the server of a clone from bundles, which take less memory and processor time than hundreds of modules. Builds them
 * if the sources have changed since the last start. Where that is not possible, the server starts from its sources.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
/** Contains a folder for each state of the sources. */
const FOLDER = "mod/.bundles/";
/** Older bundles that remain, because a server may still run from them. */
const KEPT = 2;

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

function isThere(folder: URL): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch {
    return false;
  }
}

/** Builds the bundles of this state. Returns whether they are there. */
async function build(state: string): Promise<boolean> {
  const all = new URL(FOLDER, root);
  const made = new URL(`${state}/`, all);
  // Another start may build the same ones. They are there when they are complete.
  const unfinished = `${state}.${Deno.pid}`;
  try {
    Deno.mkdirSync(all, { recursive: true });
    const { success } = await new Deno.Command("sh", {
      // Only a shell may be started.
      args: ["-c", 'exec "$0" "$@"', Deno.execPath(), ...builderArguments(`${FOLDER}${unfinished}`)],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    if (success) Deno.renameSync(new URL(unfinished, all), made);
  } catch {
    // The folder is read-only, or the other start was faster.
  }
  if (isThere(made)) removeOld(all);
  return isThere(made);
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
  const folders = [...Deno.readDirSync(all)].map(({ name }) => ({
    url: new URL(name, all),
    time: Deno.statSync(new URL(name, all)).mtime?.getTime() ?? 0,
  }));
  for (const { url } of folders.sort((a, b) => b.time - a.time).slice(KEPT)) {
    Deno.removeSync(url, { recursive: true });
  }
}

const state = stateOfSources();
const isBuilt = isThere(new URL(`${FOLDER}${state}`, root)) || await build(state);
await import(new URL(isBuilt ? `${FOLDER}${state}/main.js` : "main.ts", root).href);
