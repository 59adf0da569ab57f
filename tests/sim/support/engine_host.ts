/**
 * The isolates of the simulation: the real engine in this process behind the port of the hub. The simulation decides when each
 * step (commit, pin, answer, death) happens.
 */
import { type CommitEntry, openWriterDatabase, type WriterDatabase } from "../../../mod/engine/mod.ts";
import type { MutationAnswer, MutationCall } from "../../../mod/functions/host_port.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { compareAnswer, runMutation, schema } from "./engine_runs.ts";
import type { Oracle } from "./oracle.ts";
import type { Random } from "./random.ts";
import { ReadingHost } from "./reading_host.ts";

interface PendingMutation {
  readonly call: MutationCall;
  readonly resolve: (answer: MutationAnswer) => void;
}

/** A group that is committed but not reported to main. */
interface CommittedGroup {
  readonly entries: readonly CommitEntry[];
  readonly answered: readonly { readonly mutation: PendingMutation; readonly answer: MutationAnswer }[];
}

export interface EngineHostOptions {
  readonly random: Random;
  readonly oracle: Oracle;
  readonly readers: number;
  /** Records mutations without their caller: one of the planted bugs. */
  readonly forgetCaller?: boolean;
}

export class EngineHost extends ReadingHost {
  readonly #folder = new TempFolder();
  readonly #options: EngineHostOptions;
  readonly #writer: WriterDatabase;
  readonly #queued: PendingMutation[] = [];
  #unreported: CommittedGroup | null = null;
  #ts = 0;

  constructor(options: EngineHostOptions) {
    super(options.random);
    this.#options = options;
    const path = this.#folder.at("data.db");
    this.#writer = openWriterDatabase(path);
    this.#writer.applySchema(schema);
    this.openReaders(path, options.readers);
  }

  override [Symbol.dispose](): void {
    super[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
    this.#folder[Symbol.dispose]();
  }

  get ts(): number {
    return this.#ts;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    const { promise, resolve } = Promise.withResolvers<MutationAnswer>();
    this.#queued.push({ call, resolve });
    return promise;
  }

  /** Whether any step can be taken. */
  get busy(): boolean {
    return this.#queued.length > 0 || this.#unreported !== null || this.reading;
  }

  /** Commits a group of waiting mutations. Reports it to main now or later, like after the writer's death. */
  commit({ count, report }: { readonly count: number; readonly report: boolean }): void {
    if (this.#unreported !== null) return this.report();
    const group = this.#queued.splice(0, count);
    if (group.length === 0) return;
    this.#writer.openGroup();
    const entries: CommitEntry[] = [];
    const answered = group.map((mutation) => ({ mutation, answer: this.#run(mutation.call, entries) }));
    this.#writer.commitGroup("");
    for (const { mutation: { call }, answer } of answered) {
      compareAnswer(this.#options.oracle, { call, answer });
    }
    this.#unreported = { entries, answered };
    if (report) this.report();
  }

  /** Kills the writer during a group: the group is rolled back, and its calls run again later. */
  dieBeforeCommit(count: number): void {
    if (this.#unreported !== null || this.#queued.length === 0) return;
    this.#writer.openGroup();
    for (const { call } of this.#queued.slice(0, count)) this.#run(call, []);
    this.#writer.rollbackGroup();
  }

  /** Reports a committed group to main. */
  report(): void {
    const group = this.#unreported;
    if (group === null) return;
    this.#unreported = null;
    this.#ts = this.#writer.ts;
    this.publishCommits(group.entries);
    for (const { mutation, answer } of group.answered) mutation.resolve(answer);
  }

  #run(call: MutationCall, entries: CommitEntry[]): MutationAnswer {
    const { forgetCaller = false } = this.#options;
    return runMutation(this.#writer, { call, entries, forgetCaller });
  }
}
