/**
 * Accepts requests and calls that other processes of this data folder forward: an old process after a takeover, workers, or
 * the cluster's link. Listens on a socket in a folder that only the same user can enter.
 */
import { join } from "node:path";
import type { PassedCalls } from "../../functions/host/mod.ts";
import { ADDRESS_HEADER, CALL_HEADER, KEY_HEADER, LENGTH_HEADER, URL_HEADER } from "./forwarded_headers.ts";

const SOCKET_PATH_BYTES_MAX = 100;
/** Removed with the folders of isolates if the server is killed. */
const FOLDER_PREFIX = "run-";
/** For sockets that outlive the isolates; leftovers are removed when the next one is opened. */
const KEPT_PREFIX = "passed-";

export class ForwardedRequests implements AsyncDisposable {
  readonly socket: string;
  /** Authenticates function calls, because requests of clients arrive on the same socket. */
  readonly key: string;
  readonly #folder: string;
  readonly #http: Deno.HttpServer<Deno.UnixAddr>;

  private constructor(socket: string, { key, folder, http }: {
    readonly key: string;
    readonly folder: string;
    readonly http: Deno.HttpServer<Deno.UnixAddr>;
  }) {
    this.socket = socket;
    this.key = key;
    this.#folder = folder;
    this.#http = http;
  }

  static async open(
    dataDir: string,
    { calls, respond, kept = false }: {
      /** `null` if only requests are accepted. */
      readonly calls: PassedCalls | null;
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
    const key = crypto.randomUUID();
    const handler = (request: Request, info: Deno.ServeHandlerInfo<Deno.UnixAddr>) => {
      const kind = request.headers.get(CALL_HEADER);
      if (kind !== null && calls !== null && request.headers.get(KEY_HEADER) === key) {
        return answerCall(kind, { request, calls });
      }
      const remoteAddr = JSON.parse(request.headers.get(ADDRESS_HEADER) ?? "null") as Deno.NetAddr;
      return respond(asAsked(request), { remoteAddr, completed: info.completed });
    };
    const http = Deno.serve({ transport: "unix", path, onListen: () => {} }, handler);
    await Deno.chmod(path, 0o600);
    return new ForwardedRequests(path, { key, folder, http });
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

async function answerCall(
  kind: string,
  { request, calls }: { readonly request: Request; readonly calls: PassedCalls },
): Promise<Response> {
  const call = await request.json();
  return Response.json(kind === "mutation" ? await calls.mutate(call) : await calls.query(call));
}
