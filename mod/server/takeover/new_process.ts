/**
 * The new process as seen by the old one: forwards requests that still arrive, and function calls of actions that still run.
 */
import { ServiceError } from "../../errors.ts";
import type { PassedCalls } from "../../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../../functions/host_port.ts";
import { failed, type Outcome } from "../../functions/outcome.ts";
import { errorResponse } from "../../kit/error_response.ts";
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import { ADDRESS_HEADER, CALL_HEADER, KEY_HEADER, URL_HEADER } from "./forwarded_headers.ts";

/** Headers of a single connection. */
const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"];

export class NewProcess implements Disposable {
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

  /** Forwards a request and closes the client's connection, so that its next request goes to the new process. */
  async forward(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    try {
      const headers = new Headers(request.headers);
      // Clients must not set internal headers.
      for (const name of [...HOP_HEADERS, CALL_HEADER, KEY_HEADER, URL_HEADER]) headers.delete(name);
      // This process compresses the response for the client.
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
      this.#log("warn", "Cannot forward a request to the new process", { error });
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
      if (!answer.ok) throw new Error(`The new process answered with status ${answer.status}`);
      return await answer.json() as Answer;
    } catch (error) {
      this.#log("warn", "Cannot forward a call to the new process", { error });
      return null;
    }
  }
}

/** It is not known whether the call ran. */
function lost(): Outcome {
  return failed("internal", "The new process could not be reached");
}

/** Streams a body: the runtime would repeat a buffered one when a pooled connection ends. */
function once(body: string | Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new Blob([body]).stream();
}
