/**
 * Main's side of the writer: a fair queue, one batch in the writer, and the next one sent while that is being committed. Starts a
 * new writer when one is lost.
 *
 *     idle --mutate--> at the end of this turn --> batch out --last group--> idle
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

/** Time to start or commit a group, as on a slow disk, before the writer counts as stuck. */
const STORING_MS_MAX = 3 * functionLimits.mutationTimeoutMs;

export interface WriterOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  /** Time limit of a mutation. */
  readonly timeoutMs: number;
  /** Time to store a group's row in the log of a cluster. 0 if absent. */
  readonly storesMs?: number;
  /** Makes batch names unique over the life of the database. */
  readonly batchPrefix: string;
  /** Busy-waits for the answer to a single call. */
  readonly awake?: Pick<AdaptiveSpinner, "waitStarted" | "waitEnded">;
  /** Called with each committed group before its answers resolve. Must not throw. */
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
  /** `asked`: a step is scheduled for the end of this tick. `batch`: a batch is out or unresolved. `replacing`: see `replace`. */
  #turn: "none" | "asked" | "batch" | "replacing" = "none";
  /** Set while `replace` waits or runs. */
  #replacement: (() => Promise<void>) | null = null;
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
    if (!started.ok) throw new Error(started.message);
    this.#ts = started.isolate.ready.ts;
    this.#install(started.isolate);
    return started.isolate.ready;
  }

  /** Mutations not yet sent to a writer. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Runs a mutation in fair order, after the earlier ones of its caller. Never rejects. */
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
      caller: call.caller?.turn ?? "",
      work: call.work ?? call.udfPath,
      queuedAt,
      resolve,
      recordsFailure,
      failure: null,
      runsLost: 0,
      givenUp: false,
    };
    const refused = this.#queue.push(pending);
    if (refused !== null) this.#answer([refused], overloaded(`${this.#queue.size} mutations are waiting`));
    this.#next();
    return promise;
  }

  /**
   * Replaces the writer by one with new code, between two batches. `before` runs before the new one migrates the database,
   * `meanwhile` after that. Nothing is committed until it has ended. The old writer continues if the new one cannot be
   * started. `start` starts the new one.
   */
  replace(
    meanwhile: (ready: Ready) => Promise<void>,
    { before = () => Promise.resolve(), start = () => this.#options.starter.start("writer") }: {
      readonly before?: () => Promise<void>;
      readonly start?: () => Promise<StartResult>;
    } = {},
  ): Promise<ReplaceResult> {
    const { promise, resolve } = Promise.withResolvers<ReplaceResult>();
    if (this.#closing || this.#replacement !== null) {
      resolve({
        ok: false,
        busy: true,
        message: this.#closing ? "The server is stopping" : "The app is being loaded already",
      });
      return promise;
    }
    this.#replacement = async () => {
      await before();
      const started = await start();
      if (started.ok) {
        const old = this.#isolate;
        this.#isolate = null;
        this.#begun(started.isolate.ready);
        // It has nothing left to do, and ends while the readers follow.
        await Promise.all([old?.close(), meanwhile(started.isolate.ready)]);
        this.#install(started.isolate);
      }
      resolve(started.ok ? { ok: true } : { ok: false, message: started.message });
    };
    this.#next();
    return promise;
  }

  /** A new writer's own commit contains no documents, only the switch of the served version. */
  #begun({ ts, named = false }: Ready): void {
    if (!named) return;
    this.#ts = ts;
    this.#options.onGap(ts);
  }

  /** Forwards confirmations of journal rows. Ignored while there is no writer. */
  updateJournal(message: JournalConfirmed | JournalRestart): void {
    this.#isolate?.send(message);
  }

  /** Rejects waiting calls, lets the current batch end for a bounded time, and ends the writer. */
  async close(): Promise<void> {
    this.#closing = true;
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
      this.#options.awake?.waitEnded();
      const answered = this.#apply(message, segments);
      // Calls that the writer returned from a long batch are queued again.
      if (message.ends === true) this.#queue.requeue(this.#inFlight.current?.cut() ?? []);
      // Sends the next batch before the answers, so that the writer works while main sends them.
      const batch = this.#inFlight.current;
      if (batch?.done) this.#batchDone(batch);
      for (const { call, answer } of answered) call.resolve(answer);
    });
    isolate.ended.then((death) => this.#onEnded(isolate, death));
    this.#settle(isolate.ready);
    this.#next();
  }

  /** Takes the next possible step within this tick. */
  #next(): void {
    if (this.#turn !== "none" || this.#inFlight.current !== null || this.#closing) return;
    // Otherwise there could be two writers.
    if (this.#restarts.isStarting) return;
    if (this.#replacement === null && (this.#isolate === null || this.#queue.size === 0)) return;
    this.#turn = "asked";
    // At the end of the current task, so that calls arriving together share a batch. No timer, so that a single call is not
    // delayed.
    queueMicrotask(() => this.#takeTurn());
  }

  #takeTurn(): void {
    if (this.#restarts.isStarting) this.#turn = "none";
    else if (this.#replacement !== null) void this.#runReplacement(this.#replacement);
    else this.#sendBatch();
  }

  async #runReplacement(replacement: () => Promise<void>): Promise<void> {
    this.#turn = "replacing";
    await replacement();
    this.#replacement = null;
    this.#endTurn();
    if (this.#isolate === null) await this.#restart();
  }

  #endTurn(): void {
    if (this.#turn === "asked") return;
    this.#turn = "none";
    this.#next();
  }

  #sendBatch(): void {
    this.#turn = "batch";
    const batch = this.#send();
    // The writer was lost in the meantime, or the host is closing.
    if (batch === null) return this.#endTurn();
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
    if (batch.calls.length === 1) this.#options.awake?.waitStarted();
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
    this.#endTurn();
  }

  #watchLater(): void {
    this.#watchTimer ??= this.#options.clock.after(isolateLimits.watchIntervalMs, () => this.#watch());
  }

  #watch(): void {
    this.#watchTimer = null;
    const batch = this.#inFlight.current;
    const isolate = this.#isolate;
    if (batch === null || isolate === null) return;
    const { position, storing, forMs } = batch.begun.watch.look(
      isolate.progress(),
      this.#options.clock.now(),
    );
    const { timeoutMs, storesMs = 0 } = this.#options;
    const storingMs = Math.max(STORING_MS_MAX, 3 * timeoutMs) + storesMs;
    // Neither running a call nor committing: an earlier call's leftovers block the writer.
    if (forMs <= (storing ? storingMs : timeoutMs)) return this.#watchLater();
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
    this.#options.awake?.waitEnded();
    this.#inFlight.lost(death);
    this.#options.log("warn", "The writer ended", { cause: death.cause, detail: death.detail });
    if (this.#closing) this.#onIdle?.();
    else if (this.#turn !== "replacing") void this.#restart();
  }

  async #restart(): Promise<void> {
    const isNeeded = () => this.#isolate === null && this.#turn !== "replacing";
    for (;;) {
      const started = await this.#restarts.start(isNeeded);
      if (started === null) return;
      if (started.ok) return this.#install(started.isolate);
      this.#giveUpOld(started.message);
      this.#endTurn();
    }
  }

  /** Answers calls that have waited too long for a writer. */
  #giveUpOld(message: string): void {
    const since = this.#options.clock.now() - isolateLimits.startMs;
    const reason = failed("internal", `The app cannot be started: ${message}`, { retryable: true });
    this.#answer(this.#queue.takeOlder(since), reason);
    const unknown = outcomeUnknown(`It is not known whether the mutation was committed: ${message}`);
    const old = this.#inFlight.unanswered.filter(({ queuedAt }) => queuedAt < since);
    for (const call of old) call.givenUp = true;
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
      this.#endTurn();
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
