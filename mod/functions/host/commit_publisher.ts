/** Publishes commits to listeners, and tracks the newest ts. */
import type { CommitEntry } from "../../engine/types.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { FollowedGroup, SkipGroup } from "../host_port.ts";
import { ReadBarrier } from "./readers/read_barrier.ts";

interface CommitListener {
  readonly receive: (entries: readonly CommitEntry[]) => void;
  readonly skip: SkipGroup;
}

const skipNone: SkipGroup = () => false;

export class CommitPublisher {
  readonly #log: Log;
  readonly #commits: CommitListener[] = [];
  readonly #groups: (() => void)[] = [];
  readonly #reloads: (() => void)[] = [];
  readonly #ends: ((ts: number) => void)[] = [];
  readonly #answers: ReadBarrier;
  #ts = 0;
  #count = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#log = log;
    this.#answers = new ReadBarrier(clock, 0);
  }

  /** ts of the newest commit. Advanced with each group before listeners are called. */
  get ts(): number {
    return this.#ts;
  }

  get count(): number {
    return this.#count;
  }

  /** `skip`: see `FunctionHost.onCommits`. */
  onCommits(receive: CommitListener["receive"], skip = skipNone): void {
    this.#commits.push({ receive, skip });
  }

  /** Registers a listener for groups, including those that only changed replay records. */
  onGroup(listener: () => void): void {
    this.#groups.push(listener);
  }

  /** Registers a listener, called when the code changed or commits may have been missed. */
  onReload(listener: () => void): void {
    this.#reloads.push(listener);
  }

  /** Registers the last listener, called after all others with the ts they have processed. Must not throw. */
  onPublished(listener: (ts: number) => void): void {
    this.#ends.push(listener);
  }

  /** Sets the ts without publishing commits. */
  begin(ts: number): void {
    this.#ts = ts;
    this.#end(ts);
  }

  /** Publishes a committed group. `entries` may be empty. */
  group(entries: readonly CommitEntry[], ts: number): void {
    this.#ts = ts;
    this.#count += entries.length;
    if (entries.length > 0) this.#send(this.#commits, entries);
    this.#notify(this.#groups, undefined);
    this.#end(ts);
  }

  /** Publishes applied commits of another server. Decodes them only if a listener needs them. */
  followed(group: FollowedGroup): void {
    this.#ts = group.ts;
    this.#count += group.count;
    const concerned = group.count === 0
      ? []
      : this.#commits.filter((listener) => !this.#skips(listener, group));
    if (concerned.length > 0) this.#decode(group, concerned);
    this.#notify(this.#groups, undefined);
    this.#end(group.ts);
  }

  /** Handles commits up to this one whose entries are lost. */
  gap(ts: number): void {
    this.#ts = ts;
    this.reloaded();
    this.#end(ts);
  }

  /** Notifies listeners that cached data may be outdated. */
  reloaded(): void {
    this.#notify(this.#reloads, undefined);
  }

  /** Resolves when commits up to `ts` were published, or after a bounded time. */
  async published(ts: number): Promise<void> {
    if (ts <= this.#ts) return;
    await new Promise<void>((resolve) => this.#answers.arrived(ts, resolve));
  }

  /** Releases everything that waits for commits. */
  close(): void {
    this.#answers.close();
  }

  #skips({ skip }: CommitListener, group: FollowedGroup): boolean {
    try {
      return skip(group);
    } catch (error) {
      this.#log("error", "A commit listener failed", { error });
      return false;
    }
  }

  #decode(group: FollowedGroup, concerned: readonly CommitListener[]): void {
    let entries: readonly CommitEntry[];
    try {
      entries = group.entries();
    } catch (error) {
      this.#log("error", "Cannot publish the commits of applied rows", { error });
      return this.reloaded();
    }
    this.#send(concerned, entries);
  }

  #send(listeners: readonly CommitListener[], entries: readonly CommitEntry[]): void {
    for (const { receive } of listeners) this.#safely(receive, entries);
  }

  #end(ts: number): void {
    for (const listener of this.#ends) listener(ts);
    this.#answers.published(ts);
  }

  #notify<Value>(listeners: readonly ((value: Value) => void)[], value: Value): void {
    for (const listener of listeners) this.#safely(listener, value);
  }

  /** A failing listener affects neither other listeners nor the isolate. */
  #safely<Value>(listener: (value: Value) => void, value: Value): void {
    try {
      listener(value);
    } catch (error) {
      this.#log("error", "A commit listener failed", { error });
    }
  }
}
