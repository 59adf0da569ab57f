/**
 * The way of a server that has given way to its successor: requests still come on connections it has taken, and actions
 * that still run in it call functions.
 */
import { ServiceError } from "../../errors.ts";
import type { PassedCalls } from "../../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../../functions/host_port.ts";
import { failed, type Outcome } from "../../functions/outcome.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import { ADDRESS_HEADER, CALL_HEADER, KEY_HEADER, URL_HEADER } from "./passed_headers.ts";

/** Of one connection only. */
const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"];

export class Successor implements Disposable {
  readonly #client: Deno.HttpClient;
  readonly #key: string;
  readonly #log: Log;
  readonly calls: PassedCalls;

  constructor({ socket, key }: { readonly socket: string; readonly key: string }, log: Log) {
    this.#key = key;
    this.#client = Deno.createHttpClient({ proxy: { transport: "unix", path: socket } });
    this.#log = log;
    this.calls = {
      mutate: (call) => this.#mutate(call),
      query: async (call) => await this.#call<Outcome>("query", call) ?? lost(),
    };
  }

  /** Has a request answered. The connection below is closed then: the next one goes to the successor itself. */
  async forward(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    try {
      const headers = new Headers(request.headers);
      // What the servers tell one another is nothing for a client to say.
      for (const name of [...HOP_HEADERS, CALL_HEADER, KEY_HEADER, URL_HEADER]) headers.delete(name);
      // What comes back is packed for whoever asked, here.
      headers.set("accept-encoding", "identity");
      headers.set(ADDRESS_HEADER, JSON.stringify(info.remoteAddr));
      const { method, url } = request;
      const length = Number(headers.get("content-length") ?? Infinity);
      headers.delete("content-length");
      const body = method === "GET" || method === "HEAD"
        ? null
        : length > takeoverLimits.bodyReadBytesMax
        ? request.body ?? once("")
        : once(await request.bytes());
      const client = this.#client;
      const answer = await fetch(url, { method, headers, body, client, redirect: "manual" });
      const answered = new Headers(answer.headers);
      for (const name of [...HOP_HEADERS, "date"]) answered.delete(name);
      answered.set("connection", "close");
      const { status, statusText } = answer;
      return new Response(answer.body, { status, statusText, headers: answered });
    } catch (error) {
      this.#log("warn", "A request could not be passed on to the server that took over", { error });
      return errorResponse(new ServiceError("unavailable"), { connection: "close" });
    }
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  async #mutate(call: MutationCall): Promise<MutationAnswer> {
    return await this.#call<MutationAnswer>("mutation", call) ?? { outcome: lost(), ts: 0, replayed: false };
  }

  async #call<Answer>(kind: "query" | "mutation", call: FunctionCall): Promise<Answer | null> {
    try {
      const headers = { [CALL_HEADER]: kind, [KEY_HEADER]: this.#key };
      const body = once(JSON.stringify(call));
      const answer = await fetch("http://successor/", {
        method: "POST",
        headers,
        body,
        client: this.#client,
      });
      if (!answer.ok) throw new Error(`It was answered with ${answer.status}`);
      return await answer.json() as Answer;
    } catch (error) {
      this.#log("warn", "A call could not be passed on to the server that took over", { error });
      return null;
    }
  }
}

/** Whether it ran is not known. */
function lost(): Outcome {
  return failed("internal", "The server that took over could not be asked");
}

/** A body as a stream: one of bytes is sent again by itself when a connection that was kept ends before the answer. */
function once(body: string | Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new Blob([body]).stream();
}
