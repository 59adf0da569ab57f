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
import { frameTextOfJson, parseFrameText } from "../../wire/segment_frames.ts";
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import { failed, type Outcome, outcomeUnknown } from "../../outcome.ts";
import type { Committing, Group, JournalConfirmed, JournalRestart } from "../../wire/messages.ts";
import { unpackEntries } from "../../wire/packed_entry.ts";
import { type Answered, MutationBatch } from "./mutation_batch.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateStarter, Ready, StartResult } from "../process/isolate.ts";
import { Costs } from "../costs.ts";
import type { MutationWriter, ReplaceResult } from "./mutation_writer.ts";
import { MutationQueue, type PendingMutation } from "./mutation_queue.ts";
import { callText, overloaded, stopping, tookTooLong } from "../outcomes.ts";
import { Restarts } from "../process/restarts.ts";
import type { RunObserver } from "../run_observer.ts";

/** Time to start or commit a group, as on a slow disk, before the writer counts as stuck. */
const STORING_MS_MAX = 3 * functionLimits.mutationTimeoutMs;
/** Weight of the newest batch in the mean duration of a call. */
const NEWEST_WEIGHT = 0.25;

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
  readonly #costs = new Costs();
  readonly #queue = new MutationQueue(this.#costs);
  readonly #restarts = new Restarts();
  /** The current writer. `null` before the start, and from a loss to its replacement. */
  #isolate: Isolate | null = null;
  /** The batch in the writer, until its last answer. Survives the loss of the writer. */
  #out: MutationBatch | null = null;
  /** Sent while the last group of `#out` is being committed, to become `#out`. */
  #ahead: MutationBatch | null = null;
  /** How the writer of `#out` was lost, until its replacement reports the outcome. */
  #loss: Death | null = null;
  /** `asked`: a step is scheduled for the end of this tick. `held`: a batch is out, unresolved, or the writer is being replaced. */
  #turn: "none" | "asked" | "held" = "none";
  /** Set while `replace` runs. */
  #replacement: (() => Promise<void>) | null = null;
  /** Whether `#replacement` is active and manages the writer itself. */
  #replacing = false;
  /** Set while a batch is in a living writer. Not cancelled afterwards, because the next batch usually follows soon. */
  #watchTimer: Timer | null = null;
  /** Skips the delay before a restart. Set during the delay. */
  #endPause: (() => void) | null = null;
  #restarting = false;
  /** Called when no batch is out any more. Set by `close`. */
  #onIdle: (() => void) | null = null;
  #closing = false;
  #batches = 0;
  /** ts of the newest group. */
  #ts = 0;
  /** Mean duration of a call, including its share of the commit. Determines the size of the next batch. */
  #callMs = isolateLimits.batchSliceMs / isolateLimits.batchCallsMax;

  constructor(options: WriterOptions) {
    this.#options = options;
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
    this.#endPause?.();
    if (this.#out !== null && this.#isolate !== null) {
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
    this.#answer(this.#unanswered, outcomeUnknown("The server stopped before the mutation was answered"));
  }

  /** Calls that were sent and not answered, in order. */
  get #unanswered(): readonly PendingMutation[] {
    return [...this.#out?.unanswered ?? [], ...this.#ahead?.unanswered ?? []];
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
      if (message.ends === true) this.#queue.putBack(this.#out?.cut() ?? []);
      // Sends the next batch before the answers, so that the writer works while main sends them.
      if (this.#out?.done) this.#batchDone(this.#out);
      for (const { call, answer } of answered) call.resolve(answer);
    });
    isolate.ended.then((death) => this.#onEnded(isolate, death));
    this.#settle(isolate.ready);
    this.#next();
  }

  /** Takes the next possible step within this tick. */
  #next(): void {
    if (this.#turn !== "none" || this.#out !== null || this.#closing) return;
    if (this.#replacement === null && (this.#isolate === null || this.#queue.size === 0)) return;
    this.#turn = "asked";
    // At the end of the current task, so that calls arriving together share a batch. No timer, so that a single call is not
    // delayed.
    queueMicrotask(() => this.#takeTurn());
  }

  #takeTurn(): void {
    this.#turn = "held";
    if (this.#replacement !== null) this.#runReplacement(this.#replacement);
    else this.#sendBatch();
  }

  async #runReplacement(replacement: () => Promise<void>): Promise<void> {
    this.#replacing = true;
    await replacement();
    this.#replacing = false;
    this.#replacement = null;
    this.#endTurn();
    if (this.#isolate === null) await this.#restart();
  }

  #endTurn(): void {
    if (this.#turn !== "held") return;
    this.#turn = "none";
    this.#next();
  }

  #sendBatch(): void {
    const batch = this.#send();
    // The writer was lost in the meantime, or the host is closing.
    if (batch === null) return this.#endTurn();
    this.#begin(batch);
    this.#watchLater();
  }

  /**
   * Sends the next batch while the writer commits. It is about as large as the one being committed: callers that wait for
   * answers then return in two alternating groups, and the writer always has one of them.
   */
  #sendAhead({ batch }: Committing): void {
    if (this.#out?.id !== batch || this.#ahead !== null) {
      throw new RangeError(`No commit of ${batch} was awaited`);
    }
    if (!this.#closing && this.#replacement === null) {
      const onTheWay = this.#out.calls.length + this.#queue.size;
      this.#ahead = this.#send(Math.ceil(onTheWay / 2));
    }
  }

  /** Sends a batch of up to `callsMax` waiting calls, if there is a writer. */
  #send(callsMax: number = isolateLimits.batchCallsMax): MutationBatch | null {
    const isolate = this.#isolate;
    if (isolate === null) return null;
    const fitting = Math.floor(isolateLimits.batchSliceMs / this.#callMs);
    const calls = this.#queue.take(Math.max(1, Math.min(isolateLimits.batchCallsMax, callsMax, fitting)));
    if (calls.length === 0) return null;
    const batch = new MutationBatch(`${this.#options.batchPrefix}-${++this.#batches}`, calls);
    isolate.sendText(frameTextOfJson(batch.text));
    return batch;
  }

  #begin(batch: MutationBatch): void {
    batch.begin(this.#options.clock.now());
    this.#out = batch;
    if (batch.calls.length === 1) this.#options.awake?.waitStarted();
  }

  /** Publishes a group's commits and returns the answers of its calls. Throws for an unexpected group. */
  #apply(group: Group, segments: readonly string[]): Answered[] {
    if (this.#out === null) throw new RangeError(`Group ${group.batch}/${group.from} was not awaited`);
    // Decoded before any call counts as answered: a malformed group is rejected as a whole.
    const entries = unpackEntries(group);
    const answered = this.#out.accept(group, segments);
    this.#noteCosts(answered);
    this.#ts = group.ts;
    this.#options.observer?.groupCommitted?.(answered.length);
    this.#options.onGroup(entries, group.ts);
    return answered;
  }

  #noteCosts(answered: readonly Answered[]): void {
    for (const { call: { work }, answer: { replayed, run } } of answered) {
      // A recorded answer says nothing about the function's cost.
      if (!replayed && run !== undefined) this.#costs.took(work, run.durationMs);
    }
  }

  #batchDone(batch: MutationBatch): void {
    const ms = (this.#options.clock.now() - batch.begun.at) / Math.max(1, batch.answered);
    const [first] = batch.calls;
    // A slow call that ran alone says nothing about others.
    const usual = batch.answered > 1 || this.#costs.of(first?.work ?? "") < isolateLimits.batchSliceMs;
    if (usual) this.#callMs += (Math.min(ms, isolateLimits.batchSliceMs) - this.#callMs) * NEWEST_WEIGHT;
    this.#out = null;
    if (this.#ahead !== null) {
      this.#begin(this.#ahead);
      this.#ahead = null;
      return;
    }
    this.#onIdle?.();
    this.#endTurn();
  }

  #watchLater(): void {
    this.#watchTimer ??= this.#options.clock.after(isolateLimits.watchIntervalMs, () => this.#watch());
  }

  #watch(): void {
    this.#watchTimer = null;
    const batch = this.#out;
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
      this.#costs.took(batch.calls[position]?.work ?? "", forMs);
    }
    isolate.kill();
  }

  #onEnded(isolate: Isolate, death: Death): void {
    if (isolate !== this.#isolate) return;
    this.#isolate = null;
    this.#watchTimer?.cancel();
    this.#watchTimer = null;
    this.#options.awake?.waitEnded();
    this.#loss = death;
    this.#options.log("warn", "The writer ended", { cause: death.cause, detail: death.detail });
    if (this.#closing) this.#onIdle?.();
    else if (!this.#replacing) this.#restart();
  }

  async #restart(): Promise<void> {
    if (this.#restarting) return;
    this.#restarting = true;
    try {
      await this.#startAgain();
    } finally {
      this.#restarting = false;
    }
  }

  async #startAgain(): Promise<void> {
    for (let failures = 0; !this.#closing && this.#isolate === null; failures++) {
      const pauseMs = this.#restarts.pauseMs(this.#options.clock.now(), failures);
      if (pauseMs > 0) await this.#pause(pauseMs);
      if (this.#closing) return;
      const started = await this.#options.starter.start("writer");
      if (started.ok) return this.#install(started.isolate);
      this.#options.log("error", "Cannot start the writer", { message: started.message });
      this.#giveUpOld(started.message);
      this.#endTurn();
    }
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#endPause = null;
  }

  /** Answers calls that have waited too long for a writer. */
  #giveUpOld(message: string): void {
    const since = this.#options.clock.now() - isolateLimits.startMs;
    const reason = failed("internal", `The app cannot be started: ${message}`, { retryable: true });
    this.#answer(this.#queue.takeOlder(since), reason);
    const unknown = outcomeUnknown(`It is not known whether the mutation was committed: ${message}`);
    const old = this.#unanswered.filter(({ queuedAt }) => queuedAt < since);
    for (const call of old) call.givenUp = true;
    this.#answer(old, unknown);
  }

  /** Determines the outcome of a lost writer's batch from what its replacement found in the database. */
  #settle(ready: Ready): void {
    const { ts } = ready;
    if (this.#out !== null && this.#loss !== null) {
      const { again, blamed } = this.#afterLastGroup(this.#out, ready).afterLoss(this.#loss);
      if (blamed !== null) this.#answer([blamed.call], blamed.outcome);
      const behind = (this.#ahead?.unanswered ?? []).filter(({ givenUp }) => !givenUp);
      this.#queue.putBack([...again, ...behind]);
      this.#out = this.#ahead = null;
      this.#endTurn();
    }
    this.#loss = null;
    if (ts === this.#ts) return;
    this.#options.log("error", "The database is ahead of the published commits", {
      from: this.#ts,
      to: ts,
    });
    this.#ts = ts;
    this.#options.onGap(ts);
  }

  /** Publishes the database's last group if that was not done. Returns the batch in flight. */
  #afterLastGroup(out: MutationBatch, { lastGroup, ts }: Ready): MutationBatch {
    if (lastGroup === null) return out;
    const ahead = this.#ahead;
    let current = out;
    try {
      const { message: group, segments } = parseFrameText<Group>(lastGroup);
      if (ahead !== null && group.batch === ahead.id) {
        // It was started, so everything before it has ended.
        this.#answerLost(out.skipTo(Infinity), ts);
        this.#out = current = ahead;
        this.#ahead = null;
      }
      if (group.batch !== current.id) return current;
      if (!Number.isSafeInteger(group.from) || group.from < 0 || !(group.answers.length > 0)) {
        throw new TypeError("The last group does not say what it answers");
      }
      if (group.from + group.answers.length <= current.answered) return current;
      this.#answerLost(current.skipTo(group.from), ts);
      for (const { call, answer } of this.#apply(group, segments)) call.resolve(answer);
    } catch (error) {
      this.#options.log("error", "The last group in the database cannot be read", { error });
      this.#answer(
        [...current.skipTo(Infinity), ...this.#ahead?.skipTo(Infinity) ?? []],
        outcomeUnknown("It is not known whether the mutation was committed"),
      );
    }
    return current;
  }

  /** Answers calls of groups between the last one received and the last one committed. */
  #answerLost(calls: readonly PendingMutation[], ts: number): void {
    if (calls.length === 0) return;
    this.#answer(calls, outcomeUnknown("The mutation was committed, but its answer was lost"));
    this.#options.onGap(ts);
  }

  #answer(calls: readonly PendingMutation[], outcome: Outcome): void {
    for (const call of calls) call.resolve({ outcome, ts: this.#ts, replayed: false });
  }
}
