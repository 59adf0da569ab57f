/** Shared by both entry points: the process environment and the handling of uncaught errors. */
import { stderrLog } from "../kit/log.ts";
import { type CommandSpec, exitCodes, runCommandLine } from "./command_line.ts";

const COMPILED =
  'Cannot run as a plain "deno compile" program, which has one permission set for all processes: build it with "deno task compile"\n';

/** Runs the command named by the arguments and returns the exit code. */
export async function runProgram(commands: readonly CommandSpec[], args: readonly string[]): Promise<number> {
  const encoder = new TextEncoder();
  if (Deno.build.standalone) {
    // Permissions and import map are fixed by the build, so isolates could not be restricted further.
    Deno.stderr.writeSync(encoder.encode(COMPILED));
    return exitCodes.failed;
  }
  try {
    return await runCommandLine(commands, {
      args,
      env: (name) => Deno.env.get(name),
      out: (text) => void Deno.stdout.writeSync(encoder.encode(text)),
      err: (text) => void Deno.stderr.writeSync(encoder.encode(text)),
    });
  } catch (error) {
    stderrLog({ debug: false })("error", "The program failed", { error });
    return exitCodes.failed;
  }
}

/** Logs an uncaught error and exits, because the state is unknown. Acknowledged writes are on disk. */
export function exitOnBug(): void {
  const log = stderrLog({ debug: false });
  globalThis.addEventListener("error", (event) => {
    log("error", "Uncaught error", { error: event.error });
    Deno.exit(exitCodes.failed);
  });
  globalThis.addEventListener("unhandledrejection", (event) => {
    log("error", "Unhandled promise rejection", { error: event.reason });
    Deno.exit(exitCodes.failed);
  });
}
