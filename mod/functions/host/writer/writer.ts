/**
 * The writer's side in main: a queue in turns, one batch with the writer and, while that is being committed, the next; and a new
 * writer when one is lost.
 *
 *     idle --mutate--> at the end of this turn --> batch out --last group--> idle
 *                                                  |  |   ^
 *                                                  |  |   +-- at once, if the next batch left during the commit
 *                                                  |  +--committing--> the next batch leaves
 *                                                  |
 *                                            writer lost --> restarting --ready--> settled, the rest runs again
 *
 * The database may be lent to another server between two batches: then there is no writer here, and calls wait until it is
 * given back or they are passed on.
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
import type { MutationWriter, PassTo, ReplaceResult } from "./mutation_writer.ts";
import { MutationQueue, type PendingMutation } from "./mutation_queue.ts";
import { callText, overloaded, stopping, tookTooLong } from "../outcomes.ts";
import { Restarts } from "../process/restarts.ts";
import type { RunObserver } from "../run_observer.ts";

/** A group may take this long to begin or to commit, as on a slow disk, before its writer counts as stuck. */
const STORING_MS_MAX = 3 * functionLimits.mutationTimeoutMs;
/** Weight of the newest batch in the mean time of a call. */
const NEWEST_WEIGHT = 0.25;

export interface WriterOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  /** How long a mutation may run. */
  readonly timeoutMs: number;
  /** How long a group may wait for its row to be kept elsewhere; 0 when absent. */
  readonly storesMs?: number;
  /** Makes the names of batches unique over the life of the database. */
  readonly batchPrefix: string;
  /** Spends the wait for the answer to a lone call awake. */
  readonly awake?: Pick<AdaptiveSpinner, "waitStarted" | "waitEnded">;
  /** Called with each committed group before its answers resolve. Must not throw. */
  readonly onGroup: (entries: readonly CommitEntry[], ts: number) => void;
  /** Called when the database turned out to hold commits whose entries are lost. Must not throw. */
  readonly onGap: (ts: number) => void;
  /** Told of each group; nobody has to be. */
  readonly observer?: Pick<RunObserver, "groupCommitted">;
}

export class Writer implements MutationWriter {
  readonly #options: WriterOptions;
  readonly #costs = new Costs();
  readonly #queue = new MutationQueue(this.#costs);
  readonly #restarts = new Restarts();
  /** The writer that serves; `null` before the start and from a death to the successor. */
  #isolate: Isolate | null = null;
  /** From when the writer may begin with it to its last answer; outlives the writer it was sent to. */
  #out: MutationBatch | null = null;
  /** Sent while the last group of `#out` is being committed, to be the next `#out`. */
  #ahead: MutationBatch | null = null;
  /** How the writer of `#out` was lost, until its successor tells the fate of the batch. */
  #loss: Death | null = null;
  /** `asked`: looks for work at the end of this turn. `held`: a batch is out, its fate is open, or the writer is being replaced. */
  #turn: "none" | "asked" | "held" = "none";
  /** Set by `replace` until the replacement has ended. */
  #replacement: (() => Promise<void>) | null = null;
  /** Whether `#replacement` has its turn: it looks after the writer itself. */
  #replacing = false;
  /** Exists while a batch is with a living writer, and is left to run out after it: most often the next one is not far. */
  #watchTimer: Timer | null = null;
  /** Ends the pause before a restart at once; set during the pause. */
  #endPause: (() => void) | null = null;
  #restarting = false;
  /** Called when there is a writer again; set by `lend`. */
  #onInstalled: (() => void) | null = null;
  /** Runs calls elsewhere; set by `passOn`, for good. */
  #passTo: PassTo | null = null;
  /** Called when no batch is out any more; set by `close`. */
  #onIdle: (() => void) | null = null;
  #closing = false;
  #batches = 0;
  /** ts of the newest group. */
  #ts = 0;
  /** Mean time of one call, its share of the commit included: sizes the next batch. */
  #callMs = isolateLimits.batchSliceMs / isolateLimits.batchCallsMax;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Starts the first writer, which applies the app's schema. Throws when that fails. */
  async start(): Promise<Ready> {
    const started = await this.#options.starter.start("writer");
    if (!started.ok) throw new Error(started.message);
    this.#ts = started.isolate.ready.ts;
    this.#install(started.isolate);
    return started.isolate.ready;
  }

  /** Mutations that no writer has taken yet. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Runs a mutation when it is its caller's turn, after all that the caller gave before. Never rejects. */
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
    if (this.#passTo !== null) return this.#passTo(call);
    const queuedAt = this.#options.clock.now();
    const recordsFailure = call.replay !== undefined && call.failedWith === undefined;
    const pending: PendingMutation = {
      text,
      given: { caller: call.caller, work: call.work },
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
   * Puts a writer with new code in the old one's place between two batches. `before` runs before the new one makes the
   * database fit its schema, `meanwhile` after that; until it has ended nothing is committed. The old writer goes on when
   * the new one cannot be started. `start`: how it is.
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
        // It has nothing to do any more, and ends while the readers follow.
        await Promise.all([old?.close(), meanwhile(started.isolate.ready)]);
        this.#install(started.isolate);
      }
      resolve(started.ok ? { ok: true } : { ok: false, message: started.message });
    };
    this.#next();
    return promise;
  }

  /** What a new writer commits before it serves has no documents: that other code is served from there on. */
  #begun({ ts, named = false }: Ready): void {
    if (!named) return;
    this.#ts = ts;
    this.#options.onGap(ts);
  }

  lend(back: Promise<unknown>, onBack: () => void): Promise<boolean> {
    return this.#letGo(async (old, gone) => {
      await old.close();
      gone();
      await back;
      this.#onInstalled = onBack;
    });
  }

  retire(to: PassTo): Promise<boolean> {
    return this.#letGo(async (old, gone) => {
      this.passOn(to);
      gone();
      await old.close();
    });
  }

  /** Takes the writer out between two batches. Resolves when `take` calls `gone`, or with `false` when there is none to take. */
  #letGo(take: (old: Isolate, gone: () => void) => Promise<void>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (this.#closing || this.#replacement !== null || this.#isolate === null) return Promise.resolve(false);
    this.#replacement = async () => {
      const old = this.#isolate;
      // One that was lost before its turn is being started again already.
      if (old === null) return resolve(false);
      this.#isolate = null;
      await take(old, () => resolve(true));
    };
    this.#next();
    return promise;
  }

  passOn(to: PassTo): void {
    this.#passTo = to;
    for (const { text, given: { caller, work }, resolve } of this.#queue.takeOlder()) {
      const call = JSON.parse(text) as MutationCall;
      to({ ...call, ...(caller && { caller }), ...(work !== undefined && { work }) }).then(resolve);
    }
  }

  /** Passes on what became of journal rows; while there is no writer nobody has to know. */
  tendJournal(message: JournalConfirmed | JournalRestart): void {
    this.#isolate?.send(message);
  }

  /** Refuses what waits, lets the batch that is out end for a bounded time, and ends the writer. */
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

  /** The calls that were sent and have no answer, in order. */
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
      // What the writer left of a batch that takes long waits for its callers' next turns.
      if (message.ends === true) this.#queue.putBack(this.#out?.cut() ?? []);
      // The next batch leaves before the answers do: the writer works while main sends them.
      if (this.#out?.done) this.#batchDone(this.#out);
      for (const { call, answer } of answered) call.resolve(answer);
    });
    isolate.ended.then((death) => this.#onEnded(isolate, death));
    this.#settle(isolate.ready);
    this.#next();
    this.#onInstalled?.();
    this.#onInstalled = null;
  }

  /** Takes the next step that is possible, within this turn of the event loop. */
  #next(): void {
    if (this.#turn !== "none" || this.#out !== null || this.#closing) return;
    if (this.#replacement === null && (this.#isolate === null || this.#queue.size === 0)) return;
    this.#turn = "asked";
    // At the end of what runs now, so that calls which arrive together share a batch; without a timer, so that a lone one
    // waits for nothing.
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
    // The writer was lost while it waited for its turn, or the host is closing.
    if (batch === null) return this.#endTurn();
    this.#begin(batch);
    this.#watchLater();
  }

  /**
   * The writer will be free in a moment: it finds the next batch waiting. That
   * batch and the one being committed are made about as large as one another: callers that wait for their answers come
   * back in turns then, and while the answers of one half are on their way the other half is with the writer.
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

  /** Sends a batch of what waits, `callsMax` calls at most, if there is a writer and anything waits. */
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

  /** Tells of a group's commits and gives back the answers of its calls. Throws for a group that is not awaited. */
  #apply(group: Group, segments: readonly string[]): Answered[] {
    if (this.#out === null) throw new RangeError(`Group ${group.batch}/${group.from} was not awaited`);
    // Before any of its calls counts as answered: what cannot be read is thrown out as a whole.
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
      // One that was answered from its record says nothing about its function.
      if (!replayed && run !== undefined) this.#costs.took(work, run.durationMs);
    }
  }

  #batchDone(batch: MutationBatch): void {
    const ms = (this.#options.clock.now() - batch.begun.at) / Math.max(1, batch.answered);
    const [first] = batch.calls;
    // A slow call that went alone says nothing about the others.
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
    // One that neither runs a call nor stores is kept from its next batch by what an earlier call left running.
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
    if (this.#restarting || this.#passTo !== null) return;
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

  /** Answers the calls that have waited too long for a writer. */
  #giveUpOld(message: string): void {
    const since = this.#options.clock.now() - isolateLimits.startMs;
    const reason = failed("internal", `The app cannot be started: ${message}`, { retryable: true });
    this.#answer(this.#queue.takeOlder(since), reason);
    const unknown = outcomeUnknown(`It is not known whether the mutation was committed: ${message}`);
    const old = this.#unanswered.filter(({ queuedAt }) => queuedAt < since);
    for (const call of old) call.givenUp = true;
    this.#answer(old, unknown);
  }

  /** Decides the fate of the batch a lost writer had, by what its successor found in the database. */
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
    this.#options.log("error", "Commits are in the database that were never told", {
      from: this.#ts,
      to: ts,
    });
    this.#ts = ts;
    this.#options.onGap(ts);
  }

  /** Applies the last group of the database, if nobody has told of it. Gives back the batch that was under way. */
  #afterLastGroup(out: MutationBatch, { lastGroup, ts }: Ready): MutationBatch {
    if (lastGroup === null) return out;
    const ahead = this.#ahead;
    let current = out;
    try {
      const { message: group, segments } = parseFrameText<Group>(lastGroup);
      if (ahead !== null && group.batch === ahead.id) {
        // It was begun, so everything before it had ended.
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

  /** Answers calls of groups that ended, committed as a rule, between the last one received and the last one of all. */
  #answerLost(calls: readonly PendingMutation[], ts: number): void {
    if (calls.length === 0) return;
    this.#answer(calls, outcomeUnknown("The mutation was committed, but its answer was lost"));
    this.#options.onGap(ts);
  }

  #answer(calls: readonly PendingMutation[], outcome: Outcome): void {
    for (const call of calls) call.resolve({ outcome, ts: this.#ts, replayed: false });
  }
}
