/**
 * The command that starts an isolate: its flags, its environment, its limits. The executable is the one that runs main; the
 * flags grant what the isolate needs until it has loaded the app.
 */
import { runtimeEnvironment } from "../../../kit/runtime_environment.ts";
import { isolateLimits } from "../../../limits.ts";
import { heapFlags, type IsolatePaths, startArguments } from "./start_flags.ts";

/** Memory the runtime reserves for itself before any code runs: V8 cannot start with less. */
const RUNTIME_MIB = 640;

/**
 * Files and core dumps hold the app's data: others may not read the one, and the other is not made. Signals meant for the
 * server reach its whole process group (Ctrl-C, a service manager's stop): until an isolate ignores them itself, the shell
 * does. `ulimit -d` has no effect on macOS: see memory_watch.ts. Where `setpriv` can do it (Linux), the kernel
 * ends the isolate with main: one that runs an endless loop does not notice that its socket has closed, and a writer would
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

export interface IsolateCommand {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
}

/** The entry of an isolate without functions of the service. */
export const plainEntry: URL = new URL("../../isolate/main.ts", import.meta.url);

/** The command for an isolate. */
export function isolateCommand(paths: IsolatePaths): IsolateCommand {
  const own = startArguments(paths);
  const { executable, args, env } = limitedCommand(isolateLimits.dataMiB, own);
  return { executable, args, env: { ...env, DENO_V8_FLAGS: heapFlags(paths.role) } };
}

/**
 * The command for a child of this program that may use so much private memory and ends with main. `niceness`: how far other
 * processes go first, as `nice` counts it.
 */
export function limitedCommand(
  dataMiB: number,
  args: readonly string[],
  { niceness = 0 }: { readonly niceness?: number } = {},
): IsolateCommand {
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
