/**
 * The way in for the command line while a server runs: a unix socket in the data folder that only its owner can open.
 * Who can open it could as well read the secret key beside it. One connection carries one line with a command and one
 * with its answer.
 */
import { join } from "node:path";
import type { Log } from "../../kit/log.ts";
import { authLimits } from "../limits.ts";
import { type AdminAnswer, type AdminCommand, adminCommandSchema } from "./admin_commands.ts";

/** Name of the socket in the data folder; a link to it where the folder's path is too long for a socket. */
export const adminSocketFile = "admin.sock";

/** Longest path of a unix socket that every system takes. */
const SOCKET_PATH_BYTES_MAX = 100;

export interface AdminChannelOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly run: (command: AdminCommand) => Promise<AdminAnswer>;
  readonly log: Log;
}

/** Listens for commands until it is disposed of. The caller holds the folder's lock. */
export class AdminChannel implements AsyncDisposable {
  readonly #options: AdminChannelOptions;
  readonly #listener: Deno.UnixListener;
  /** What listening has created, to be removed at the end. */
  readonly #paths: readonly string[];
  readonly #serving: Promise<void>;
  readonly #connections = new Set<Deno.Conn>();

  private constructor(options: AdminChannelOptions, listener: Deno.UnixListener, paths: readonly string[]) {
    this.#options = options;
    this.#listener = listener;
    this.#paths = paths;
    this.#serving = this.#serve();
  }

  static async open(options: AdminChannelOptions): Promise<AdminChannel> {
    const path = join(options.dataDir, adminSocketFile);
    // Left by a server that was killed.
    await remove(path);
    // Made in a folder of its own, which nobody else can enter, and moved once its mode is set.
    const short = new TextEncoder().encode(path).length <= SOCKET_PATH_BYTES_MAX - 12;
    const folder = await Deno.makeTempDir(short ? { dir: options.dataDir, prefix: "." } : {});
    const made = join(folder, "s");
    const listener = Deno.listen({ transport: "unix", path: made });
    await Deno.chmod(made, 0o600);
    if (!short) {
      await Deno.symlink(made, path);
      return new AdminChannel(options, listener, [path, made, folder]);
    }
    await Deno.rename(made, path);
    await remove(folder);
    return new AdminChannel(options, listener, [path]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#connections) closeQuietly(connection);
    await this.#serving;
    for (const path of this.#paths) await remove(path);
  }

  async #serve(): Promise<void> {
    for await (const connection of this.#listener) {
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
      const command = adminCommandSchema.safeParse(JSON.parse(await readLine(connection)));
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
  const path = await Deno.realPath(join(dataDir, adminSocketFile));
  using connection = await Deno.connect({ transport: "unix", path });
  await writeLine(connection, command);
  return JSON.parse(await readLine(connection)) as AdminAnswer;
}

async function writeLine(connection: Deno.Conn, value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

async function readLine(connection: Deno.Conn): Promise<string> {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(4096);
  let text = "";
  while (!text.endsWith("\n")) {
    const length = await connection.read(chunk);
    if (length === null) throw new Deno.errors.UnexpectedEof("The other side went away");
    text += decoder.decode(chunk.subarray(0, length), { stream: true });
    if (text.length > authLimits.adminLineCharsMax) throw new RangeError("The line is too long");
  }
  return text;
}

/** A connection may have been closed by the timer, or by the other side. */
function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}

async function remove(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
