/** How far the commits are that main knows of, and who is told of them. */
import type { CommitEntry } from "../../engine/types.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { Arrivals } from "./readers/arrivals.ts";

export class CommitNews {
  readonly #log: Log;
  readonly #commits: ((entries: readonly CommitEntry[]) => void)[] = [];
  readonly #groups: (() => void)[] = [];
  readonly #reloads: (() => void)[] = [];
  readonly #ends: ((ts: number) => void)[] = [];
  /** Answers that show newer commits than were told of here. */
  readonly #answers: Arrivals;
  #ts = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#log = log;
    this.#answers = new Arrivals(clock, 0);
  }

  /** ts of the newest commit. Advanced with each group, before anybody is told of it. */
  get ts(): number {
    return this.#ts;
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void): void {
    this.#commits.push(listener);
  }

  /** Called after each group, also one that changed nothing but replay records. */
  onGroup(listener: () => void): void {
    this.#groups.push(listener);
  }

  /** Called when the code is another one, or commits may have been missed. */
  onReload(listener: () => void): void {
    this.#reloads.push(listener);
  }

  /** Called when everybody else has been told of the commits up to a ts. Must not throw. */
  onTold(listener: (ts: number) => void): void {
    this.#ends.push(listener);
  }

  /** The database stands here, and nobody has to be told how it got there. */
  begin(ts: number): void {
    this.#ts = ts;
    this.#end(ts);
  }

  /** A group was committed; `entries` may be empty. */
  group(entries: readonly CommitEntry[], ts: number): void {
    this.#ts = ts;
    if (entries.length > 0) this.#tell(this.#commits, entries);
    this.#tell(this.#groups, undefined);
    this.#end(ts);
  }

  /** The database holds commits up to this one whose entries are lost. */
  gap(ts: number): void {
    this.#ts = ts;
    this.reloaded();
    this.#end(ts);
  }

  /** What is remembered of the database may be old. */
  reloaded(): void {
    this.#tell(this.#reloads, undefined);
  }

  /** Resolves when everybody was told of the commits up to this one, or after a bounded time. */
  async told(ts: number): Promise<void> {
    if (ts > this.#ts) await new Promise<void>((resolve) => this.#answers.arrived(ts, resolve));
  }

  /** One listener's fault must neither keep the others from hearing nor end an isolate. */
  safely(listener: () => void): void {
    this.#tell([listener], undefined);
  }

  /** Lets everything go that waits for commits. */
  close(): void {
    this.#answers.close();
  }

  #end(ts: number): void {
    for (const listener of this.#ends) listener(ts);
    this.#answers.heard(ts);
  }

  #tell<Value>(listeners: readonly ((value: Value) => void)[], value: Value): void {
    for (const listener of listeners) {
      try {
        listener(value);
      } catch (error) {
        this.#log("error", "A listener of the isolates failed", { error });
      }
    }
  }
}
