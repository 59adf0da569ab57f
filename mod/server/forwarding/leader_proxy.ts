/** Forwards requests to the leader over a unix socket, with the client's address and a streamed body. */
import { ServiceError } from "../../errors.ts";
import { setTimeout as delay } from "node:timers/promises";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { requestPath, requestSearch } from "../../kit/http_request.ts";
import { REFUSED_HEADER, SHOWN_HEADER, takeInternalHeaders } from "./internal_headers.ts";
import { workerLimits } from "../limits.ts";
import { ADDRESS_HEADER, LENGTH_HEADER, URL_HEADER } from "./forwarded_headers.ts";

const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"];

/** Internal headers, which clients must not set. */
const INNER_HEADERS = [LENGTH_HEADER, REFUSED_HEADER, SHOWN_HEADER];

export interface ForwardOptions {
  /** Waits until commits up to `ts` are shown here; called before the response is returned. */
  readonly shown?: (ts: number) => Promise<void>;
  /** How long to repeat a request that a server which does not lead has refused, in milliseconds. */
  readonly againMs?: number;
}

export class LeaderProxy implements Disposable {
  readonly #client: Deno.HttpClient;
  readonly #log: Log;

  /** @param idleMax Maximum number of pooled connections. */
  constructor({ path, idleMax = 64, log }: {
    readonly path: string;
    readonly idleMax?: number;
    readonly log: Log;
  }) {
    this.#client = Deno.createHttpClient({
      proxy: { transport: "unix", path },
      poolMaxIdlePerHost: idleMax,
      http2: false,
    });
    this.#log = log;
  }

  async forward(
    request: Request,
    info: Deno.ServeHandlerInfo,
    { shown, againMs = 0 }: ForwardOptions = {},
  ): Promise<Response> {
    try {
      const headers = new Headers(request.headers);
      // With a transfer coding, the content length is meaningless.
      const length = request.headers.has("transfer-encoding") ? null : request.headers.get("content-length");
      for (const name of [...HOP_HEADERS, ...INNER_HEADERS, "content-length"]) headers.delete(name);
      // This process compresses the response for the client.
      headers.set("accept-encoding", "identity");
      headers.set(ADDRESS_HEADER, JSON.stringify(info.remoteAddr));
      headers.set(URL_HEADER, request.url);
      // The body is streamed, so its length travels in a header.
      const { method, signal } = request;
      const isRead = method === "GET" || method === "HEAD";
      if (length !== null && !isRead) headers.set(LENGTH_HEADER, length);
      const client = this.#client;
      const body = againMs > 0 ? await repeatable(request) : request.body ?? new Uint8Array();
      for (const until = performance.now() + againMs;;) {
        const answer = await fetch(`http://leader${requestPath(request)}${requestSearch(request)}`, {
          method,
          headers,
          // A stream prevents the runtime from repeating the request when a pooled connection ends.
          body: isRead ? null : body instanceof ReadableStream ? body : new Blob([body]).stream(),
          signal,
          client,
          redirect: "manual",
        });
        const answered = new Headers(answer.headers);
        for (const name of [...HOP_HEADERS, "date"]) answered.delete(name);
        const { ts, refused } = takeInternalHeaders(answered);
        if (refused && !(body instanceof ReadableStream) && performance.now() < until) {
          await answer.body?.cancel();
          await delay(workerLimits.askAgainMs, undefined, { signal });
          continue;
        }
        await shown?.(ts);
        const { status, statusText } = answer;
        return new Response(answer.body, { status, statusText, headers: answered });
      }
    } catch (error) {
      if (!request.signal.aborted) {
        this.#log("warn", "Cannot forward a request to the leader", { error });
      }
      const isRead = request.method === "GET" || request.method === "HEAD";
      // The leader may have processed it.
      return errorResponse(new ServiceError(isRead ? "unavailable" : "outcome_unknown"));
    }
  }

  /** Requests a path of the leader on behalf of this server. */
  async request(path: string, signal: AbortSignal): Promise<Response> {
    const remoteAddr = { transport: "tcp", hostname: "127.0.0.1", port: 0 } as const;
    const info = { remoteAddr, completed: Promise.resolve() };
    return await this.forward(new Request(`http://leader${path}`, { signal }), info);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** Buffers a body that is small enough, so that it can be sent again. */
async function repeatable(request: Request): Promise<ReadableStream | Uint8Array<ArrayBuffer>> {
  if (request.body === null) return new Uint8Array();
  const length = Number(request.headers.get("content-length") ?? Infinity);
  return length > workerLimits.bodyReadBytesMax ? request.body : await request.bytes();
}
