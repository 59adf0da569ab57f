/** How an isolate is started: where its files are, and the flags that give it what it needs until it gives it up. */
import { programRoot } from "../../../kit/processes/program_root.ts";
import type { IsolateRole } from "../../wire/messages.ts";
import { type IsolateMemory, usualMemory } from "./isolate_memory.ts";

/** What an isolate is started for. Paths are absolute and real. */
export interface IsolatePaths {
  readonly role: IsolateRole;
  /** The module to run. */
  readonly entry: URL;
  /** Folder of the database; runners are not let into it. */
  readonly dataDir: string;
  readonly databasePath: string;
  /** Folder of the version of the app's code: its functions and their packages. */
  readonly codeFolder: string;
  /** Unix socket on which main waits for the isolate. */
  readonly socketPath: string;
  readonly progressPath: string;
  /** Hosts that actions may reach, as in `--allow-net`; `null` for any. */
  readonly actionNet: readonly string[] | null;
  readonly importMapPath: string;
  /** As {@linkcode usualMemory} says when absent. */
  readonly memory?: IsolateMemory;
}

const address = (name: string) => decodeURIComponent(new URL(name, programRoot).pathname);

/** Our own sources, which app code imports parts of: `syncline/server`. */
export const sources = address("mod/");

/** What the import maps of isolates of a role are made of. */
export function importMapPath(role: IsolateRole): string {
  return address(
    role === "runner"
      ? "mod/functions/isolate/process/import_map_runner.json"
      : "mod/functions/isolate/process/import_map.json",
  );
}

/** Arguments of the runtime's executable that start an isolate. */
export function startArguments(paths: IsolatePaths): string[] {
  const { role, dataDir, databasePath, codeFolder, socketPath, progressPath, actionNet } = paths;
  // Connecting to a unix socket needs reading and writing its path beside the network.
  const talk = [socketPath, progressPath];
  const read = role === "runner" ? talk : [...talk, dataDir];
  // SQLite opens the database of a reader without permission to write; its shared memory file is no business of Deno's.
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
    // Only what this lock file names can be imported from the cache, at the start or later.
    "--frozen",
    `--lock=${address("mod/functions/isolate/process/deno.lock")}`,
    `--import-map=${paths.importMapPath}`,
    `--allow-read=${list([...read, codeFolder, sources])}`,
    `--allow-write=${list(write)}`,
    net,
    `--v8-flags=${heapFlags(role, paths.memory)}`,
    decodeURIComponent(paths.entry.pathname),
    socketPath,
  ];
}

/** Flags of V8, separated by commas. */
export function heapFlags(role: IsolateRole, memory: IsolateMemory = usualMemory): string {
  const { heapMiB, writerSemiSpaceMiB, semiSpaceMiB } = memory;
  const semiSpace = role === "writer" ? writerSemiSpaceMiB : semiSpaceMiB;
  const old = `--max-old-space-size=${heapMiB}`;
  return semiSpace === undefined ? old : `${old},--max-semi-space-size=${semiSpace}`;
}

function databaseFiles(path: string): string[] {
  return [path, `${path}-wal`, `${path}-shm`, `${path}-journal`];
}

/** Several values of one flag; a comma inside a value is doubled. */
function list(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(",", ",,")).join(",");
}
