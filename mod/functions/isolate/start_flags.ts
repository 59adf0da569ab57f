/** How an isolate is started: where its files are, and the flags that give it what it needs until it gives it up. */
import { isolateLimits } from "../../limits.ts";
import type { IsolateRole } from "../wire.ts";

/** What the flags depend on; paths are absolute. */
export interface StartOptions {
  readonly role: IsolateRole;
  /** Unix socket on which main waits for the isolate. */
  readonly socketPath: string;
  /** Folder of `data.db`. Runners are not let into it. */
  readonly dataDir: string;
  /** Folder with the isolate's progress file. */
  readonly progressDir: string;
  readonly functionsDir: string;
  /** Hosts that actions may reach, as in `--allow-net`; all when left out. */
  readonly actionNet?: readonly string[];
}

const address = (name: string) => new URL(name, import.meta.url).pathname;

/** Our own sources, which app code imports parts of: `syncline/server`. */
const sources = address("../../");

/** Arguments of the runtime's executable that start an isolate. */
export function startArguments(options: StartOptions): string[] {
  const { role, socketPath, dataDir, progressDir, functionsDir, actionNet } = options;
  // Connecting to a unix socket needs reading and writing its path beside the network.
  const ownData = role === "runner" ? [] : [dataDir];
  const net = role !== "runner"
    ? `--allow-net=unix:${socketPath}`
    : actionNet === undefined
    ? "--allow-net"
    : `--allow-net=${list([`unix:${socketPath}`, ...actionNet])}`;
  return [
    "run",
    "--quiet",
    "--no-prompt",
    "--no-config",
    "--no-remote",
    "--cached-only",
    "--no-check",
    // Only zod is in this lock file: no other package of the cache can be imported, at the start or later.
    "--frozen",
    `--lock=${address("deno.lock")}`,
    `--import-map=${address(role === "runner" ? "import_map_runner.json" : "import_map.json")}`,
    `--allow-read=${list([...ownData, progressDir, socketPath, functionsDir, sources])}`,
    `--allow-write=${list([...ownData, progressDir, socketPath])}`,
    net,
    `--v8-flags=--max-old-space-size=${isolateLimits.heapMiB}`,
    address("main.ts"),
    socketPath,
  ];
}

/** Several values of one flag; a comma inside a value is doubled. */
function list(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(",", ",,")).join(",");
}
