/** The way of requests that only the leader answers: on a unix socket, with the address of the client and the body as it comes. */
import { ServiceError } from "../../errors.ts";
import { setTimeout as delay } from "node:timers/promises";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { requestPath, requestSearch } from "../../kit/request_path.ts";
import { REFUSED_HEADER, SHOWN_HEADER, takeSaid } from "./passed_answers.ts";
import { takeoverLimits, workerLimits } from "../limits.ts";
import {
  ADDRESS_HEADER,
  CALL_HEADER,
  KEY_HEADER,
  LENGTH_HEADER,
  URL_HEADER,
} from "../takeover/passed_headers.ts";

/** Of one connection only. */
const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"];

/** What processes of the server tell one another. */
const INNER_HEADERS = [CALL_HEADER, KEY_HEADER, LENGTH_HEADER, REFUSED_HEADER, SHOWN_HEADER];

export interface PassOptions {
  /** Resolves when commits up to this one are shown here: the answer waits for it. */
  readonly shown?: (ts: number) => Promise<void>;
  /** For so long a request is asked again that came to a server which does not lead. */
  readonly againMs?: number;
}

export class ToLeader implements Disposable {
  readonly #client: Deno.HttpClient;
  readonly #log: Log;

  /** `idleMax`: connections that are kept for the next request. */
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

  async pass(
    request: Request,
    info: Deno.ServeHandlerInfo,
    { shown, againMs = 0 }: PassOptions = {},
  ): Promise<Response> {
    try {
      const headers = new Headers(request.headers);
      // Beside a coding of the transfer it says nothing.
      const length = request.headers.has("transfer-encoding") ? null : request.headers.get("content-length");
      // What processes of the server tell one another is nothing for a client to say.
      for (const name of [...HOP_HEADERS, ...INNER_HEADERS, "content-length"]) headers.delete(name);
      // What comes back is packed for whoever asked, here.
      headers.set("accept-encoding", "identity");
      headers.set(ADDRESS_HEADER, JSON.stringify(info.remoteAddr));
      headers.set(URL_HEADER, request.url);
      // The body goes on as a stream, whose length is not announced.
      const { method, signal } = request;
      const isRead = method === "GET" || method === "HEAD";
      if (length !== null && !isRead) headers.set(LENGTH_HEADER, length);
      const client = this.#client;
      const body = againMs > 0 ? await repeatable(request) : request.body ?? new Uint8Array();
      for (const until = performance.now() + againMs;;) {
        const answer = await fetch(`http://leader${requestPath(request)}${requestSearch(request)}`, {
          method,
          headers,
          // As a stream, or it would be sent again by itself when a connection that was kept ends before the answer.
          body: isRead ? null : body instanceof ReadableStream ? body : new Blob([body]).stream(),
          signal,
          client,
          redirect: "manual",
        });
        const answered = new Headers(answer.headers);
        for (const name of [...HOP_HEADERS, "date"]) answered.delete(name);
        const { ts, refused } = takeSaid(answered);
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
        this.#log("warn", "A request could not be passed on to the process that writes", { error });
      }
      const isRead = request.method === "GET" || request.method === "HEAD";
      // The leader may have got it, and done it.
      return errorResponse(new ServiceError(isRead ? "unavailable" : "outcome_unknown"));
    }
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** The body as it can be sent again, if it is not too long for that. */
async function repeatable(request: Request): Promise<ReadableStream | Uint8Array<ArrayBuffer>> {
  if (request.body === null) return new Uint8Array();
  const length = Number(request.headers.get("content-length") ?? Infinity);
  return length > takeoverLimits.bodyReadBytesMax ? request.body : await request.bytes();
}
