/**
 * Unix sockets in a data folder that only its owner can open: who can open one could as well read the secret key beside it.
 * What goes over them is JSON, a value a line.
 */
import { join } from "node:path";
import { makeLinks } from "./processes/symbolic_links.ts";

/** Longest path of a unix socket that every system takes. */
const SOCKET_PATH_BYTES_MAX = 100;
/** Room for the name of the folder in which a socket is made. */
const MADE_IN_BYTES = 12;

/** A socket that listens under a name in a folder, until it is disposed of. The caller holds the folder. */
export class LocalSocket implements Disposable {
  readonly listener: Deno.UnixListener;
  /** What can be connected to: short enough, wherever the folder lies. */
  readonly path: string;
  /** What listening has created, to be removed at the end. */
  readonly #created: readonly string[];

  private constructor(listener: Deno.UnixListener, { path, created }: {
    readonly path: string;
    readonly created: readonly string[];
  }) {
    this.listener = listener;
    this.path = path;
    this.#created = created;
  }

  /** `name`: of the socket, or of a link to it where the folder's path is too long for a socket. `folder` is absolute. */
  static async open(folder: string, name: string): Promise<LocalSocket> {
    const path = join(folder, name);
    // Left by a server that was killed.
    await removeIfThere(path);
    // Made in a folder of its own, which nobody else can enter, and moved once its mode is set.
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

  /** Takes no more connections, and removes the socket. */
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

/** Connects to a socket of a folder. Throws `NotFound` or `ConnectionRefused` when nobody listens. */
export async function connectLocal(folder: string, name: string): Promise<Deno.UnixConn> {
  return await Deno.connect({ transport: "unix", path: await Deno.realPath(join(folder, name)) });
}

/** Sends a value as a line. */
export async function writeLine(connection: Deno.Conn, value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

/**
 * The lines that come, without their ends. Throws a `RangeError` for one that is longer than `charsMax`; what comes before the
 * other side goes away in the middle of a line is dropped.
 */
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

/** A connection may have been closed by a timer, or by the other side. */
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
