/** Calls administrator functions of a running server over its local socket, as the owner of the data folder. */
import { helpFields } from "../explained.ts";
import { resolve } from "node:path";
import { adminSocketFile, sendAdminCommand } from "../auth/mod.ts";
import { StartError } from "../config/start_error.ts";
import { exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";

export type CallServer = (path: string, args: Record<string, unknown>) => Promise<unknown>;

/** Runs a command, prints its result and turns expected errors into an exit code. */
export async function withRunningServer(
  dataDir: string,
  command: (call: CallServer) => Promise<string>,
): Promise<number> {
  const log = commandLog();
  try {
    const text = await command((path, args) => callRunningServer(dataDir, path, args));
    await Deno.stdout.write(new TextEncoder().encode(`${text}\n`));
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

/** Calls a function. Throws a `StartError` if no server runs or it refuses the call. */
export async function callRunningServer(
  dataDir: string,
  path: string,
  args: Record<string, unknown>,
): Promise<unknown> {
  const answer = await sendAdminCommand(dataDir, { command: "call", path, args }).catch((error) => {
    if (error instanceof Deno.errors.UnexpectedEof || error instanceof Deno.errors.ConnectionReset) {
      throw new StartError(
        "The server closed the connection before it answered: the call took longer than 30 s, or the server " +
          "is stopping or has too many commands in progress. The call may have taken effect",
        { code: "data_folder", cause: error },
      );
    }
    throw new StartError(
      `No server responds at ${adminSocketFile} in "${
        resolve(dataDir)
      }": start the server, or pass its data folder with --data`,
      { code: "data_folder", cause: error },
    );
  });
  if (answer.kind === "result") return answer.value;
  throw new StartError(
    answer.kind === "refused" ? answer.message : "The server does not understand the command",
  );
}
