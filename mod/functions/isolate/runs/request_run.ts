/** Handles one HTTP request of a route in a runner. Request and response bodies are streamed while the handler runs. */
import { withHelp } from "../../../explained.ts";
import { BodyReceiver, BodySender } from "../../wire/body_stream.ts";
import type { FrameSender } from "../../wire/segment_frames.ts";
import { wireHeaders } from "../../wire/http_headers.ts";
import type { HttpHandler } from "../../api/http_router.ts";
import type { RequestMessage, RunRequest } from "../../wire/messages.ts";

// Captured before app code is loaded, which may replace them.
const { Request, Response, AbortController, DOMException } = globalThis;

/** Methods without a request body. */
const withoutBody: ReadonlySet<string> = new Set(["GET", "HEAD"]);

export class RequestRun {
  readonly #message: RunRequest;
  readonly #sender: FrameSender;
  readonly #abort = new AbortController();
  readonly #requestBody: BodyReceiver | null;
  readonly #responseBody: BodySender;

  constructor(message: RunRequest, sender: FrameSender) {
    const { call, hasBody, method } = message;
    this.#message = message;
    this.#sender = sender;
    this.#requestBody = hasBody && !withoutBody.has(method)
      ? new BodyReceiver({
        onTaken: (bytes) => this.#notify({ type: "BodyCredit", call, bytes }),
        onCancel: () => this.#notify({ type: "BodyCanceled", call }),
      })
      : null;
    this.#responseBody = new BodySender((bytes) => this.#leave(sender.sendBytes(call, bytes)));
  }

  /** Runs the handler and sends its response. Throws what the handler throws, or if the client disconnects. */
  async answer(handler: HttpHandler, ctx: Parameters<HttpHandler>[0]): Promise<void> {
    const { call, method, url, headers } = this.#message;
    const body = this.#requestBody?.stream ?? null;
    const request = new Request(url, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      body,
      signal: this.#abort.signal,
      ...(body === null ? {} : { duplex: "half" }),
    });
    const response: unknown = await handler(ctx, request);
    if (!(response instanceof Response) || response.status < 200) {
      throw withHelp(new TypeError("The handler of a route must return a Response"), "function_kind");
    }
    await this.#sender.send({
      type: "ResponseHead",
      call,
      status: response.status,
      statusText: response.statusText,
      headers: wireHeaders(response.headers),
      hasBody: response.body !== null,
    });
    if (response.body !== null) await this.#responseBody.pump(response.body);
  }

  receive(message: RequestMessage, bytes: Uint8Array<ArrayBuffer> | undefined): void {
    switch (message.type) {
      case "Bytes":
        if (bytes !== undefined) this.#requestBody?.push(bytes);
        return;
      case "BodyEnd":
        if (message.error === null) this.#requestBody?.end();
        else this.#requestBody?.fail(new Error(`The request's body broke off: ${message.error}`));
        return;
      case "BodyCredit":
        return this.#responseBody.taken(message.bytes);
      case "CancelRequest":
        return this.#cancel();
      default:
        message satisfies never;
    }
  }

  /** Aborts `request.signal` and both bodies after the client disconnected. */
  #cancel(): void {
    const reason = new DOMException("The client went away", "AbortError");
    this.#abort.abort(reason);
    this.#requestBody?.fail(reason);
    this.#responseBody.stop(reason.message);
  }

  #notify(message: Parameters<FrameSender["send"]>[0]): void {
    this.#leave(this.#sender.send(message));
  }

  /** If sending fails, main is gone and the isolate ends. */
  #leave(sent: Promise<void>): void {
    sent.catch(() => {});
  }
}
