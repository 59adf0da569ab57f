/**
 * The command that starts an isolate: its flags, its environment, its limits. Under `deno run` the executable is `deno`
 * and the flags grant what the isolate needs until it has loaded the app; compiled, the executable is the program itself with
 * a hidden subcommand, whose permissions were fixed when it was built and which gives them up in the same place.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isolateLimits } from "../../limits.ts";
import type { IsolateRole } from "../wire.ts";

/** Memory the runtime reserves for itself before any code runs: V8 cannot start with less. */
const RUNTIME_MIB = 640;

/**
 * Signals meant for the server reach its whole process group (Ctrl-C, a service manager's stop): isolates do not hear
 * them, they end when main closes their socket. No core dumps: they would hold the app's data. `ulimit -d` has no effect
 * on macOS, where only the heap limit holds.
 */
const SHELL_SCRIPT = `trap '' INT TERM HUP; ulimit -c 0; ulimit -d "$0"; exec "$@"`;

/** Variables the runtime needs to find its caches. None of them is visible to app code. */
const PASSED_ON = ["HOME", "DENO_DIR", "XDG_CACHE_HOME", "PATH"] as const;

/** What an isolate is started for. Paths are absolute and real. */
export interface IsolatePaths {
  readonly role: IsolateRole;
  readonly dataDir: string;
  readonly databasePath: string;
  readonly functionsDir: string;
  readonly socketPath: string;
  readonly progressPath: string;
  /** Hosts that actions may reach; `null` for any. */
  readonly actionNet: readonly string[] | null;
}

export interface IsolateCommand {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/** The entry of an isolate without functions of the service. */
export const plainEntry: URL = new URL("../isolate/main.ts", import.meta.url);

/** The command for an isolate of this program, as it runs now. `entry`: the module to run; compiled, it is fixed. */
export function isolateCommand(paths: IsolatePaths, entry: URL = plainEntry): IsolateCommand {
  const limit = String((isolateLimits.dataMiB + RUNTIME_MIB) * 1024);
  const own = Deno.build.standalone
    ? ["isolate", paths.socketPath]
    : ["run", ...runFlags(paths), fileURLToPath(entry), paths.socketPath];
  return {
    executable: "sh",
    args: ["-c", SHELL_SCRIPT, limit, Deno.execPath(), ...own],
    env: { ...passedOn(), NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", DENO_V8_FLAGS: heapFlag() },
  };
}

function heapFlag(): string {
  return `--max-old-space-size=${isolateLimits.heapMiB}`;
}

function runFlags(paths: IsolatePaths): string[] {
  const { role, databasePath, functionsDir, socketPath, progressPath, actionNet } = paths;
  const isolateDir = dirname(fileURLToPath(plainEntry));
  const project = join(isolateDir, "..", "..", "..");
  const talk = [socketPath, progressPath];
  const database = role === "runner" ? [] : databaseFiles(databasePath);
  const read = role === "runner" ? [functionsDir, ...talk] : [functionsDir, paths.dataDir, ...talk];
  // SQLite opens the database of a reader without permission to write; its shared memory file is no business of Deno's.
  const write = role === "writer" ? [...database, ...talk] : talk;
  const net = role === "runner" && actionNet === null
    ? "--allow-net"
    : `--allow-net=${list([`unix:${socketPath}`, ...(role === "runner" ? actionNet ?? [] : [])])}`;
  return [
    "--no-prompt",
    "--quiet",
    "--no-check",
    "--cached-only",
    "--no-remote",
    `--config=${join(project, "deno.json")}`,
    `--import-map=${join(isolateDir, role === "runner" ? "import_map_runner.json" : "import_map.json")}`,
    `--v8-flags=${heapFlag()}`,
    `--allow-read=${list(read)}`,
    `--allow-write=${list(write)}`,
    net,
  ];
}

function databaseFiles(path: string): string[] {
  return [path, `${path}-wal`, `${path}-shm`, `${path}-journal`];
}

/** Values of one flag; a comma inside a value is written twice. */
function list(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(",", ",,")).join(",");
}

function passedOn(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}
