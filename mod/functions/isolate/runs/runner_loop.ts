/** Runs actions concurrently in a runner, and forwards their calls to main. */
import { withHelp } from "../../../explained.ts";
import { requestPath } from "../../../kit/http_request.ts";
import type { ActionCtx } from "../../api/context.ts";
import type { HttpHandler } from "../../api/http_router.ts";
import type { Outcome } from "../../outcome.ts";
import { BodyReceiver, BodySender } from "../../wire/body_stream.ts";
import { wireHeaders } from "../../wire/http_headers.ts";
import type {
  ActionDone,
  KeepAlive,
  RequestMessage,
  RunAction,
  RunRequest,
  SubAnswer,
  SubCall,
} from "../../wire/messages.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import type { FrameSender, WireFrame } from "../../wire/segment_frames.ts";
import type { App } from "../app/app.ts";
import type { RouteHandlers } from "../app/app_routes.ts";
import type { Leftovers } from "../process/leftovers.ts";
import { wireOutcome } from "./ending.ts";
import { type ActionRun, runAction, type SubCaller, withActionCtx } from "./run_action.ts";

// Captured before app code is loaded, which may replace them.
const { Request, Response, AbortController, DOMException } = globalThis;

/** Methods without a request body. */
const withoutBody: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** Handles one HTTP request of a route in a runner. Request and response bodies are streamed while the handler runs. */
class RequestRun {
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

export type ToRunner = RunAction | RunRequest | RequestMessage | SubAnswer | KeepAlive;

export class RunnerLoop {
  readonly #app: App & { readonly handlers: RouteHandlers };
  readonly #env: Readonly<Record<string, string>>;
  readonly #sender: FrameSender;
  /** Records the newest action started: if the runner is lost, main runs later ones elsewhere. */
  readonly #progress: ProgressFile;
  readonly #leftovers: Pick<Leftovers, "begin" | "end">;
  readonly #subCalls = new Map<number, (outcome: Outcome) => void>();
  #subCount = 0;
  /** Requests in progress, by call. */
  readonly #requests = new Map<number, RequestRun>();

  constructor(
    app: App & { readonly handlers: RouteHandlers },
    options: {
      readonly env: Readonly<Record<string, string>>;
      readonly sender: FrameSender;
      readonly progress: ProgressFile;
      readonly leftovers: Pick<Leftovers, "begin" | "end">;
    },
  ) {
    this.#app = app;
    this.#env = options.env;
    this.#sender = options.sender;
    this.#progress = options.progress;
    this.#leftovers = options.leftovers;
  }

  /** Handles a frame from main. Actions run in the background. `lost` is called if a send fails. */
  take({ message, segments, bytes }: WireFrame<ToRunner>, lost: (error: unknown) => void): void {
    switch (message.type) {
      case "RunRequest":
        this.#answerRequest(message).catch(lost);
        return;
      case "Bytes":
      case "BodyEnd":
      case "BodyCredit":
      case "CancelRequest":
        // Ignored if the request has ended.
        this.#requests.get(message.call)?.receive(message, bytes);
        return;
      case "RunAction":
        this.#run(message).catch(lost);
        return;
      case "SubAnswer":
        this.#answer(message, segments);
        return;
      case "KeepAlive":
        this.#sender.send({ type: "KeepAlive" } satisfies KeepAlive).catch(lost);
        return;
      default:
        message satisfies never;
    }
  }

  async #run(message: RunAction): Promise<void> {
    this.#progress.begin(message.order);
    this.#leftovers.begin();
    const surroundings = { env: this.#env, subCall: this.#subCall };
    await this.#done(message.call, await runAction(this.#app, message, surroundings));
  }

  async #answerRequest(message: RunRequest): Promise<void> {
    const { call, order, route, method, url, identity } = message;
    this.#progress.begin(order);
    this.#leftovers.begin();
    const request = new RequestRun(message, this.#sender);
    this.#requests.set(call, request);
    const run = await withActionCtx(this.#app, {
      call,
      udfPath: `${method} ${requestPath({ url })}`,
      identity,
      env: this.#env,
      subCall: this.#subCall,
    }, async (ctx) => {
      const handler = this.#app.handlers.get(route);
      // The routes known to main may be of another version.
      if (handler === undefined) throw new Error(`There is no route ${route} any more`);
      await request.answer(handler, ctx as unknown as ActionCtx);
      return "null";
    });
    this.#requests.delete(call);
    await this.#done(call, run);
  }

  async #done(call: number, { ending, logLines }: ActionRun): Promise<void> {
    const segments: string[] = [];
    const outcome = wireOutcome(ending, { logLines, segments });
    this.#leftovers.end();
    await this.#sender.send({ type: "ActionDone", call, outcome } satisfies ActionDone, segments);
  }

  readonly #subCall: SubCaller = async (request) => {
    const sub = ++this.#subCount;
    const answer = new Promise<Outcome>((resolve) => this.#subCalls.set(sub, resolve));
    await this.#sender.send({ type: "SubCall", sub, ...request } satisfies SubCall);
    return await answer;
  };

  #answer({ sub, outcome }: SubAnswer, segments: readonly string[]): void {
    const resolve = this.#subCalls.get(sub);
    this.#subCalls.delete(sub);
    resolve?.(
      "error" in outcome
        ? { ok: false, error: outcome.error, logLines: outcome.logLines }
        : { ok: true, value: segments[outcome.value] ?? "null", logLines: outcome.logLines },
    );
  }
}
