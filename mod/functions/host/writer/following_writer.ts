/** The writer of a following server: applies journal rows, forwards mutations to the leader, and restarts its isolate. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { Log } from "../../../kit/log.ts";
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import type { LeaderPort } from "../leader_port.ts";
import { readOnly } from "../../outcome.ts";
import type { ApplyRows, Reached, RowsApplied, RowsRefused } from "../../wire/messages.ts";
import { AppliedGroup } from "../../wire/applied_rows.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateStarter, Ready, StartResult } from "../process/isolate.ts";
import type { MutationWriter, ReplaceResult } from "./mutation_writer.ts";
import { WriterRestarts } from "./writer_restarts.ts";

export interface FollowingWriterOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  readonly leader?: LeaderPort;
  /** Called with each applied group. Must not throw. */
  readonly onGroup: (group: AppliedGroup) => void;
  /** Called if the database has commits whose entries are lost. Must not throw. */
  readonly onGap: (ts: number) => void;
}

/** Thrown if none of the rows were applied. */
export class RowsRefusedError extends Error {
  override readonly name = "RowsRefusedError";
  /** Whether retrying is useless: the rows do not continue this database's history. */
  readonly unfit: boolean;

  constructor(message: string, { unfit }: { readonly unfit: boolean }) {
    super(message);
    this.unfit = unfit;
  }
}

export class FollowingWriter implements MutationWriter {
  readonly #options: FollowingWriterOptions;
  readonly #restarts: WriterRestarts;
  /** `null` before the start, and from a loss to the next rows. */
  #isolate: Isolate | null = null;
  #reached: Reached | null = null;
  /** The caller waiting for the result of rows. At most one. */
  #waiting: PromiseWithResolvers<RowsApplied | RowsRefused> | null = null;
  /** Serializes work on the isolate. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();
  #closing = false;

  constructor(options: FollowingWriterOptions) {
    this.#options = options;
    this.#restarts = new WriterRestarts(options);
  }

  readonly waiting = 0;

  /** History position of the database. Throws before the start. */
  get reached(): Reached {
    if (this.#reached === null) throw new Error("This database follows no other server");
    return this.#reached;
  }

  async start(): Promise<Ready> {
    const started = await this.#options.starter.start("writer");
    if (!started.ok) throw Object.assign(new Error(started.message), started.code && { code: started.code });
    this.#install(started.isolate);
    return started.isolate.ready;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    const { leader } = this.#options;
    if (leader !== undefined) return leader.mutate(call);
    return Promise.resolve({ outcome: readOnly(), ts: this.#reached?.ts ?? 0, replayed: false });
  }

  /** Commits rows as one group and publishes it, unless the caller does so. Rejects with a `RowsRefusedError`, or if the writer is lost. */
  apply(rows: readonly JournalRow[], { publishes = true } = {}): Promise<Reached> {
    return this.#oneByOne(async () => {
      const isolate = this.#isolate ?? await this.#restart();
      // A lost writer may have committed rows that were not published.
      const next = rows.filter(({ seq }) => seq > this.reached.seq);
      if (next.length === 0) return this.reached;
      const message: ApplyRows = {
        type: "ApplyRows",
        rows: next.map(({ seq, tsBefore, ts, at, sum }, body) => [seq, tsBefore, ts, at, sum, body]),
      };
      const answer = Promise.withResolvers<RowsApplied | RowsRefused>();
      this.#waiting = answer;
      isolate.send(message, next.map(({ body }) => body));
      const answered = await answer.promise.finally(() => this.#waiting = null);
      if (answered.type === "RowsRefused") throw new RowsRefusedError(answered.message, answered);
      const group = new AppliedGroup(next, answered);
      this.#reached = answered.reached;
      if (publishes) this.#options.onGroup(group);
      return answered.reached;
    });
  }

  replace(
    meanwhile: (ready: Ready) => Promise<void> | void,
    { before = () => Promise.resolve(), start = () => this.#options.starter.start("writer") }: {
      readonly before?: () => Promise<void>;
      readonly start?: () => Promise<StartResult>;
    } = {},
  ): Promise<ReplaceResult> {
    return this.#oneByOne(async () => {
      if (this.#closing) return { ok: false, busy: true, message: "The server is stopping" };
      await before();
      const started = await start();
      if (!started.ok) return { ok: false, message: started.message };
      const old = this.#isolate;
      this.#isolate = null;
      await old?.close();
      await meanwhile(started.isolate.ready);
      this.#install(started.isolate);
      return { ok: true };
    });
  }

  updateJournal(): void {}

  async close(): Promise<void> {
    this.#closing = true;
    this.#restarts.close();
    const isolate = this.#isolate;
    this.#isolate = null;
    // It ends after its current commit.
    await isolate?.close();
    this.#waiting?.reject(new Error("The server is stopping"));
    await this.#last;
  }

  #oneByOne<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  async #restart(): Promise<Isolate> {
    const started = await this.#restarts.start();
    if (started === null) throw new Error("The server is stopping");
    if (!started.ok) throw Object.assign(new Error(started.message), started.code && { code: started.code });
    this.#install(started.isolate);
    return started.isolate;
  }

  #install(isolate: Isolate): void {
    const { reached } = isolate.ready;
    if (reached === undefined) throw new Error("The database has no history that could be followed");
    if (this.#closing) {
      isolate.kill();
      throw new Error("The server is stopping");
    }
    this.#isolate = isolate;
    isolate.receive(({ message }) => {
      if (message.type !== "RowsApplied" && message.type !== "RowsRefused") {
        throw new TypeError(`A writer that follows does not send ${message.type}`);
      }
      if (this.#waiting === null) throw new TypeError(`${message.type} was not awaited`);
      this.#waiting.resolve(message);
    });
    void isolate.ended.then((death) => this.#onEnded(isolate, death));
    const before = this.#reached;
    this.#reached = reached;
    if (before !== null && before.ts !== reached.ts) this.#options.onGap(reached.ts);
  }

  #onEnded(isolate: Isolate, { cause, detail }: Death): void {
    if (isolate !== this.#isolate) return;
    this.#isolate = null;
    this.#options.log("warn", "The writer ended", { cause, detail });
    this.#waiting?.reject(new Error(`The writer ended: ${detail}`));
  }
}
