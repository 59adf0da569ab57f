/**
 * The local socket through which the command line manages a running server: a Unix socket in the data folder that only the
 * folder's owner can open. That owner could also read the secret key. Each connection carries one line with a command and
 * one line with the response.
 */
import { closeQuietly, connectLocal, LocalSocket, readLines, writeLine } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { authLimits } from "../limits.ts";
import { type AdminAnswer, type AdminCommand, adminCommandSchema } from "./admin_commands.ts";

/** Name of the socket in the data folder. If the folder's path is too long for a socket, this is a link to it. */
export const adminSocketFile = "admin.sock";

export interface AdminChannelOptions {
  /** Absolute path. */
  readonly dataDir: string;
  readonly run: (command: AdminCommand) => Promise<AdminAnswer>;
  readonly log: Log;
}

/** Listens for commands until disposed. The caller holds the folder's lock. */
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
        this.#options.log("warn", "Administrator command failed", { error });
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
        : { kind: "refused", message: "Unknown command" };
      await writeLine(connection, answer);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Sends a command to the server of a data folder. Throws `NotFound` or `ConnectionRefused` if no server listens. */
export async function sendAdminCommand(dataDir: string, command: AdminCommand): Promise<AdminAnswer> {
  using connection = await connectLocal(dataDir, adminSocketFile);
  await writeLine(connection, command);
  return JSON.parse(await firstLine(connection)) as AdminAnswer;
}

async function firstLine(connection: Deno.Conn): Promise<string> {
  for await (const line of readLines(connection, authLimits.adminLineCharsMax)) return line;
  throw new Deno.errors.UnexpectedEof("Connection closed before the response");
}
