/**
 * Runs queries that are not part of the app, such as those that administrators write in the dashboard. Each runs at a snapshot in
 * a reader of its own, beside the served code and with the restrictions and limits of the app's queries.
 */
import { ServiceError } from "../../../errors.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { RunUse } from "../../host_port.ts";
import type { Identity } from "../../identity.ts";
import { isolateLimits } from "../../limits.ts";
import { failed, type Outcome } from "../../outcome.ts";
import { adHocModule, BundleFailure } from "../../packages/mod.ts";
import type { ReadTrace } from "../../read_trace.ts";
import { AD_HOC_MODULE, AD_HOC_PATH } from "../../wire/app_sources.ts";
import type { QueryBatchAnswers } from "../../wire/messages.ts";
import { endedIsolate, fromWire, runUse, tookTooLong } from "../outcomes.ts";
import type { Isolate, IsolateStarter } from "../process/isolate.ts";
import type { ServedCode } from "./served_code.ts";

export interface AdHocAnswer {
  readonly outcome: Outcome;
  /** Running time in milliseconds. 0 if the query was not run. */
  readonly ms: number;
  /** The snapshot; `null` if the query was not run to its end. */
  readonly ts: number | null;
  readonly use: RunUse | null;
  readonly reads: readonly ReadTrace[];
}

export interface AdHocQueriesOptions {
  readonly starter: IsolateStarter;
  readonly served: ServedCode;
  readonly clock: Clock;
  /** Time limit of a query. */
  readonly timeoutMs: number;
}

const notRun = { ms: 0, ts: null, use: null, reads: [] } as const;
/** Module addresses in messages of the runtime. */
const DATA_URL = /data:text\/javascript;base64,[\w+/=]*/g;

export class AdHocQueries {
  readonly #options: AdHocQueriesOptions;
  #running = 0;

  constructor(options: AdHocQueriesOptions) {
    this.#options = options;
  }

  /**
   * Runs a query, given as a TypeScript module or function. Its failures are outcomes.
   * @throws ServiceError `overloaded` if another one runs.
   */
  async run(source: string, identity: Identity): Promise<AdHocAnswer> {
    const { starter, served: { version } } = this.#options;
    if (version === null || starter.startAdHoc === undefined) {
      throw new Error("These isolates cannot run other queries");
    }
    if (this.#running >= isolateLimits.adHocQueriesMax) {
      throw new ServiceError("overloaded", "Another query of the console is running: try again in a moment");
    }
    this.#running++;
    try {
      const code = await adHocModule(source, version.functions);
      const started = await starter.startAdHoc(version, code);
      if (!started.ok) return { ...notRun, outcome: failed("internal", readable(started.message)) };
      try {
        return await this.#query(started.isolate, identity);
      } finally {
        await started.isolate.close();
      }
    } catch (error) {
      if (!(error instanceof BundleFailure)) throw error;
      return { ...notRun, outcome: failed("internal", error.message) };
    } finally {
      this.#running--;
    }
  }

  async #query(isolate: Isolate, identity: Identity): Promise<AdHocAnswer> {
    const { clock, timeoutMs } = this.#options;
    const { promise, resolve } = Promise.withResolvers<AdHocAnswer>();
    let ts: number | null = null;
    isolate.receive(({ message, segments }) => {
      if (message.type === "Pinned") ({ ts } = message);
      else if (message.type === "QueryBatchAnswers") resolve({ ...answerIn(message, segments), ts });
      else throw new TypeError(`${message.type} was not expected`);
    });
    isolate.ended.then(({ detail }) => resolve({ ...notRun, outcome: endedIsolate("query", detail) }));
    const late = clock.after(timeoutMs, () => {
      resolve({ ...notRun, ms: timeoutMs, outcome: tookTooLong("query", timeoutMs) });
      isolate.kill();
    });
    const call = { udfPath: AD_HOC_PATH, args: {}, identity, origin: "server", traced: true } as const;
    isolate.send({ type: "RunQueryBatch", batch: 1, queries: [call] });
    const answer = await promise;
    late.cancel();
    return answer;
  }
}

function answerIn(
  { answers: [answer] }: QueryBatchAnswers,
  segments: readonly string[],
): Omit<AdHocAnswer, "ts"> {
  if (answer === undefined) throw new TypeError("A reader sent no answer");
  const { outcome, durationMs, use, reads = [] } = answer;
  return {
    outcome: fromWire(outcome, segments),
    ms: durationMs,
    use: use === undefined ? null : runUse(use),
    reads,
  };
}

function readable(message: string): string {
  return message.replaceAll(DATA_URL, AD_HOC_MODULE.name);
}
