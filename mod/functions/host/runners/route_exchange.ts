/**
 * One request of an app route on its way through a runner:
 *
 *     waiting --begin--> answering --head--> streaming --end--> over
 *                            └────────────────end──────────────┘
 *
 * The client may go at any time, and so may the runner.
 */
import { BodyReceiver, BodySender } from "../../wire/body_stream.ts";
import { type WireHeaders, wireHeaders } from "../../wire/http_headers.ts";
import type { CallTrace } from "../../call_trace.ts";
import type { Caller } from "../../host_port.ts";
import type { Identity } from "../../identity.ts";
import type { CallError, Outcome } from "../../outcome.ts";
import type { ResponseHead, ResponseMessage } from "../../wire/messages.ts";
import type { Isolate } from "../process/isolate.ts";

/** A response, whose body may still fail, or the error that prevented it. */
export type RouteAnswer =
  | { readonly ok: true; readonly response: Response }
  | { readonly ok: false; readonly error: CallError };

export interface RouteRequest {
  readonly request: Request;
  /** Key of the route. */
  readonly route: string;
  readonly identity: Identity;
  /** The caller, for the fair queue. */
  readonly caller?: Caller;
  readonly trace?: CallTrace;
}

/** The runner that handles a request. */
interface Place {
  readonly isolate: Isolate;
  /** Call id in that runner. */
  readonly call: number;
}

const CLIENT_GONE = "The client went away";

export class RouteExchange {
  readonly #request: RouteRequest;
  readonly #headers: WireHeaders;
  readonly #answer = Promise.withResolvers<RouteAnswer>();
  readonly #requestBody: BodySender;
  /** Set once a response with a body has started. */
  #responseBody: BodyReceiver | null = null;
  /** Set by `begin`. */
  #place: Place | null = null;
  /** Whether the client is gone. */
  #canceled = false;
  #headCame = false;
  #over = false;

  /** @throws RangeError for headers over the limit. */
  constructor(request: RouteRequest) {
    this.#request = request;
    this.#headers = wireHeaders(request.request.headers);
    this.#requestBody = new BodySender((bytes) =>
      this.#send((place) => place.isolate.sendBytes(place.call, bytes))
    );
    const { signal } = request.request;
    if (signal.aborted) this.cancel();
    else signal.addEventListener("abort", () => this.cancel(), { once: true });
  }

  /** Resolves when the response starts, or with the error that prevented it. Never rejects. */
  get answer(): Promise<RouteAnswer> {
    return this.#answer.promise;
  }

  /** Whether the client is gone. */
  get canceled(): boolean {
    return this.#canceled;
  }

  /** Sends the request to a runner. */
  begin(isolate: Isolate, { call, order }: { readonly call: number; readonly order: number }): void {
    this.#place = { isolate, call };
    const { request: { method, url, body }, route, identity } = this.#request;
    const headers = this.#headers;
    isolate.send({
      type: "RunRequest",
      call,
      order,
      route,
      method,
      url,
      headers,
      hasBody: body !== null,
      identity,
    });
    if (this.#canceled) isolate.send({ type: "CancelRequest", call });
    else if (body !== null) this.#sendBody(body);
  }

  /** Handles a message of the runner. Throws on a protocol error, after which the runner is ended. */
  receive(message: ResponseMessage, bytes: Uint8Array<ArrayBuffer> | undefined): void {
    switch (message.type) {
      case "ResponseHead":
        return this.#onHead(message);
      case "Bytes":
        if (this.#responseBody === null && !this.#canceled) {
          throw new TypeError("A body came without a response");
        }
        if (bytes !== undefined) this.#responseBody?.push(bytes);
        return;
      case "BodyCredit":
        return this.#requestBody.taken(message.bytes);
      case "BodyCanceled":
        return this.#requestBody.stop("The route does not want the rest of the body");
      default:
        message satisfies never;
    }
  }

  /** Called when the runner has finished or is lost. */
  end(outcome: Outcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#requestBody.stop("The request has been answered");
    if (outcome.ok && this.#headCame) {
      this.#responseBody?.end();
      return;
    }
    const error: CallError = outcome.ok
      ? { kind: "internal", message: "The route ended without a response", data: null }
      : outcome.error;
    this.#responseBody?.fail(new Error(`The response broke off: ${error.message}`));
    this.#answer.resolve({ ok: false, error });
  }

  /** Called when the client is gone. */
  cancel(): void {
    if (this.#canceled || this.#over) return;
    this.#canceled = true;
    this.#requestBody.stop(CLIENT_GONE);
    // An error would only be printed.
    this.#responseBody?.drop();
    this.#send(({ isolate, call }) => isolate.send({ type: "CancelRequest", call }));
  }

  #onHead({ status, statusText, headers, hasBody }: ResponseHead): void {
    if (this.#headCame) throw new TypeError("A response came twice");
    this.#headCame = true;
    // HEAD uses the route of GET, without the body.
    const wantsBody = hasBody && !this.#canceled && this.#request.request.method !== "HEAD";
    const receiver = wantsBody
      ? new BodyReceiver({
        onTaken: (bytes) =>
          this.#send(({ isolate, call }) => isolate.send({ type: "BodyCredit", call, bytes })),
        onCancel: () => this.cancel(),
      })
      : null;
    const response = new Response(receiver?.stream ?? null, {
      status,
      statusText,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
    });
    this.#responseBody = receiver;
    this.#answer.resolve({ ok: true, response });
    if (hasBody && !wantsBody) this.cancel();
  }

  async #sendBody(body: ReadableStream<Uint8Array>): Promise<void> {
    let error: string | null = null;
    try {
      if (!await this.#requestBody.pump(body)) return;
    } catch (fault) {
      error = fault instanceof Error ? fault.message : String(fault);
    }
    this.#send(({ isolate, call }) => isolate.send({ type: "BodyEnd", call, error }));
  }

  #send(send: (place: Place) => void): void {
    if (this.#place !== null && !this.#over) send(this.#place);
  }
}
