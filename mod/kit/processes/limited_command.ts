/**
 * The command that starts a child of this program with limits: private memory, core dumps, signals, and an end when main
 * ends. The executable is the one that runs main.
 */
import { runtimeEnvironment } from "./runtime_environment.ts";

/** Memory the runtime reserves for itself before any code runs: V8 cannot start with less. */
const RUNTIME_MIB = 640;

/**
 * Files and core dumps hold the app's data: others may not read the one, and the other is not made. Signals meant for the
 * server reach its whole process group (Ctrl-C, a service manager's stop): until a child ignores them itself, the shell
 * does. `ulimit -d` has no effect on macOS: see `functions/host/process/memory_watch.ts`. Where `setpriv` can do it (Linux), the kernel
 * ends the child with main: an isolate that runs an endless loop does not notice that its socket has closed, and a writer would
 * hold the database for ever.
 */
const SHELL_SCRIPT = `umask 077; trap '' INT TERM HUP; ulimit -c 0; ulimit -d "$0"
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
exec "$@"`;

/**
 * Variables the runtime needs to find its caches, in which packages lie under the name of their registry. None of them is
 * visible to app code.
 */
const PASSED_ON = ["HOME", "DENO_DIR", "XDG_CACHE_HOME", "PATH", "NPM_CONFIG_REGISTRY"] as const;

export interface LimitedCommand {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/**
 * The command for a child of this program that may use so much private memory and ends with main. `niceness`: how far other
 * processes go first, as `nice` counts it.
 */
export function limitedCommand(
  dataMiB: number,
  args: readonly string[],
  { niceness = 0 }: { readonly niceness?: number } = {},
): LimitedCommand {
  const nice = niceness === 0 ? [] : ["nice", "-n", String(niceness)];
  return {
    executable: "sh",
    args: ["-c", SHELL_SCRIPT, String((dataMiB + RUNTIME_MIB) * 1024), ...nice, Deno.execPath(), ...args],
    env: { ...passedOn(), ...runtimeEnvironment, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
  };
}

function passedOn(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of PASSED_ON) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}
