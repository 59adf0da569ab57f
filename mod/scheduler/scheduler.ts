/**
 * The scheduler in main: one timer for whatever is due next. It learns of jobs from the commits and by looking them up at
 * the start; what it knows may be old, because each step of a job checks its state in the database.
 */
import type { CommitEntry } from "../engine/types.ts";
import type { Log } from "../kit/log.ts";
import { schedulerLimits } from "../functions/limits.ts";
import { Backoff } from "./backoff.ts";
import { type Clock, systemClock, type Timer } from "../kit/clock.ts";
import { type Cron, Crons } from "./crons.ts";
import type { PendingJob } from "./due_queue.ts";
import { GrowthLog } from "./growth_log.ts";
import { JobRunner } from "./job_runner.ts";
import { Lane, type LaneOptions } from "./lane.ts";
import { SystemCalls } from "../functions/system_calls.ts";
import { type SchedulerPort, system } from "./system.ts";
import type { JobKind, SchedulerDoc } from "./tables.ts";
import { WriterShare } from "./writer_share.ts";

export interface SchedulerOptions {
  readonly port: SchedulerPort;
  /** The crons of the app's code as it is loaded now. */
  readonly appCrons: () => readonly Cron[];
  /** The service's own crons; their names begin with `svc-`. */
  readonly serviceCrons?: readonly Cron[];
  readonly log: Log;
  readonly clock?: Clock;
  /** Longest wait without a look at the clock, in milliseconds; `Infinity` for one that nobody sets. */
  readonly lookMs?: number;
  /** Waiting jobs of one kind that are kept in memory; the limit unless a test wants fewer. */
  readonly jobsKnownMax?: number;
  /** Where somebody else runs what is scheduled from some moment on; without it actions may run on until the server has ended. */
  readonly actions?: ScheduledActions | undefined;
}

/** The actions of a server that is not the only one which may run what is scheduled. */
export interface ScheduledActions {
  /** Whether nobody else may run them yet. */
  readonly mayBegin: () => boolean;
  /** Ends those that run, at once. Resolves when nothing of them can go on. */
  readonly end: () => Promise<void>;
}

export class Scheduler implements AsyncDisposable {
  readonly #options: SchedulerOptions;
  readonly #clock: Clock;
  readonly #lookMs: number;
  readonly #calls: SystemCalls;
  readonly #lanes: Readonly<Record<JobKind, Lane>>;
  readonly #crons: Crons;
  readonly #serviceCrons: Map<string, Cron>;
  readonly #share = new WriterShare();
  readonly #growth: GrowthLog;
  /** `closed` ends all; before `open` nothing is run, because actions of the server's last life may seem to be running. */
  #state: "new" | "open" | "closed" = "new";
  /** Whether actions are somebody else's by now, for good. */
  #gaveActions = false;
  /** The timer, and when it rings. */
  #waiting: { readonly at: number; readonly timer: Timer } | null = null;
  #wakePlanned = false;
  /** Declarations of crons, one after another. */
  #declaring: Promise<void> = Promise.resolve();
  /** Resolves when the start has succeeded, or failed once. */
  readonly #tried = Promise.withResolvers<void>();
  /** Ends pauses at once; called by the end of the scheduler. */
  readonly #endPauses = new Set<() => void>();

  constructor(options: SchedulerOptions) {
    const { port, log, clock = systemClock } = options;
    const { lookMs = schedulerLimits.clockLookMs, jobsKnownMax = schedulerLimits.jobsKnownMax } = options;
    this.#options = options;
    this.#clock = clock;
    this.#lookMs = lookMs;
    this.#calls = new SystemCalls(port);
    this.#growth = new GrowthLog(log, () => clock.now());
    this.#serviceCrons = new Map(options.serviceCrons?.map((cron) => [cron.name, cron]));
    const onChange = () => this.#wakeSoon();
    const runner = new JobRunner({
      port,
      calls: this.#calls,
      log,
      mayAct: () => !this.#gaveActions && (options.actions?.mayBegin() ?? true),
      onMutation: (name, ms) => this.#share.took(name, ms),
      pause: () => this.#pause(schedulerLimits.retryMs),
    });
    const lane = (kind: JobKind, admits: LaneOptions["admits"]) =>
      new Lane({
        clock,
        log,
        jobsKnownMax,
        load: () => this.#calls.query(system.jobs.pending, { functionKind: kind }),
        run: (job) => runner.run(job, kind),
        admits,
        onChange,
      });
    this.#lanes = {
      mutation: lane("mutation", (name, running) => this.#share.admits(name, running)),
      action: lane("action", (_name, running) => running.length < schedulerLimits.actionsAtOnceMax),
    };
    this.#crons = new Crons({ calls: this.#calls, clock, log, onChange });
  }

  /**
   * Ends what the server's last life left half done, declares the crons and begins to run what is due. When that cannot be
   * written down it is tried again, without an end, but this resolves after the first try: a server whose disk is full
   * still answers.
   */
  async start(): Promise<void> {
    void this.#begin().then(() => this.#tried.resolve());
    await this.#tried.promise;
  }

  /** Takes note of commits: to be called with each group, in order. */
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

  /** To be called after new code was loaded, or when commits may have been missed. */
  reload(): void {
    for (const lane of Object.values(this.#lanes)) lane.forget();
    this.#wakeSoon();
    if (this.#state === "open") void this.#declareAll();
  }

  /** Adds a cron of the service, or changes it. Resolves when it is written down. */
  async setServiceCron(cron: Cron): Promise<void> {
    this.#serviceCrons.set(cron.name, cron);
    await this.#declare("service");
  }

  /** Ends a cron of the service. Resolves when it is written down. */
  async removeServiceCron(name: string): Promise<void> {
    this.#serviceCrons.delete(name);
    await this.#declare("service");
  }

  /** Somebody else may run what is scheduled from now on: actions that run are ended at once. */
  async endActions(): Promise<void> {
    await this.#options.actions?.end();
  }

  /** Starts nothing more and lets what runs end, for a bounded time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = "closed";
    this.#waiting?.timer.cancel();
    this.#waiting = null;
    for (const end of [...this.#endPauses]) end();
    const lanes = Object.values(this.#lanes);
    for (const lane of lanes) lane.close();
    const ended = Promise.all([...lanes.map(({ idle }) => idle), this.#declaring]).then(() => true);
    const { actions } = this.#options;
    const isIdle = await endsWithin(schedulerLimits.closeMs, ended);
    if (actions === undefined) return;
    this.#gaveActions = true;
    // Also one that was answered because its time was over, and goes on.
    await actions.end();
    // Their ends are written down here.
    if (!isIdle) await endsWithin(schedulerLimits.endLateMs, ended);
  }

  get #closed(): boolean {
    return this.#state === "closed";
  }

  async #begin(): Promise<void> {
    const interrupted = await this.#insist("Interrupted actions could not be marked", async () => {
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
      for (const lane of Object.values(this.#lanes)) lane.remove(id);
      return;
    }
    this.#growth.see(job);
    const { name, scheduledTime, functionKind } = job;
    const pending: PendingJob = { id: job._id, name, scheduledTime, creationTime: job._creationTime };
    const lane = this.#lanes[functionKind];
    // It may be known with another time.
    lane.remove(id);
    lane.add(pending);
  }

  async #declareAll(): Promise<void> {
    await this.#declare("service");
    await this.#declare("app");
  }

  #declare(of: "app" | "service"): Promise<void> {
    const declare = async () => {
      await this.#insist("The crons could not be written down", async () => {
        const crons = of === "app" ? this.#options.appCrons() : [...this.#serviceCrons.values()];
        await this.#crons.declare(of, crons);
      });
    };
    return this.#declaring = this.#declaring.then(declare);
  }

  /** Tries until it succeeds; `false` when the scheduler was closed before. */
  async #insist(failure: string, attempt: () => Promise<void>): Promise<boolean> {
    const backoff = new Backoff();
    while (!this.#closed) {
      try {
        await attempt();
        return true;
      } catch (error) {
        if (this.#closed) break;
        this.#options.log("warn", failure, { error });
        this.#tried.resolve();
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

  /** Looks at everything once this turn's news are all in. */
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
    for (const lane of Object.values(this.#lanes)) lane.work();
    this.#crons.work();
    this.#setTimer();
  }

  #setTimer(): void {
    const times = [this.#lanes.mutation.wakeAt, this.#lanes.action.wakeAt, this.#crons.wakeAt];
    const known = times.filter((time) => time !== null);
    const now = this.#clock.now();
    // Time may be set, and a timer knows nothing of it.
    const at = Math.max(now, Math.min(now + this.#lookMs, ...known));
    if (at === Infinity) return;
    if (this.#waiting !== null && this.#waiting.at <= at && this.#waiting.at > now) return;
    this.#waiting?.timer.cancel();
    this.#waiting = {
      at,
      timer: this.#clock.after(at - now, () => {
        this.#waiting = null;
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
