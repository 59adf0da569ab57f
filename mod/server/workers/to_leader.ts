/** The way of requests that only the leader answers: over a unix socket, with the address of the client and the body as it comes. */
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { ADDRESS_HEADER, CALL_HEADER, KEY_HEADER, URL_HEADER } from "../takeover/passed_headers.ts";

/** Of one connection only. */
const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"];

export class ToLeader implements Disposable {
  readonly #client: Deno.HttpClient;
  readonly #log: Log;

  constructor({ path, log }: { readonly path: string; readonly log: Log }) {
    this.#client = Deno.createHttpClient({
      proxy: { transport: "unix", path },
      poolMaxIdlePerHost: 64,
      http2: false,
    });
    this.#log = log;
  }

  async pass(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    try {
      const headers = new Headers(request.headers);
      // What processes of the server tell one another is nothing for a client to say.
      for (const name of [...HOP_HEADERS, CALL_HEADER, KEY_HEADER, "content-length"]) headers.delete(name);
      // What comes back is packed for whoever asked, here.
      headers.set("accept-encoding", "identity");
      headers.set(ADDRESS_HEADER, JSON.stringify(info.remoteAddr));
      headers.set(URL_HEADER, request.url);
      const { method, body, signal } = request;
      const { pathname, search } = new URL(request.url);
      const client = this.#client;
      const answer = await fetch(`http://leader${pathname}${search}`, {
        method,
        headers,
        body,
        signal,
        client,
        redirect: "manual",
      });
      const answered = new Headers(answer.headers);
      for (const name of [...HOP_HEADERS, "date"]) answered.delete(name);
      const { status, statusText } = answer;
      return new Response(answer.body, { status, statusText, headers: answered });
    } catch (error) {
      if (!request.signal.aborted) {
        this.#log("warn", "A request could not be passed on to the process that writes", { error });
      }
      return errorResponse(new ServiceError("unavailable"));
    }
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
