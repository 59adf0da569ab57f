/**
 * The command for a child process with limits on memory, core dumps and signals that ends with the main process. It
 * runs the executable of the main process.
 */
import { runtimeEnvironment } from "./runtime_environment.ts";

/** V8 reserves this memory before any code runs. */
const RUNTIME_MIB = 640;

/**
 * Sets a file mode for the owner only and disables core dumps, since both hold the app's data. Signals for the server
 * reach its whole process group (Ctrl-C, a stop by the service manager), so the shell ignores them until the child
 * does. `ulimit -d` has no effect on macOS: see `functions/host/process/memory_watch.ts`. With `setpriv` (Linux) the
 * kernel ends the child with the main process: an isolate in an endless loop does not notice a closed socket, and a
 * writer would hold the database forever.
 */
const SHELL_SCRIPT = `umask 077; trap '' INT TERM HUP; ulimit -c 0; ulimit -d "$0"
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
exec "$@"`;

/**
 * Variables with which the runtime finds its caches, where packages are stored by registry. App code cannot see them.
 */
const INHERITED_VARIABLES = ["HOME", "DENO_DIR", "XDG_CACHE_HOME", "PATH", "NPM_CONFIG_REGISTRY"] as const;

export interface LimitedCommand {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/** Returns the command for a child process with this much private memory. `niceness` is as in `nice`. */
export function limitedCommand(
  dataMiB: number,
  args: readonly string[],
  { niceness = 0 }: { readonly niceness?: number } = {},
): LimitedCommand {
  const nice = niceness === 0 ? [] : ["nice", "-n", String(niceness)];
  return {
    executable: "sh",
    args: ["-c", SHELL_SCRIPT, String((dataMiB + RUNTIME_MIB) * 1024), ...nice, Deno.execPath(), ...args],
    env: { ...inheritedEnvironment(), ...runtimeEnvironment, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
  };
}

function inheritedEnvironment(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of INHERITED_VARIABLES) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}
