/** How far the commits are that main knows of, and who is told of them. */
import type { CommitEntry } from "../../engine/types.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { FollowedGroup, SkipGroup } from "../host_port.ts";
import { Arrivals } from "./readers/arrivals.ts";

interface CommitListener {
  readonly tell: (entries: readonly CommitEntry[]) => void;
  readonly passes: SkipGroup;
}

const passesNone: SkipGroup = () => false;

export class CommitNews {
  readonly #log: Log;
  readonly #commits: CommitListener[] = [];
  readonly #groups: (() => void)[] = [];
  readonly #reloads: (() => void)[] = [];
  readonly #ends: ((ts: number) => void)[] = [];
  readonly #awaits: (() => void)[] = [];
  /** Answers that show newer commits than were told of here. */
  readonly #answers: Arrivals;
  #ts = 0;
  #count = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#log = log;
    this.#answers = new Arrivals(clock, 0);
  }

  /** ts of the newest commit. Advanced with each group, before anybody is told of it. */
  get ts(): number {
    return this.#ts;
  }

  /** How many commits were told of. */
  get count(): number {
    return this.#count;
  }

  /** `passes`: see `FunctionHost.onCommits`. */
  onCommits(tell: CommitListener["tell"], passes = passesNone): void {
    this.#commits.push({ tell, passes });
  }

  /** Called after each group, also one that changed nothing but replay records. */
  onGroup(listener: () => void): void {
    this.#groups.push(listener);
  }

  /** Called when the code is another one, or commits may have been missed. */
  onReload(listener: () => void): void {
    this.#reloads.push(listener);
  }

  /** Called when an answer waits for a commit that was not told of here yet. */
  onAwaited(listener: () => void): void {
    this.#awaits.push(listener);
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
    this.#count += entries.length;
    if (entries.length > 0) this.#tellCommits(this.#commits, entries);
    this.#tell(this.#groups, undefined);
    this.#end(ts);
  }

  /** Commits of another server were applied. They are made when there is somebody who does not let them pass. */
  followed(group: FollowedGroup): void {
    this.#ts = group.ts;
    this.#count += group.count;
    const concerned = group.count === 0
      ? []
      : this.#commits.filter((listener) => !this.#passes(listener, group));
    if (concerned.length > 0) this.#tellMade(group, concerned);
    this.#tell(this.#groups, undefined);
    this.#end(group.ts);
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
    if (ts <= this.#ts) return;
    this.#tell(this.#awaits, undefined);
    await new Promise<void>((resolve) => this.#answers.arrived(ts, resolve));
  }

  /** One listener's fault must neither keep the others from hearing nor end an isolate. */
  safely(listener: () => void): void {
    this.#safely(listener, undefined);
  }

  /** Lets everything go that waits for commits. */
  close(): void {
    this.#answers.close();
  }

  #passes({ passes }: CommitListener, group: FollowedGroup): boolean {
    try {
      return passes(group);
    } catch (error) {
      this.#log("error", "A listener of the isolates failed", { error });
      return false;
    }
  }

  #tellMade(group: FollowedGroup, concerned: readonly CommitListener[]): void {
    let entries: readonly CommitEntry[];
    try {
      entries = group.entries();
    } catch (error) {
      this.#log("error", "The commits of applied rows could not be told", { error });
      return this.reloaded();
    }
    this.#tellCommits(concerned, entries);
  }

  #tellCommits(listeners: readonly CommitListener[], entries: readonly CommitEntry[]): void {
    for (const { tell } of listeners) this.#safely(tell, entries);
  }

  #end(ts: number): void {
    for (const listener of this.#ends) listener(ts);
    this.#answers.heard(ts);
  }

  #tell<Value>(listeners: readonly ((value: Value) => void)[], value: Value): void {
    for (const listener of listeners) this.#safely(listener, value);
  }

  #safely<Value>(listener: (value: Value) => void, value: Value): void {
    try {
      listener(value);
    } catch (error) {
      this.#log("error", "A listener of the isolates failed", { error });
    }
  }
}
