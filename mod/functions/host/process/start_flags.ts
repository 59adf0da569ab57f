/** File locations and permission flags of an isolate at start. It revokes permissions later. */
import { programRoot } from "../../../kit/processes/program_root.ts";
import type { IsolateRole } from "../../wire/messages.ts";
import { type IsolateMemory, usualMemory } from "./isolate_memory.ts";

/** Start parameters of an isolate. Paths are absolute and real. */
export interface IsolatePaths {
  readonly role: IsolateRole;
  readonly entry: URL;
  /** Folder of the database. Runners have no access. */
  readonly dataDir: string;
  readonly databasePath: string;
  /** The file with the app's code. */
  readonly bundle: string;
  /** Unix socket on which main waits for the isolate. */
  readonly socketPath: string;
  readonly progressPath: string;
  /** Hosts that actions may connect to, as in `--allow-net`. `null` for any. */
  readonly actionNet: readonly string[] | null;
  readonly importMapPath: string;
  /** Defaults to {@linkcode usualMemory}. */
  readonly memory?: IsolateMemory;
}

const address = (name: string) => decodeURIComponent(new URL(name, programRoot).pathname);

/** Our own sources. App code imports some of them as `syncline/server`. */
export const sources = address("mod/");

export function importMapPath(role: IsolateRole): string {
  return address(
    role === "runner"
      ? "mod/functions/isolate/process/import_map_runner.json"
      : "mod/functions/isolate/process/import_map.json",
  );
}

/** Returns the runtime's command-line arguments. */
export function startArguments(paths: IsolatePaths): string[] {
  const { role, dataDir, databasePath, bundle, socketPath, progressPath, actionNet } = paths;
  // Connecting to a unix socket needs read and write access to its path, and network access.
  const talk = [socketPath, progressPath];
  const read = role === "runner" ? talk : [...talk, dataDir];
  // A reader needs no write permission: SQLite opens its shared memory file outside of Deno's permissions.
  const write = role === "writer" ? [...talk, ...databaseFiles(databasePath)] : talk;
  const net = role === "runner" && actionNet === null
    ? "--allow-net"
    : `--allow-net=${list([`unix:${socketPath}`, ...(role === "runner" ? actionNet ?? [] : [])])}`;
  return [
    "run",
    "--quiet",
    "--no-prompt",
    "--no-config",
    "--no-remote",
    "--cached-only",
    "--no-check",
    // Restricts imports from the cache to this lock file.
    "--frozen",
    `--lock=${address("mod/functions/isolate/process/deno.lock")}`,
    `--import-map=${paths.importMapPath}`,
    `--allow-read=${list([...read, bundle, sources])}`,
    `--allow-write=${list(write)}`,
    net,
    `--v8-flags=${heapFlags(role, paths.memory)}`,
    decodeURIComponent(paths.entry.pathname),
    socketPath,
  ];
}

/** V8 flags, separated by commas. */
export function heapFlags(role: IsolateRole, memory: IsolateMemory = usualMemory): string {
  const { heapMiB, writerSemiSpaceMiB, semiSpaceMiB } = memory;
  const semiSpace = role === "writer" ? writerSemiSpaceMiB : semiSpaceMiB;
  const old = `--max-old-space-size=${heapMiB}`;
  return semiSpace === undefined ? old : `${old},--max-semi-space-size=${semiSpace}`;
}

function databaseFiles(path: string): string[] {
  return [path, `${path}-wal`, `${path}-shm`, `${path}-journal`];
}

/** Values of one flag. A comma in a value is doubled. */
function list(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(",", ",,")).join(",");
}
