/** The local socket for the command line: JSON lines, on a Unix socket that only the folder's owner can open. */
import { z } from "zod";
import { closeQuietly, connectLocal, LocalSocket, readLines, writeLine } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { authLimits } from "../limits.ts";
import { ServiceError } from "../../errors.ts";
import type { AdminAccounts } from "./admin_accounts.ts";
import type { AdminSummary } from "../isolate_functions/admins.ts";

/** Name of the socket in the data folder. If the folder's path is too long for a socket, this is a link to it. */
export const adminSocketFile = "admin.sock";

interface AdminChannelOptions {
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

const email = z.string();
const password = z.string();

const adminCommandSchema = z.discriminatedUnion("command", [
  z.object({ command: z.literal("create"), email, password }),
  z.object({ command: z.literal("reset-password"), email, password }),
  z.object({ command: z.literal("list") }),
  z.object({ command: z.literal("revoke-sessions"), email }),
  z.object({ command: z.literal("remove-factors"), email }),
  /** A call of an administrator function. */
  z.object({
    command: z.literal("call"),
    path: z.string().startsWith("_admin/"),
    args: z.record(z.string(), z.unknown()),
  }),
]);

export type AdminCommand = z.infer<typeof adminCommandSchema>;

/**
 * The response. `ended` is the number of ended sessions, `null` if the account does not exist; `known` whether it exists; `passkeys`
 * the number of passkeys that a new password leaves, absent for other commands.
 */
export type AdminAnswer =
  | { readonly kind: "created" }
  | { readonly kind: "list"; readonly admins: readonly AdminSummary[] }
  | { readonly kind: "ended"; readonly ended: number | null; readonly passkeys?: number }
  | { readonly kind: "factors"; readonly known: boolean }
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "refused"; readonly message: string };

/** Runs a command. Expected errors become a response; other errors are thrown. */
export async function runAdminCommand(admins: AdminAccounts, command: AdminCommand): Promise<AdminAnswer> {
  try {
    switch (command.command) {
      case "create":
        await admins.create(command);
        return { kind: "created" };
      case "reset-password":
        return { kind: "ended", ended: null, ...await admins.resetPassword(command) };
      case "list":
        return { kind: "list", admins: await admins.list() };
      case "revoke-sessions":
        return { kind: "ended", ended: await admins.revokeSessions(command.email) };
      case "remove-factors":
        return { kind: "factors", known: await admins.removeFactors(command.email) };
      case "call":
        return { kind: "refused", message: "This command needs a running server" };
      default:
        return command satisfies never;
    }
  } catch (error) {
    if (error instanceof ServiceError) return { kind: "refused", message: error.message };
    throw error;
  }
}
