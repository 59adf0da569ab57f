/** What the two entries share: the surroundings of the process, and how a bug ends it. */
import { stderrLog } from "../kit/log.ts";
import { type CommandSpec, exitCodes, runCommandLine } from "./command_line.ts";

const COMPILED =
  'Syncline cannot be compiled like this, with one set of permissions for all its processes: build it with "deno task compile"\n';

/** Runs the command that the arguments name and gives the exit code. */
export async function runProgram(commands: readonly CommandSpec[], args: readonly string[]): Promise<number> {
  const encoder = new TextEncoder();
  if (Deno.build.standalone) {
    // Its permissions and its import map are those of the build: isolates could not be given less.
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

/**
 * An error nobody caught is a bug, and what it left behind is unknown: the process says so and ends, and its supervisor
 * starts a clean one. Acknowledged writes are on the disk and the isolates end with their socket.
 */
export function exitOnBug(): void {
  const log = stderrLog({ debug: false });
  globalThis.addEventListener("error", (event) => {
    log("error", "An error was not caught", { error: event.error });
    Deno.exit(exitCodes.failed);
  });
  globalThis.addEventListener("unhandledrejection", (event) => {
    log("error", "A rejection was not handled", { error: event.reason });
    Deno.exit(exitCodes.failed);
  });
}
