/**
 * The way in for the command line while a server runs: a unix socket in the data folder that only its owner can open.
 * Who can open it could as well read the secret key beside it. One connection carries one line with a command and one
 * with its answer.
 */
import { closeQuietly, connectLocal, LocalSocket, readLines, writeLine } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { authLimits } from "../limits.ts";
import { type AdminAnswer, type AdminCommand, adminCommandSchema } from "./admin_commands.ts";

/** Name of the socket in the data folder; a link to it where the folder's path is too long for a socket. */
export const adminSocketFile = "admin.sock";

export interface AdminChannelOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly run: (command: AdminCommand) => Promise<AdminAnswer>;
  readonly log: Log;
}

/** Listens for commands until it is disposed of. The caller holds the folder's lock. */
export class AdminChannel implements AsyncDisposable {
  readonly #options: AdminChannelOptions;
  readonly #socket: LocalSocket;
  readonly #serving: Promise<void>;
  readonly #connections = new Set<Deno.Conn>();

  private constructor(options: AdminChannelOptions, socket: LocalSocket) {
    this.#options = options;
    this.#socket = socket;
    this.#serving = this.#serve();
  }

  static async open(options: AdminChannelOptions): Promise<AdminChannel> {
    return new AdminChannel(options, await LocalSocket.open(options.dataDir, adminSocketFile));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket[Symbol.dispose]();
    for (const connection of this.#connections) closeQuietly(connection);
    await this.#serving;
  }

  async #serve(): Promise<void> {
    for await (const connection of this.#socket.listener) {
      if (this.#connections.size >= authLimits.adminConnectionsMax) {
        closeQuietly(connection);
        continue;
      }
      this.#connections.add(connection);
      this.#answer(connection).catch((error) => {
        this.#options.log("warn", "A command for administrators failed", { error });
      }).finally(() => {
        this.#connections.delete(connection);
        closeQuietly(connection);
      });
    }
  }

  async #answer(connection: Deno.Conn): Promise<void> {
    const timer = setTimeout(() => closeQuietly(connection), authLimits.adminCommandMs);
    try {
      const command = adminCommandSchema.safeParse(JSON.parse(await firstLine(connection)));
      const answer: AdminAnswer = command.success
        ? await this.#options.run(command.data)
        : { kind: "refused", message: "The command is not understood" };
      await writeLine(connection, answer);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Sends a command to the server of a data folder. Throws `NotFound` or `ConnectionRefused` when none listens. */
export async function sendAdminCommand(dataDir: string, command: AdminCommand): Promise<AdminAnswer> {
  using connection = await connectLocal(dataDir, adminSocketFile);
  await writeLine(connection, command);
  return JSON.parse(await firstLine(connection)) as AdminAnswer;
}

async function firstLine(connection: Deno.Conn): Promise<string> {
  for await (const line of readLines(connection, authLimits.adminLineCharsMax)) return line;
  throw new Deno.errors.UnexpectedEof("The other side went away");
}
