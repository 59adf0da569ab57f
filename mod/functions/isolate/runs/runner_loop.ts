/** Runs actions concurrently in a runner, and forwards their calls to main. */
import { requestPath } from "../../../kit/http_request.ts";
import type { FrameSender, WireFrame } from "../../wire/segment_frames.ts";
import type { ActionCtx } from "../../api/context.ts";
import type { Outcome } from "../../outcome.ts";
import type {
  ActionDone,
  KeepAlive,
  RequestMessage,
  RunAction,
  RunRequest,
  SubAnswer,
  SubCall,
} from "../../wire/messages.ts";
import type { App } from "../app/app.ts";
import { wireOutcome } from "./ending.ts";
import type { Leftovers } from "../process/leftovers.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import type { RouteHandlers } from "../app/app_routes.ts";
import { RequestRun } from "./request_run.ts";
import { type ActionRun, runAction, type SubCaller, withActionCtx } from "./run_action.ts";

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
