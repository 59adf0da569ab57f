/** Prepares the Deno runtime and the server that npm has installed, without network access. */
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PlainError } from "./plain_error.ts";
import { unpack } from "./server_pack.ts";
import { ensureComplete, type FileEntry, syncToDisk } from "./whole_folder.ts";

/** Id of the server in this package, inserted by the build. */
declare const SYNCLINE_SERVER: string;

/** Name of the registry folder in the cache. The host does not exist, so nothing is fetched. */
const REGISTRY = "packages.invalid";
/** Delay before the unpacked files are synced to disk; the server needs the disk while it starts. */
const TO_DISK_AFTER_MS = 5_000;

/** Folder of the package. This module is bundled into a file of its subfolder. */
export const home: string = fileURLToPath(new URL("..", import.meta.url));

export interface Runtime {
  /** Path of the Deno executable. */
  readonly deno: string;
  /** Deno's cache folder. */
  readonly cache: string;
  /** Folder of the server's sources. */
  readonly app: string;
  /** Folder with all unpacked files. */
  readonly folders: readonly string[];
}

const own = createRequire(import.meta.url);

/** Finds the runtime, unpacks the server and installs the native packages. Throws a `PlainError` if a package is missing. */
export function openRuntime(): Runtime {
  const { platform, arch } = process;
  const machine = `${platform}-${arch}`;
  const runtime = `@deno/${machine}${platform === "linux" ? "-glibc" : ""}`;
  const deno = join(folderOf(runtime, { file: "package.json" }), platform === "win32" ? "deno.exe" : "deno");
  const image = folderOf(`@img/sharp-${machine}`, { file: "package" });
  const native = [image, folderOf(`@esbuild/${machine}`, { file: "package.json" })];
  if (platform !== "win32") {
    const from = createRequire(join(image, "package.json"));
    native.push(folderOf(`@img/sharp-libvips-${machine}`, { file: "package", from }));
  }
  const server = serverFolder();
  const cache = join(server, "cache");
  const folders = [server, ...native.map((folder) => place(folder, cache))];
  return { deno, cache, app: join(server, "app"), folders };
}

function folderOf(
  name: string,
  { file, from = own }: { readonly file: string; readonly from?: NodeJS.Require },
): string {
  try {
    return dirname(from.resolve(`${name}/${file}`));
  } catch (error) {
    throw new PlainError(
      `The package ${name} is missing: reinstall without --omit=optional. Supported platforms are Linux with glibc, ` +
        "macOS and Windows, on x64 and arm64.",
      { cause: error },
    );
  }
}

/** Returns the folder to unpack into: the package, or the user's cache folder if the package is read-only. */
function serverFolder(): string {
  const folder = isWritable(home) ? join(home, `server-${SYNCLINE_SERVER}`) : join(
    process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"),
    "syncline",
    `npm-${SYNCLINE_SERVER}`,
  );
  try {
    unpack(join(home, "server.pack"), { folder, id: SYNCLINE_SERVER });
  } catch (error) {
    throw new PlainError(
      `Cannot unpack the server into ${folder}: ${error instanceof Error ? error.message : error}`,
      { cause: error },
    );
  }
  return folder;
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Adds a native package to the cache, without using the disk twice. Returns its folder. */
function place(folder: string, cache: string): string {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly name: string;
    readonly version: string;
  };
  const placed = join(cache, "npm", REGISTRY, name, version);
  ensureComplete(placed, () => filesIn(folder));
  return placed;
}

/** Lists the files of a folder, following symbolic links. */
function* filesIn(folder: string, below = ""): Generator<FileEntry, void, void> {
  for (const name of readdirSync(join(folder, below))) {
    const path = below === "" ? name : `${below}/${name}`;
    const file = realpathSync(join(folder, path));
    if (statSync(file).isDirectory()) yield* filesIn(folder, path);
    else yield [path, readFileSync(file), file];
  }
}

export interface Start {
  /** The name of the permission set. */
  readonly set: string;
  /** Entry module, relative to `app/`. */
  readonly entry?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly stdio: StdioOptions;
}

/** Starts a program of the server. */
export function startDeno(
  { deno, cache, app, folders }: Runtime,
  { set, entry = "cli.ts", args, cwd, stdio }: Start,
): ChildProcess {
  const flags = ["--quiet", "--no-prompt", "--no-remote", "--cached-only", "--frozen"];
  const child = spawn(
    deno,
    ["run", ...flags, "--config", join(app, "deno.json"), `-P=${set}`, join(app, entry), ...args],
    {
      cwd,
      stdio,
      env: {
        DENO_TOKIO_EVENT_INTERVAL: "1",
        MALLOC_ARENA_MAX: "2",
        MALLOC_MMAP_THRESHOLD_: "4194304",
        MALLOC_TRIM_THRESHOLD_: "16777216",
        DENO_V8_FLAGS: "--max-semi-space-size=16",
        ...process.env,
        DENO_DIR: cache,
        // Read by `syncline service`.
        SYNCLINE_PROGRAM: [process.execPath, join(home, "bin/syncline.mjs")].join("\n"),
        DENO_NO_UPDATE_CHECK: "1",
        NPM_CONFIG_REGISTRY: `https://${REGISTRY}/`,
        // Do not send requests to this machine, such as those to the app's own frontend, through a proxy.
        NO_PROXY: [process.env["NO_PROXY"] ?? process.env["no_proxy"], "127.0.0.1"].filter(Boolean).join(","),
      },
    },
  );
  const over = new AbortController();
  child.once("exit", () => over.abort());
  void keepOnDisk(folders, over.signal);
  return child;
}

/** Syncs the unpacked files to disk. Never rejects: the next start verifies files that were not synced. */
async function keepOnDisk(folders: readonly string[], signal: AbortSignal): Promise<void> {
  try {
    await wait(TO_DISK_AFTER_MS, undefined, { signal, ref: false });
    for (const folder of folders) await syncToDisk(folder, signal);
  } catch {
    // The process has exited, or the folder is read-only.
  }
}

/** Forwards signals, and resolves to the exit code. */
export function ended(child: ChildProcess): Promise<number> {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const pass = (signal: NodeJS.Signals) => void child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      for (const each of signals) process.off(each, pass);
      resolve(code ?? (signal === "SIGINT" ? 130 : signal === "SIGTERM" ? 143 : 1));
    });
  });
}
