/** The scheduler in main, driven by a timer and commits. Its view may be stale: each step checks the database. */
import { LRUCache } from "lru-cache";
import type { CommitEntry } from "../engine/types.ts";
import { schedulerLimits } from "../functions/limits.ts";
import { SystemCalls } from "../functions/system_calls.ts";
import { type Clock, systemClock, type Timer } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { Backoff, JobQueue, type JobQueueOptions } from "./job_queue.ts";
import { type Cron, Crons } from "./crons.ts";
import type { PendingJob } from "./due_queue.ts";
import { JobRunner } from "./job_runner.ts";
import { type SchedulerPort, system } from "./system.ts";
import type { JobKind, SchedulerDoc } from "./tables.ts";

const { chainLoggedMs, chainsLoggedMax } = schedulerLimits;

/** Logs functions whose jobs are deferred because they schedule ever more jobs, at a limited rate. */
class DeferralLog {
  readonly #log: Log;
  readonly #now: () => number;
  /** Time of the last log entry by function. */
  readonly #loggedAt = new Map<string, number>();

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Call for each job that became pending. */
  onPending({ name, chain, scheduledTime }: SchedulerDoc<"_scheduled_functions">): void {
    if (chain?.putOff !== true) return;
    const now = this.#now();
    for (const [known, at] of this.#loggedAt) {
      if (now - at < chainLoggedMs) break;
      this.#loggedAt.delete(known);
    }
    if (this.#loggedAt.has(name) || this.#loggedAt.size >= chainsLoggedMax) return;
    this.#loggedAt.set(name, now);
    this.#log("warn", "Deferring jobs of a function that keeps scheduling more jobs", {
      name,
      job: chain.root,
      generation: chain.generation,
      putOffMs: Math.max(0, Math.round(scheduledTime - now)),
    });
  }
}

const NEWEST_WEIGHT = 0.1;
/** Maximum number of tracked functions; the least recently run is evicted. */
const FUNCTIONS_MAX = 1_000;

/** Limits queued scheduled mutations, so that client calls do not wait. Functions measured as slow run alone. */
class MutationConcurrency {
  readonly #meanMs = new LRUCache<string, number>({ max: FUNCTIONS_MAX });

  /** Records how long a mutation occupied the writer. Increases apply immediately, decreases gradually. */
  record(name: string, ms: number): void {
    const mean = this.#meanMs.get(name) ?? ms;
    this.#meanMs.set(name, ms > mean ? ms : mean + (ms - mean) * NEWEST_WEIGHT);
  }

  /** Whether another mutation may be queued. The first run of a function runs alone. */
  admits(name: string, running: readonly string[]): boolean {
    const { mutationsAimedMs, mutationsAtOnceMax } = schedulerLimits;
    if (running.length === 0) return true;
    if (running.length >= mutationsAtOnceMax) return false;
    const sum = [name, ...running].reduce((ms, each) => ms + this.#expected(each), 0);
    return sum <= mutationsAimedMs;
  }

  #expected(name: string): number {
    return this.#meanMs.peek(name) ?? schedulerLimits.mutationsAimedMs;
  }
}

export interface SchedulerOptions {
  readonly port: SchedulerPort;
  readonly appCrons: () => readonly Cron[];
  /** The service's own cron jobs; their names start with `svc-`. */
  readonly serviceCrons?: readonly Cron[];
  readonly log: Log;
  readonly clock?: Clock;
  /** Maximum time between two checks of the clock, in milliseconds; `Infinity` for clocks that are never set. */
  readonly clockCheckMs?: number;
  /** Maximum number of pending jobs of one kind in memory. Tests lower it. */
  readonly jobsKnownMax?: number;
  /** Set if another server may take over. Otherwise actions may run until the server stops. */
  readonly actions?: ScheduledActions | undefined;
}

/** Control over actions on a server that can hand over to another. */
export interface ScheduledActions {
  readonly mayBegin: () => boolean;
  /** Aborts running actions. Resolves when none of them can continue. */
  readonly end: () => Promise<void>;
}

export class Scheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions;
  readonly #clock: Clock;
  readonly #clockCheckMs: number;
  readonly #calls: SystemCalls;
  readonly #queues: Readonly<Record<JobKind, JobQueue>>;
  readonly #crons: Crons;
  readonly #serviceCrons: Map<string, Cron>;
  readonly #concurrency = new MutationConcurrency();
  readonly #deferralLog: DeferralLog;
  /** Nothing runs before `open`, because actions interrupted by the previous stop are still marked as running. */
  #state: "new" | "open" | "closed" = "new";
  #actionsHandedOver = false;
  #timer: { readonly at: number; readonly timer: Timer } | null = null;
  #wakePlanned = false;
  /** Serializes declarations of cron jobs. */
  #declaring: Promise<void> = Promise.resolve();
  /** Resolves when startup has succeeded or failed once. */
  readonly #attempted = Promise.withResolvers<void>();
  /** Callbacks that end delays when the scheduler closes. */
  readonly #endPauses = new Set<() => void>();

  constructor(options: SchedulerOptions) {
    const { port, log, clock = systemClock } = options;
    const { clockCheckMs = schedulerLimits.clockLookMs, jobsKnownMax = schedulerLimits.jobsKnownMax } =
      options;
    this.#options = options;
    this.#clock = clock;
    this.#clockCheckMs = clockCheckMs;
    this.#calls = new SystemCalls(port);
    this.#deferralLog = new DeferralLog(log, () => clock.now());
    this.#serviceCrons = new Map(options.serviceCrons?.map((cron) => [cron.name, cron]));
    const onChange = () => this.#wakeSoon();
    const runner = new JobRunner({
      port,
      calls: this.#calls,
      log,
      mayAct: () => !this.#actionsHandedOver && (options.actions?.mayBegin() ?? true),
      onMutation: (name, ms) => this.#concurrency.record(name, ms),
      pause: () => this.#pause(schedulerLimits.retryMs),
    });
    const openQueue = (kind: JobKind, admits: JobQueueOptions["admits"]) =>
      new JobQueue({
        clock,
        log,
        jobsKnownMax,
        load: () => this.#calls.queryInWriter(system.jobs.pending, { functionKind: kind }),
        run: (job) => runner.run(job, kind),
        admits,
        onChange,
      });
    this.#queues = {
      mutation: openQueue("mutation", (name, running) => this.#concurrency.admits(name, running)),
      action: openQueue("action", (_name, running) => running.length < schedulerLimits.actionsAtOnceMax),
    };
    this.#crons = new Crons({ calls: this.#calls, clock, log, onChange });
  }

  /** Marks interrupted actions and starts due jobs. Retries forever, but resolves after one attempt (full disk). */
  async start(): Promise<void> {
    void this.#open().then(() => this.#attempted.resolve());
    await this.#attempted.promise;
  }

  /** Call with each group of commits, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    let changed = false;
    for (const { changes } of entries) {
      for (const { table, id, doc } of changes) {
        if (table !== "_scheduled_functions") continue;
        changed = true;
        this.#apply(id, doc ?? null);
      }
    }
    if (changed) this.#wakeSoon();
  }

  /** Call after new code was loaded, or if commits may have been missed. */
  reload(): void {
    for (const lane of Object.values(this.#queues)) lane.clear();
    this.#wakeSoon();
    if (this.#state === "open") void this.#declareAll();
  }

  /** Adds or replaces a cron job of the service. Resolves when it is stored. */
  async setServiceCron(cron: Cron): Promise<void> {
    this.#serviceCrons.set(cron.name, cron);
    await this.#declare("service");
  }

  /** Removes a cron job of the service. Resolves when it is removed. */
  async removeServiceCron(name: string): Promise<void> {
    this.#serviceCrons.delete(name);
    await this.#declare("service");
  }

  /** Hands actions over to another server: aborts running ones and starts no more. */
  async endActions(): Promise<void> {
    await this.#options.actions?.end();
  }

  /** Stops starting jobs and waits for running ones, up to a timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = "closed";
    this.#timer?.timer.cancel();
    this.#timer = null;
    for (const end of [...this.#endPauses]) end();
    const lanes = Object.values(this.#queues);
    for (const lane of lanes) lane.close();
    const ended = Promise.all([...lanes.map(({ idle }) => idle), this.#declaring]).then(() => true);
    const { actions } = this.#options;
    const isIdle = await endsWithin(schedulerLimits.closeMs, ended);
    if (actions === undefined) return;
    this.#actionsHandedOver = true;
    // Includes actions that timed out but are still running.
    await actions.end();
    // Their results are recorded here.
    if (!isIdle) await endsWithin(schedulerLimits.endLateMs, ended);
  }

  get #closed(): boolean {
    return this.#state === "closed";
  }

  async #open(): Promise<void> {
    const interrupted = await this.#retry("Cannot mark interrupted actions", async () => {
      while (await this.#calls.mutate(system.jobs.interrupt, {}));
    });
    if (!interrupted) return;
    await this.#declareAll();
    if (this.#closed) return;
    this.#state = "open";
    this.#wake();
  }

  #apply(id: string, doc: string | null): void {
    const job = doc === null ? null : JSON.parse(doc) as SchedulerDoc<"_scheduled_functions">;
    if (job === null || job.state.kind !== "pending") {
      for (const lane of Object.values(this.#queues)) lane.remove(id);
      return;
    }
    this.#deferralLog.onPending(job);
    const { name, scheduledTime, functionKind } = job;
    const pending: PendingJob = { id: job._id, name, scheduledTime, creationTime: job._creationTime };
    const lane = this.#queues[functionKind];
    // It may be queued with another time.
    lane.remove(id);
    lane.add(pending);
  }

  async #declareAll(): Promise<void> {
    await this.#declare("service");
    await this.#declare("app");
  }

  #declare(of: "app" | "service"): Promise<void> {
    const declare = async () => {
      await this.#retry("Cannot store cron jobs", async () => {
        const crons = of === "app" ? this.#options.appCrons() : [...this.#serviceCrons.values()];
        await this.#crons.declare(of, crons);
      });
    };
    return this.#declaring = this.#declaring.then(declare);
  }

  /** Retries until `attempt` succeeds. Returns `false` if the scheduler was closed first. */
  async #retry(failure: string, attempt: () => Promise<void>): Promise<boolean> {
    const backoff = new Backoff();
    while (!this.#closed) {
      try {
        await attempt();
        return true;
      } catch (error) {
        if (this.#closed) break;
        this.#options.log("warn", failure, { error });
        this.#attempted.resolve();
        backoff.failed(this.#clock.now());
        await this.#pause(Math.max(0, backoff.until - this.#clock.now()));
      }
    }
    return false;
  }

  #pause(ms: number): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel();
        this.#endPauses.delete(end);
        resolve(!this.#closed);
      };
      const timer = this.#clock.after(ms, end);
      this.#endPauses.add(end);
    });
  }

  /** Schedules a check after all commits of this tick are applied. */
  #wakeSoon(): void {
    if (this.#state !== "open" || this.#wakePlanned) return;
    this.#wakePlanned = true;
    queueMicrotask(() => {
      this.#wakePlanned = false;
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#state !== "open") return;
    for (const lane of Object.values(this.#queues)) lane.work();
    this.#crons.work();
    this.#setTimer();
  }

  #setTimer(): void {
    const times = [this.#queues.mutation.wakeAt, this.#queues.action.wakeAt, this.#crons.wakeAt];
    const known = times.filter((time) => time !== null);
    const now = this.#clock.now();
    // Bounded, because a timer does not notice when the clock is set.
    const at = Math.max(now, Math.min(now + this.#clockCheckMs, ...known));
    if (at === Infinity) return;
    if (this.#timer !== null && this.#timer.at <= at && this.#timer.at > now) return;
    this.#timer?.timer.cancel();
    this.#timer = {
      at,
      timer: this.#clock.after(at - now, () => {
        this.#timer = null;
        this.#wake();
      }),
    };
  }
}

async function endsWithin(ms: number, ended: Promise<boolean>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const inTime = await Promise.race([ended, late]);
  clearTimeout(timer);
  return inTime;
}
