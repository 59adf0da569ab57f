/** A runner's work: actions side by side, and the calls they make through main. */
import type { Frame, FrameSender } from "../frames.ts";
import type { Outcome } from "../outcome.ts";
import type { ActionDone, Beat, RunAction, SubAnswer, SubCall } from "../wire.ts";
import type { App } from "./app.ts";
import { wireOutcome } from "./ending.ts";
import type { ProgressFile } from "./progress.ts";
import { runAction, type SubCaller } from "./run_action.ts";

export class RunnerLoop {
  readonly #app: App;
  readonly #env: Readonly<Record<string, string>>;
  readonly #sender: FrameSender;
  /** Holds the number of the newest action begun: main runs later ones elsewhere when the runner is lost. */
  readonly #progress: ProgressFile;
  /** Calls of running actions that main has not answered, by their number. */
  readonly #subCalls = new Map<number, (outcome: Outcome) => void>();
  #subCount = 0;

  constructor(
    app: App,
    options: {
      readonly env: Readonly<Record<string, string>>;
      readonly sender: FrameSender;
      readonly progress: ProgressFile;
    },
  ) {
    this.#app = app;
    this.#env = options.env;
    this.#sender = options.sender;
    this.#progress = options.progress;
  }

  /** Takes a frame from main; actions go on beside. A failed send rejects `lost`. */
  take({ message, segments }: Frame<RunAction | SubAnswer | Beat>, lost: (error: unknown) => void): void {
    switch (message.type) {
      case "RunAction":
        this.#run(message).catch(lost);
        return;
      case "SubAnswer":
        this.#answer(message, segments);
        return;
      case "Beat":
        this.#sender.send({ type: "Beat" } satisfies Beat).catch(lost);
        return;
      default:
        message satisfies never;
    }
  }

  async #run(message: RunAction): Promise<void> {
    this.#progress.begin(message.call);
    const { ending, logLines } = await runAction(this.#app, message, {
      env: this.#env,
      subCall: this.#subCall,
    });
    const segments: string[] = [];
    const outcome = wireOutcome(ending, { logLines, segments });
    await this.#sender.send(
      { type: "ActionDone", call: message.call, outcome } satisfies ActionDone,
      segments,
    );
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
