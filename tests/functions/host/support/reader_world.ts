/** A reader pool over fake isolates, with its answers. */
import { isolateLimits } from "../../../../mod/functions/limits.ts";
import { functionLimits } from "../../../../mod/limits.ts";
import { ReaderPool } from "../../../../mod/functions/host/readers/reader_pool.ts";
import type {
  Caller,
  QueryAnswer,
  QueryBatchOptions,
  QueryBatchRun,
} from "../../../../mod/functions/host_port.ts";
import type { QueryBatchAnswers, WireCall } from "../../../../mod/functions/wire/messages.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { FakeIsolate, FakeStarter } from "./fake_isolate.ts";
import { call, resultOf } from "./writer_world.ts";

/** A batch a test has started. */
export interface TestBatch extends QueryBatchRun {
  /** Results by position, or what went wrong, with their ts: `<result>@<ts>`. */
  readonly results: string[];
  readonly answers: QueryAnswer[];
  /** The snapshot, once it is pinned. */
  pinnedAt: number | null;
  over: boolean;
}

export class ReaderWorld {
  readonly clock = new FakeClock();
  readonly starter = new FakeStarter();
  readonly warnings: string[] = [];
  /** Times at which the pool reported a free reader. */
  freed = 0;
  readonly pool: ReaderPool;

  constructor(options: { readonly cores?: number; readonly spare?: boolean } = {}) {
    this.pool = new ReaderPool({
      readersMax: isolateLimits.readersMax,
      starter: this.starter,
      clock: this.clock,
      log: (_level, message) => this.warnings.push(message),
      cores: options.cores ?? 4,
      ts: () => 1,
      timeoutMs: functionLimits.queryTimeoutMs,
      isKnown: (udfPath) => udfPath !== "nobody:knows",
      spare: options.spare === true,
    });
    this.pool.onFree(() => this.freed++);
  }

  get readers(): FakeIsolate[] {
    return this.starter.of("reader");
  }

  reader(number: number): FakeIsolate {
    const reader = this.readers[number];
    if (reader === undefined) throw new Error(`There is no reader ${number}`);
    return reader;
  }

  /** Runs a query, which starts the first reader. */
  async runFirst(path: string): Promise<void> {
    const batch = this.batch(path);
    await settled();
    this.pins(this.reader(0), 1);
    this.answers(this.reader(0), 0, 1);
    await batch.done;
    this.freed = 0;
  }

  /** Starts a batch of these queries; arguments at the end are those of every one. */
  batch(...given: (string | Record<string, unknown>)[]): TestBatch {
    return this.#batch(given, {});
  }

  /** Starts a batch of a query that is known to be slow. */
  slowBatch(path: string, caller: Caller): TestBatch {
    return this.#batch([path, { caller }], { slow: true });
  }

  #batch(given: readonly (string | Record<string, unknown>)[], options: QueryBatchOptions): TestBatch {
    const paths = given.filter((item) => typeof item === "string");
    const { caller, ...args } = given.find((item) => typeof item !== "string") ?? {};
    const whose = caller === undefined ? {} : { caller: caller as Caller };
    const results: string[] = [];
    const answers: QueryAnswer[] = [];
    const calls = paths.map((path) => ({ ...call(path, args), ...whose }));
    const batch = this.pool.startBatch(calls, (index, answer) => {
      if (results[index] !== undefined) throw new Error(`Query ${index} was answered twice`);
      answers[index] = answer;
      results[index] = `${resultOf(answer)}@${answer.ts}`;
    }, options);
    const test: TestBatch = {
      ...batch,
      pinned: batch.pinned,
      done: batch.done,
      results,
      answers,
      pinnedAt: null,
      over: false,
    };
    batch.pinned.then((ts) => test.pinnedAt = ts);
    batch.done.then(() => test.over = true);
    return test;
  }

  /** A reader opens the snapshot of its newest batch, with commits that main has received. */
  pins(reader: FakeIsolate, ts: number): void {
    this.pool.published(ts);
    this.finds(reader, ts);
  }

  /** A reader opens the snapshot of its newest batch. */
  finds(reader: FakeIsolate, ts: number): void {
    reader.sends({ type: "Pinned", batch: reader.last("RunQueryBatch").batch, ts });
  }

  /** A reader answers the next queries of its newest batch; each result is the query's path. */
  answers(reader: FakeIsolate, from: number, count: number): void {
    const { batch } = reader.last("RunQueryBatch");
    const queries = queriesRun(reader);
    const segments = queries.slice(from, from + count).map(({ udfPath }) => JSON.stringify(udfPath));
    const answers = segments.map((_, value): QueryBatchAnswers["answers"][number] => ({
      outcome: { value, logLines: [] },
      readSet: {},
      scope: "nothing",
      nondeterministic: false,
      durationMs: 1,
    }));
    const last = from + count === queries.length;
    reader.sends({ type: "QueryBatchAnswers", batch, from, answers, last }, segments);
  }
}

function queriesRun(reader: FakeIsolate): readonly WireCall[] {
  const { batch, queries } = reader.last("RunQueryBatch");
  const go = reader.sent.findLast((message) => message.type === "QueryBatchGo" && message.batch === batch);
  return go?.type === "QueryBatchGo" ? [...queries, ...go.more ?? []] : queries;
}

/** Paths of the queries of a reader's newest batch. */
export function queriesOf(reader: FakeIsolate): string[] {
  return queriesRun(reader).map(({ udfPath }) => udfPath);
}

/** The last message to a reader that waits with its snapshot. */
export function lastGoOf(reader: FakeIsolate): string {
  return reader.last("QueryBatchGo").what;
}
