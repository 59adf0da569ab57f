/** The server's runtime as npm has installed it, made ready at the first start without a network. */
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PlainError } from "./plain_error.ts";
import { unpack } from "./server_pack.ts";
import { bringToDisk, type FileEntry, makeWhole } from "./whole_folder.ts";

/** Id of the server in this package, put in when this is bundled. */
declare const SYNCLINE_SERVER: string;

/** The folder in the cache that the packages lie in; it is nowhere, and nothing is fetched from it. */
const REGISTRY = "packages.invalid";
/** What was unpacked is brought to the disk when the server, which needs the disk at its start, has run for so long. */
const TO_DISK_AFTER_MS = 5_000;

/** Folder of the package: this is bundled into a file of a folder in it. */
export const home: string = fileURLToPath(new URL("..", import.meta.url));

export interface Runtime {
  /** The program. */
  readonly deno: string;
  /** What it finds its packages in. */
  readonly cache: string;
  /** The server's sources. */
  readonly app: string;
  /** Everything that was made of the package. */
  readonly folders: readonly string[];
}

const own = createRequire(import.meta.url);

/** Finds the runtime, unpacks the server and puts the native packages where they are looked for. Throws a `PlainError` when npm has left it out. */
export function openRuntime(): Runtime {
  const { platform, arch } = process;
  const machine = `${platform}-${arch}`;
  const runtime = `@deno/${machine}${platform === "linux" ? "-glibc" : ""}`;
  const deno = join(folderOf(runtime, { file: "package.json" }), platform === "win32" ? "deno.exe" : "deno");
  const image = folderOf(`@img/sharp-${machine}`, { file: "package" });
  const native = [image];
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
      `The package ${name} is missing: install again without --omit=optional. (There are packages for Linux with glibc, ` +
        "macOS and Windows, on x64 and arm64.)",
      { cause: error },
    );
  }
}

/** Where the server is unpacked: in the package, or in the user's folder where the package may not be written to. */
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
      `The server cannot be unpacked into ${folder}: ${error instanceof Error ? error.message : error}`,
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

/** Puts a native package into the cache. Gives its folder there. */
function place(folder: string, cache: string): string {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly name: string;
    readonly version: string;
  };
  const placed = join(cache, "npm", REGISTRY, name, version);
  makeWhole(placed, () => filesIn(folder));
  return placed;
}

/** Files of a folder, and those that links in it lead to. */
function* filesIn(folder: string, below = ""): Generator<FileEntry, void, void> {
  for (const name of readdirSync(join(folder, below))) {
    const path = below === "" ? name : `${below}/${name}`;
    if (statSync(join(folder, path)).isDirectory()) yield* filesIn(folder, path);
    else yield [path, readFileSync(join(folder, path))];
  }
}

export interface Start {
  /** The named set of permissions. */
  readonly set: string;
  /** Module below `app/`. */
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
        ...process.env,
        DENO_DIR: cache,
        // For `syncline service`.
        SYNCLINE_PROGRAM: [process.execPath, join(home, "bin/syncline.mjs")].join("\n"),
        DENO_NO_UPDATE_CHECK: "1",
        DENO_TOKIO_EVENT_INTERVAL: "1",
        MALLOC_ARENA_MAX: "2",
        MALLOC_MMAP_THRESHOLD_: "4194304",
        MALLOC_TRIM_THRESHOLD_: "16777216",
        NPM_CONFIG_REGISTRY: `https://${REGISTRY}/`,
        // What is on this machine is not asked of a proxy, such as the app's own frontend.
        NO_PROXY: [process.env["NO_PROXY"] ?? process.env["no_proxy"], "127.0.0.1"].filter(Boolean).join(","),
      },
    },
  );
  const over = new AbortController();
  child.once("exit", () => over.abort());
  void keepOnDisk(folders, over.signal);
  return child;
}

/** Never rejects: what could not be brought to the disk is looked at by the next start. */
async function keepOnDisk(folders: readonly string[], signal: AbortSignal): Promise<void> {
  try {
    await wait(TO_DISK_AFTER_MS, undefined, { signal, ref: false });
    for (const folder of folders) await bringToDisk(folder, signal);
  } catch {
    // It has ended, or the folder may only be read.
  }
}

/** Passes signals on, and resolves to the exit code when the program has ended. */
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
