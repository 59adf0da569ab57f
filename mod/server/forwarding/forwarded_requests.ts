/** Accepts requests of workers or the cluster's link, on a socket that only the same user can open. */
import { join } from "node:path";
import { ADDRESS_HEADER, LENGTH_HEADER, URL_HEADER } from "./forwarded_headers.ts";

const SOCKET_PATH_BYTES_MAX = 100;
/** Removed with the folders of isolates if the server is killed. */
const FOLDER_PREFIX = "run-";
/** For sockets that outlive the isolates; leftovers are removed when the next one is opened. */
const KEPT_PREFIX = "passed-";

export class ForwardedRequests implements AsyncDisposable {
  readonly socket: string;
  readonly #folder: string;
  readonly #http: Deno.HttpServer<Deno.UnixAddr>;

  private constructor(socket: string, { folder, http }: {
    readonly folder: string;
    readonly http: Deno.HttpServer<Deno.UnixAddr>;
  }) {
    this.socket = socket;
    this.#folder = folder;
    this.#http = http;
  }

  static async open(
    dataDir: string,
    { respond, kept = false }: {
      readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
      /** Whether the socket outlives the isolates. */
      readonly kept?: boolean;
    },
  ): Promise<ForwardedRequests> {
    const short = new TextEncoder().encode(dataDir).length + 24 <= SOCKET_PATH_BYTES_MAX;
    if (kept) await removeLeft(dataDir);
    const prefix = kept ? KEPT_PREFIX : FOLDER_PREFIX;
    const folder = await Deno.makeTempDir({ prefix, ...(short && { dir: dataDir }) });
    const path = join(folder, "s");
    const handler = (request: Request, info: Deno.ServeHandlerInfo<Deno.UnixAddr>) => {
      const remoteAddr = JSON.parse(request.headers.get(ADDRESS_HEADER) ?? "null") as Deno.NetAddr;
      return respond(asAsked(request), { remoteAddr, completed: info.completed });
    };
    const http = Deno.serve({ transport: "unix", path, onListen: () => {} }, handler);
    await Deno.chmod(path, 0o600);
    return new ForwardedRequests(path, { folder, http });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#http.shutdown();
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {});
  }
}

async function removeLeft(dataDir: string): Promise<void> {
  for await (const { name, isDirectory } of Deno.readDir(dataDir)) {
    if (isDirectory && name.startsWith(KEPT_PREFIX)) {
      await Deno.remove(join(dataDir, name), { recursive: true });
    }
  }
}

/** Restores the original request. */
function asAsked(request: Request): Request {
  const url = request.headers.get(URL_HEADER);
  if (url === null) return request;
  const headers = new Headers(request.headers);
  headers.set("host", new URL(url).host);
  headers.delete(URL_HEADER);
  const length = headers.get(LENGTH_HEADER);
  if (length !== null) {
    headers.set("content-length", length);
    headers.delete("transfer-encoding");
    headers.delete(LENGTH_HEADER);
  }
  const { method, body, signal } = request;
  return new Request(url, { method, headers, body, signal });
}
