/** Unix sockets in a data folder that only its owner can open. Messages are JSON, one a line. */
import { join } from "node:path";
import { makeLinks } from "./durable_files.ts";

/** Every system accepts paths of this length. */
const SOCKET_PATH_BYTES_MAX = 100;
/** Length of the temporary folder's name. */
const MADE_IN_BYTES = 12;

/** Listens under a name in a folder until disposed of. The caller must hold the folder's lock. */
export class LocalSocket implements Disposable {
  readonly listener: Deno.UnixListener;
  /** Path to connect to; short enough wherever the folder is. */
  readonly path: string;
  /** Files that `open` created, removed on dispose. */
  readonly #created: readonly string[];

  private constructor(listener: Deno.UnixListener, { path, created }: {
    readonly path: string;
    readonly created: readonly string[];
  }) {
    this.listener = listener;
    this.path = path;
    this.#created = created;
  }

  /** `name` is a link to the socket if the folder's path is too long for one. `folder` is absolute. */
  static async open(folder: string, name: string): Promise<LocalSocket> {
    const path = join(folder, name);
    // A killed server leaves it behind.
    await removeIfThere(path);
    // Created in a private folder and moved after its mode is set.
    const short = new TextEncoder().encode(path).length <= SOCKET_PATH_BYTES_MAX - MADE_IN_BYTES;
    const madeIn = await Deno.makeTempDir(short ? { dir: folder, prefix: "." } : {});
    const made = join(madeIn, "s");
    const listener = Deno.listen({ transport: "unix", path: made });
    await Deno.chmod(made, 0o600);
    if (!short) {
      await makeLinks([{ path, target: made }]);
      return new LocalSocket(listener, { path: made, created: [path, made, madeIn] });
    }
    await Deno.rename(made, path);
    await removeIfThere(madeIn);
    return new LocalSocket(listener, { path, created: [path] });
  }

  /** Stops listening and removes the socket. */
  [Symbol.dispose](): void {
    closeQuietly(this.listener);
    for (const path of this.#created) {
      try {
        Deno.removeSync(path);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
  }
}

/** Connects to a socket in a folder. Throws `NotFound` or `ConnectionRefused` if no process listens. */
export async function connectLocal(folder: string, name: string): Promise<Deno.UnixConn> {
  return await Deno.connect({ transport: "unix", path: await Deno.realPath(join(folder, name)) });
}

export async function writeLine(connection: Deno.Conn, value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

/** Yields lines without ends; drops an incomplete last one. Throws a `RangeError` above `charsMax`. */
export async function* readLines(connection: Deno.Conn, charsMax: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(4096);
  let text = "";
  for (;;) {
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      yield line;
    }
    if (text.length > charsMax) throw new RangeError("The line is too long");
    const length = await connection.read(chunk);
    if (length === null) return;
    text += decoder.decode(chunk.subarray(0, length), { stream: true });
  }
}

/** A timer or the peer may have closed it already. */
export function closeQuietly(resource: { close(): void }): void {
  try {
    resource.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
