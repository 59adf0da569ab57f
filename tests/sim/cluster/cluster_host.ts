/**
 * The isolates of one server of the simulated cluster: the real engine on a file. As the leader it commits a group when its row
 * is appended; as a follower it applies rows. The simulation runs its steps.
 */
import {
  type CommitEntry,
  type JournalRow,
  openWriterDatabase,
  type WriterDatabase,
} from "../../../mod/engine/mod.ts";
import type { MutationAnswer, MutationCall } from "../../../mod/functions/host_port.ts";
import type { CommitAppender, LeaderPort } from "../../../mod/functions/host/mod.ts";
import { RequestsInFlight } from "../../../mod/functions/host/requests_in_flight.ts";
import { ReadBarrier } from "../../../mod/functions/host/readers/read_barrier.ts";
import { applyRows, reachedBy } from "../../../mod/functions/isolate/runs/apply_rows.ts";
import { outcomeUnknown, unavailable } from "../../../mod/functions/outcome.ts";
import type { Reached, RowsApplied, RowsRefused } from "../../../mod/functions/wire/messages.ts";
import { AppliedGroup } from "../../../mod/functions/wire/applied_rows.ts";
import type { Clock } from "../../../mod/kit/clock.ts";
import { recordedAnswer, runMutation, schema } from "../support/engine_runs.ts";
import type { Random } from "../support/random.ts";
import { ReadingHost } from "../support/reading_host.ts";

export interface RunCall {
  readonly call: MutationCall;
  readonly answer: MutationAnswer;
}

interface Waiting {
  readonly call: MutationCall;
  readonly resolve: (answer: MutationAnswer) => void;
}

/** A group that waits for its row. */
interface OpenGroup {
  readonly entries: readonly CommitEntry[];
  readonly answered: readonly { readonly waiting: Waiting; readonly answer: MutationAnswer }[];
}

export interface ClusterHostOptions {
  readonly path: string;
  readonly random: Random;
  readonly readers: number;
  readonly clock: Clock;
  /** Of the leader; `null`: this server follows. */
  readonly rows: CommitAppender | null;
  /** Where mutations of one that follows run. */
  readonly toLeader: LeaderPort;
  /** Called with the contents of a row, before any other listener. */
  readonly onPrepared: (row: JournalRow, group: readonly RunCall[]) => void;
  /** Called with calls that were not committed as far as this server knows; `known`: they certainly were not. */
  readonly onRefused: (
    calls: readonly MutationCall[],
    refusal: { readonly row: JournalRow; readonly known: boolean },
  ) => void;
}

export class ClusterHost extends ReadingHost {
  readonly #options: ClusterHostOptions;
  readonly #writer: WriterDatabase;
  readonly #answers: ReadBarrier;
  readonly #inFlight = new RequestsInFlight();
  #queued: Waiting[] = [];
  #open: OpenGroup | null = null;
  /** Calls whose writer died: the next leader reports their outcome. */
  readonly #lost: Waiting[] = [];
  #ts: number;
  #closed = false;
  /** Whether the writer dies when its next row is appended, before it commits. */
  diesWhenAppended = false;

  constructor(options: ClusterHostOptions) {
    super(options.random);
    const { path, rows, clock, readers } = options;
    this.#options = options;
    this.#writer = openWriterDatabase(path, { journal: "external" });
    if (rows !== null) this.#writer.applySchema(schema);
    this.#ts = this.#writer.ts;
    this.#answers = new ReadBarrier(clock, this.#ts);
    this.openReaders(path, readers);
  }

  override [Symbol.dispose](): void {
    this.#closed = true;
    super[Symbol.dispose]();
    this.#answers.close();
    const answer = { ts: this.#ts, replayed: false };
    for (const { resolve } of this.#queued) resolve({ outcome: unavailable("The server ends"), ...answer });
    const open = this.#open?.answered.map(({ waiting }) => waiting) ?? [];
    for (const { resolve } of [...this.#lost, ...open]) {
      resolve({ outcome: outcomeUnknown("The server ended"), ...answer });
    }
    this.#writer[Symbol.dispose]();
  }

  get ts(): number {
    return this.#ts;
  }

  /** Current position of the database. */
  get position(): Reached {
    const reached = reachedBy(this.#writer);
    if (reached === null) throw new Error("The database has no history");
    return reached;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    return this.#inFlight.run(call, () => this.#mutate(call));
  }

  async #mutate(call: MutationCall): Promise<MutationAnswer> {
    const { rows, toLeader } = this.#options;
    if (rows !== null) {
      const { promise, resolve } = Promise.withResolvers<MutationAnswer>();
      this.#queued.push({ call, resolve });
      return await promise;
    }
    const answer = await toLeader.mutate(call);
    await new Promise<void>((resolve) => this.#answers.arrived(answer.ts, resolve));
    return answer;
  }

  /** Whether any step can be taken. */
  get busy(): boolean {
    return this.#queued.length > 0 || this.#open !== null || this.reading;
  }

  /** Runs a group of waiting mutations; it is committed when its row is appended. */
  commit(count: number): void {
    const { rows, onPrepared } = this.#options;
    if (this.#open !== null || this.#queued.length === 0 || rows === null) return;
    const group = this.#queued.splice(0, count);
    this.#writer.openGroup();
    const entries: CommitEntry[] = [];
    const answered = group.map((waiting) => ({
      waiting,
      answer: runMutation(this.#writer, { call: waiting.call, entries }),
    }));
    this.#open = { entries, answered };
    const row = this.#writer.prepareCommit("");
    const ran = answered.some(({ answer: { replayed } }) => !replayed);
    if (row === null && !ran) return this.#commit(this.#open);
    if (row !== null) onPrepared(row, answered.map(({ waiting: { call }, answer }) => ({ call, answer })));
    void rows.append(row).then((refused) => {
      if (!this.#closed && this.#open !== null) this.#appended(row, { refused, rows, open: this.#open });
    });
  }

  /** Commits rows like a follower and reports them. */
  async apply(rows: readonly JournalRow[]): Promise<void> {
    let reported: RowsApplied | RowsRefused | null = null;
    const sender = {
      send: (message: unknown) => Promise.resolve(void (reported = message as typeof reported)),
    };
    const wired = rows.map(({ seq, tsBefore, ts, at, sum }, body) =>
      [seq, tsBefore, ts, at, sum, body] as const
    );
    const progress = { storing() {}, idle() {} };
    await applyRows({ database: this.#writer, progress, sender }, {
      rows: wired,
      bodies: rows.map(({ body }) => body),
    });
    const answered = reported as RowsApplied | RowsRefused | null;
    if (answered === null || answered.type === "RowsRefused") {
      throw new Error(`Rows do not fit: ${answered?.message}`);
    }
    this.#ts = answered.reached.ts;
    const group = new AppliedGroup(rows, JSON.parse(JSON.stringify(answered)));
    this.publishFollowed(group);
    this.#answers.published(this.#ts);
    this.#inFlight.answer(group);
  }

  #appended(
    row: JournalRow | null,
    { refused, rows, open }: {
      readonly refused: Awaited<ReturnType<CommitAppender["append"]>>;
      readonly rows: CommitAppender;
      readonly open: OpenGroup;
    },
  ): void {
    if (refused === null && !this.diesWhenAppended) return this.#commit(open);
    this.diesWhenAppended = false;
    this.#open = null;
    this.#writer.rollbackGroup();
    const calls = open.answered.map(({ waiting: { call } }) => call);
    if (refused === null && row === null) {
      // The next writer runs them again.
      return void this.#queued.unshift(...open.answered.map(({ waiting }) => waiting));
    }
    if (refused === null) {
      // The next writer finds a row in the history that it lacks.
      this.#lost.push(...open.answered.map(({ waiting }) => waiting));
      return void rows.begins(this.position);
    }
    const { known, message } = refused;
    if (row !== null) this.#options.onRefused(calls, { row, known });
    const outcome = known ? unavailable(message) : outcomeUnknown(message);
    for (const { waiting: { call, resolve } } of open.answered) {
      resolve(recordedAnswer(this.#writer, call) ?? { outcome, ts: this.#ts, replayed: false });
    }
  }

  #commit({ entries, answered }: OpenGroup): void {
    this.#writer.commitGroup("");
    this.#open = null;
    this.#report(entries, this.#writer.ts);
    for (const { waiting: { resolve }, answer } of answered) resolve(answer);
  }

  #report(entries: readonly CommitEntry[], ts: number): void {
    this.#ts = ts;
    this.publishCommits(entries);
    this.#answers.published(ts);
  }
}
