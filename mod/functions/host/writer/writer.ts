/**
 * The main process's side of the writer isolate, used by `IsolateHost` on a server that writes its own database. It holds a
 * bounded fair queue, one batch in the writer, and the next batch, which is sent while that one is being committed. A group is
 * the part of a batch committed in one transaction. Guarantees: only one writer writes at a time, groups are published in ts
 * order before their answers, and a call commits at most once. A lost writer is started again, and its batch is settled from
 * the database.
 *
 *     idle --mutate--> at the end of this task --> batch out --last group--> idle
 *                                                  |  |   ^
 *                                                  |  |   +-- at once, if the next batch left during the commit
 *                                                  |  +--committing--> the next batch leaves
 *                                                  |
 *                                            writer lost --> restarting --ready--> settled, the rest runs again
 */
import type { CommitEntry } from "../../../engine/types.ts";
import type { Log } from "../../../kit/log.ts";
import type { AdaptiveSpinner } from "../../../kit/adaptive_spinner.ts";
import { functionLimits } from "../../../limits.ts";
import { isolateLimits } from "../../limits.ts";
import { frameTextOfJson } from "../../wire/segment_frames.ts";
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import { failed, type Outcome, outcomeUnknown } from "../../outcome.ts";
import type { Committing, Group, JournalConfirmed, JournalRestart } from "../../wire/messages.ts";
import { unpackEntries } from "../../wire/packed_entry.ts";
import { BatchesInFlight } from "./batches_in_flight.ts";
import { BatchSize } from "./batch_size.ts";
import type { Answered, MutationBatch } from "./mutation_batch.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateStarter, Ready, StartResult } from "../process/isolate.ts";
import type { MutationWriter, ReplaceResult } from "./mutation_writer.ts";
import { MutationQueue, type PendingMutation } from "./mutation_queue.ts";
import { callText, overloaded, stopping, tookTooLong } from "../outcomes.ts";
import { WriterRestarts } from "./writer_restarts.ts";
import type { RunObserver } from "../run_observer.ts";

/** Lower bound of the time limit to start or commit a group, as on a slow disk. After it the writer counts as stuck. */
const STORING_LIMIT_MS_MIN = 3 * functionLimits.mutationTimeoutMs;

export interface WriterOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  /** Time limit of a mutation. */
  readonly timeoutMs: number;
  /** Additional time to append a group's row to the log of a cluster. 0 if absent. */
  readonly logAppendMs?: number;
  /** Makes batch names unique over the life of the database. */
  readonly batchPrefix: string;
  /** Busy-waits for the answer to a single call. */
  readonly spinner?: Pick<AdaptiveSpinner, "waitStarted" | "waitEnded">;
  /** Called with each committed group in ts order, before its answers resolve. Must not throw. */
  readonly onGroup: (entries: readonly CommitEntry[], ts: number) => void;
  /** Called if the database has commits whose entries are lost. Must not throw. */
  readonly onGap: (ts: number) => void;
  /** Called for each group. Optional. */
  readonly observer?: Pick<RunObserver, "groupCommitted">;
}

export class Writer implements MutationWriter {
  readonly #options: WriterOptions;
  readonly #size = new BatchSize();
  readonly #queue = new MutationQueue(this.#size.costs);
  readonly #inFlight: BatchesInFlight;
  readonly #restarts: WriterRestarts;
  /** The current writer. `null` before the start, and from a loss to its replacement. */
  #isolate: Isolate | null = null;
  /** `scheduled`: a step runs at the end of this task. `batch`: a batch is out or unresolved. `replacing`: see `replace`. */
  #state: "idle" | "scheduled" | "batch" | "replacing" = "idle";
  /** Set while `replace` waits or runs. */
  #replacement: { readonly run: () => Promise<void>; readonly refuse: () => void } | null = null;
  /** Set while a batch is in a living writer. Not cancelled afterwards, because the next batch usually follows soon. */
  #watchTimer: Timer | null = null;
  /** Called when no batch is out any more. Set by `close`. */
  #onIdle: (() => void) | null = null;
  #closing = false;
  /** ts of the newest group. */
  #ts = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#inFlight = new BatchesInFlight(options.batchPrefix);
    this.#restarts = new WriterRestarts(options);
  }

  /** Starts the first writer, which applies the app's schema. Throws if that fails. */
  async start(): Promise<Ready> {
    const started = await this.#options.starter.start("writer");
    if (!started.ok) throw Object.assign(new Error(started.message), started.code && { code: started.code });
    this.#ts = started.isolate.ready.ts;
    this.#install(started.isolate);
    return started.isolate.ready;
  }

  /** Mutations not yet sent to a writer. */
  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * Runs a mutation in fair order, after the earlier ones of its caller. Never rejects. A full queue answers this call, or the
   * newest of a far heavier caller, with `overloaded`. A call may run again after its writer was lost, but commits at most
   * once. The answer of a committed call resolves after `onGroup`, unless its answer was lost with the writer.
   */
  mutate(call: MutationCall): Promise<MutationAnswer> {
    const { promise, resolve } = Promise.withResolvers<MutationAnswer>();
    const refuse = (outcome: Outcome) => resolve({ outcome, ts: this.#ts, replayed: false });
    if (this.#closing) {
      refuse(stopping());
      return promise;
    }
    let text: string;
    try {
      text = callText(call);
    } catch (error) {
      refuse(failed("args", `The arguments are not JSON: ${error instanceof Error ? error.message : error}`));
      return promise;
    }
    const queuedAt = this.#options.clock.now();
    const recordsFailure = call.replay !== undefined && call.failedWith === undefined;
    const pending: PendingMutation = {
      text,
      caller: call.caller?.queueKey ?? "",
      work: call.work ?? call.udfPath,
      queuedAt,
      resolve,
      recordsFailure,
      failure: null,
      runsLost: 0,
      abandoned: false,
    };
    const refused = this.#queue.push(pending);
    if (refused !== null) this.#answer([refused], overloaded(`${this.#queue.size} mutations are waiting`));
    this.#next();
    return promise;
  }

  /**
   * Replaces the writer by one with new code, between two batches. `before` runs before `start` starts the new one, which
   * migrates the database. `meanwhile` runs after that, while the old one ends. No mutation is committed from `before` until
   * `meanwhile` has settled. If the new writer cannot be started, the old one continues. Returns `busy` if another replacement
   * is pending or the server is stopping. Rejects with the error of a callback that rejects. The old writer then continues if
   * `before` or `start` rejected. If `meanwhile` rejected, the new one serves.
   */
  replace(
    meanwhile: (ready: Ready) => Promise<void>,
    { before = () => Promise.resolve(), start = () => this.#options.starter.start("writer") }: {
      readonly before?: () => Promise<void>;
      readonly start?: () => Promise<StartResult>;
    } = {},
  ): Promise<ReplaceResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ReplaceResult>();
    const refuse = () =>
      resolve({
        ok: false,
        busy: true,
        message: this.#closing ? "The server is stopping" : "The app is being loaded already",
      });
    if (this.#closing || this.#replacement !== null) {
      refuse();
      return promise;
    }
    const run = async () => {
      try {
        await before();
        const started = await start();
        if (started.ok) await this.#exchange(started.isolate, meanwhile);
        resolve(started.ok ? { ok: true } : { ok: false, message: started.message });
      } catch (error) {
        reject(error);
      }
    };
    this.#replacement = { run, refuse };
    this.#next();
    return promise;
  }

  /** Closes the old writer and installs the new one, even if `meanwhile` rejects: the database is migrated already. */
  async #exchange(isolate: Isolate, meanwhile: (ready: Ready) => Promise<void>): Promise<void> {
    const old = this.#isolate;
    this.#isolate = null;
    this.#noteVersionCommit(isolate.ready);
    // The old writer has nothing left to do, and ends while the readers follow.
    const [, followed] = await Promise.allSettled([old?.close(), meanwhile(isolate.ready)]);
    this.#install(isolate);
    if (followed.status === "rejected") throw followed.reason;
  }

  /** A new writer's own commit contains no documents, only the switch of the served version. */
  #noteVersionCommit({ ts, switchedVersion = false }: Ready): void {
    if (!switchedVersion) return;
    this.#ts = ts;
    this.#options.onGap(ts);
  }

  /** Forwards confirmations of journal rows. Ignored while there is no writer. */
  updateJournal(message: JournalConfirmed | JournalRestart): void {
    this.#isolate?.send(message);
  }

  /**
   * Answers waiting calls with `stopping`, waits up to `timeoutMs` for the batches in the writer, and ends it. Calls that are
   * still unanswered then get an unknown outcome, and those that the writer returned get `stopping`.
   */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#state !== "replacing") {
      this.#replacement?.refuse();
      this.#replacement = null;
    }
    this.#answer(this.#queue.takeOlder(), stopping());
    this.#restarts.close();
    if (this.#inFlight.current !== null && this.#isolate !== null) {
      await new Promise<void>((resolve) => {
        const timer = this.#options.clock.after(this.#options.timeoutMs, resolve);
        this.#onIdle = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    this.#watchTimer?.cancel();
    const isolate = this.#isolate;
    this.#isolate = null;
    await isolate?.close();
    this.#answer(
      this.#inFlight.unanswered,
      outcomeUnknown("The server stopped before the mutation was answered"),
    );
    this.#answer(this.#queue.takeOlder(), stopping());
  }

  #install(isolate: Isolate): void {
    if (this.#closing) {
      isolate.kill();
      return;
    }
    this.#isolate = isolate;
    isolate.receive(({ message, segments }) => {
      if (message.type === "Committing") return this.#sendAhead(message);
      if (message.type !== "Group") throw new TypeError(`A writer does not send ${message.type}`);
      this.#options.spinner?.waitEnded();
      const answered = this.#apply(message, segments);
      // Calls that the writer returned from a long batch are queued again.
      if (message.ends === true) this.#queue.requeue(this.#inFlight.current?.cut() ?? []);
      // Sends the next batch before the answers, so that the writer works while this process sends them.
      const batch = this.#inFlight.current;
      if (batch?.done) this.#batchDone(batch);
      for (const { call, answer } of answered) call.resolve(answer);
    });
    isolate.ended.then((death) => this.#onEnded(isolate, death));
    this.#settle(isolate.ready);
    this.#next();
  }

  /** Schedules the next possible step for the end of this task. */
  #next(): void {
    if (this.#state !== "idle" || this.#inFlight.current !== null || this.#closing) return;
    // Otherwise there could be two writers.
    if (this.#restarts.isStarting) return;
    if (this.#replacement === null && (this.#isolate === null || this.#queue.size === 0)) return;
    this.#state = "scheduled";
    // At the end of the current task, so that calls arriving together share a batch. No timer, so that a single call is not
    // delayed.
    queueMicrotask(() => this.#runStep());
  }

  #runStep(): void {
    if (this.#restarts.isStarting) this.#state = "idle";
    else if (this.#replacement !== null) void this.#runReplacement(this.#replacement.run);
    else this.#sendBatch();
  }

  async #runReplacement(replacement: () => Promise<void>): Promise<void> {
    this.#state = "replacing";
    await replacement();
    this.#replacement = null;
    this.#becomeIdle();
    if (this.#isolate === null) await this.#restart();
  }

  #becomeIdle(): void {
    if (this.#state === "scheduled") return;
    this.#state = "idle";
    this.#next();
  }

  #sendBatch(): void {
    this.#state = "batch";
    const batch = this.#send();
    // The writer was lost in the meantime, or the host is closing.
    if (batch === null) return this.#becomeIdle();
    this.#begin(batch);
    this.#watchLater();
  }

  /** Sends the next batch, of about the same size, during the commit, so that callers return in two alternating groups. */
  #sendAhead({ batch }: Committing): void {
    const committing = this.#inFlight.checkCommitting(batch);
    if (!this.#closing && this.#replacement === null) {
      const onTheWay = committing.calls.length + this.#queue.size;
      this.#inFlight.sentAhead(this.#send(Math.ceil(onTheWay / 2)));
    }
  }

  /** Sends a batch of up to `callsMax` waiting calls, if there is a writer. */
  #send(callsMax: number = isolateLimits.batchCallsMax): MutationBatch | null {
    const isolate = this.#isolate;
    if (isolate === null) return null;
    const calls = this.#queue.take(Math.max(1, Math.min(callsMax, this.#size.callsMax)));
    if (calls.length === 0) return null;
    const batch = this.#inFlight.create(calls);
    isolate.sendText(frameTextOfJson(batch.text));
    return batch;
  }

  #begin(batch: MutationBatch): void {
    this.#inFlight.begin(batch, this.#options.clock.now());
    if (batch.calls.length === 1) this.#options.spinner?.waitStarted();
  }

  /** Publishes a group's commits and returns the answers of its calls. Throws for an unexpected group. */
  #apply(group: Group, segments: readonly string[]): Answered[] {
    const batch = this.#inFlight.current;
    if (batch === null) throw new RangeError(`Group ${group.batch}/${group.from} was not awaited`);
    // Decoded before any call counts as answered: a malformed group is rejected as a whole.
    const entries = unpackEntries(group);
    const answered = batch.accept(group, segments);
    this.#size.ran(answered);
    this.#ts = group.ts;
    this.#options.observer?.groupCommitted?.(answered.length);
    this.#options.onGroup(entries, group.ts);
    return answered;
  }

  #batchDone(batch: MutationBatch): void {
    this.#size.ended(batch, this.#options.clock.now());
    const next = this.#inFlight.end();
    if (next !== null) return this.#begin(next);
    this.#onIdle?.();
    this.#becomeIdle();
  }

  #watchLater(): void {
    this.#watchTimer ??= this.#options.clock.after(isolateLimits.watchIntervalMs, () => this.#watch());
  }

  /** Kills a writer whose call or group exceeds its time limit. A running call is then blamed. */
  #watch(): void {
    this.#watchTimer = null;
    const batch = this.#inFlight.current;
    const isolate = this.#isolate;
    if (batch === null || isolate === null) return;
    const { position, storing, forMs } = batch.begun.watch.update(
      isolate.progress(),
      this.#options.clock.now(),
    );
    const { timeoutMs, logAppendMs = 0 } = this.#options;
    const storingMs = Math.max(STORING_LIMIT_MS_MIN, 3 * timeoutMs) + logAppendMs;
    if (forMs <= (storing ? storingMs : timeoutMs)) return this.#watchLater();
    // `null`: no call is running. The group is stuck in the database, or leftovers of an earlier call block the writer, and no
    // call is at fault.
    if (position !== null) {
      batch.verdict = { position, outcome: tookTooLong("mutation", timeoutMs) };
      this.#size.costs.took(batch.calls[position]?.work ?? "", forMs);
    }
    isolate.kill();
  }

  #onEnded(isolate: Isolate, death: Death): void {
    if (isolate !== this.#isolate) return;
    this.#isolate = null;
    this.#watchTimer?.cancel();
    this.#watchTimer = null;
    this.#options.spinner?.waitEnded();
    this.#inFlight.lost(death);
    this.#options.log("warn", "The writer ended", { cause: death.cause, detail: death.detail });
    if (this.#closing) this.#onIdle?.();
    else if (this.#state !== "replacing") void this.#restart();
  }

  async #restart(): Promise<void> {
    const isNeeded = () => this.#isolate === null && this.#state !== "replacing";
    for (;;) {
      const started = await this.#restarts.start(isNeeded);
      if (started === null) return;
      if (started.ok) return this.#install(started.isolate);
      this.#failOld(started.message);
      this.#becomeIdle();
    }
  }

  /** Answers calls that have waited too long for a writer. */
  #failOld(message: string): void {
    const since = this.#options.clock.now() - isolateLimits.startMs;
    const reason = failed("internal", `The app cannot be started: ${message}`, { retryable: true });
    this.#answer(this.#queue.takeOlder(since), reason);
    const unknown = outcomeUnknown(`It is not known whether the mutation was committed: ${message}`);
    const old = this.#inFlight.unanswered.filter(({ queuedAt }) => queuedAt < since);
    for (const call of old) call.abandoned = true;
    this.#answer(old, unknown);
  }

  /** Determines the outcome of a lost writer's batch from what its replacement found in the database. */
  #settle({ lastGroup, ts }: Ready): void {
    const settled = this.#inFlight.settle(lastGroup, {
      publish: (group, segments) => {
        for (const { call, answer } of this.#apply(group, segments)) call.resolve(answer);
      },
      onLostAnswers: (calls) => {
        this.#answer(calls, outcomeUnknown("The mutation was committed, but its answer was lost"));
        this.#options.onGap(ts);
      },
      onUnreadable: (error, calls) => {
        this.#options.log("error", "The last group in the database cannot be read", { error });
        this.#answer(calls, outcomeUnknown("It is not known whether the mutation was committed"));
      },
    });
    if (settled !== null) {
      if (settled.blamed !== null) this.#answer([settled.blamed.call], settled.blamed.outcome);
      this.#queue.requeue(settled.again);
      this.#becomeIdle();
    }
    if (ts === this.#ts) return;
    this.#options.log("error", "The database is ahead of the published commits", {
      from: this.#ts,
      to: ts,
    });
    this.#ts = ts;
    this.#options.onGap(ts);
  }

  #answer(calls: readonly PendingMutation[], outcome: Outcome): void {
    for (const call of calls) call.resolve({ outcome, ts: this.#ts, replayed: false });
  }
}
