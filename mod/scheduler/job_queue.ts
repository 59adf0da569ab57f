/** Queue of the jobs of one kind. Runs due jobs in order of time, with bounded concurrency. */
import { schedulerLimits } from "../functions/limits.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { DueQueue, type PendingJob } from "./due_queue.ts";
import type { JobEnd } from "./job_runner.ts";

/** Growing delays after server failures such as a full disk. */
export class Backoff {
  #failures = 0;
  /** Earliest time of the next attempt. */
  #until = -Infinity;

  /** Earliest time of the next attempt. */
  get until(): number {
    return this.#until;
  }

  failed(now: number): void {
    // Simultaneous failures count once.
    if (now < this.#until) return;
    const { retryMs, retryMsMax } = schedulerLimits;
    this.#until = now + Math.min(retryMsMax, retryMs * 2 ** this.#failures++);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = -Infinity;
  }
}

export interface JobQueueOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly jobsKnownMax: number;
  readonly load: () => Promise<{ readonly jobs: readonly PendingJob[]; readonly more: boolean }>;
  /** Runs a job. Never rejects. */
  readonly run: (job: PendingJob) => Promise<JobEnd>;
  /** Whether a job may run in addition to the running ones, given by their functions. */
  readonly admits: (name: string, running: readonly string[]) => boolean;
  /** Called when `wakeAt` may have changed. */
  readonly onChange: () => void;
}

export class JobQueue {
  readonly #options: JobQueueOptions;
  readonly #queue: DueQueue;
  readonly #backoff = new Backoff();
  readonly #running = new Map<string, { readonly name: string; readonly end: Promise<void> }>();
  #loading: Promise<void> | null = null;
  /** Whether the last load found running jobs only. The next load waits until one of them has ended. */
  #onlyRunningLoaded = false;
  #closed = false;

  constructor(options: JobQueueOptions) {
    this.#options = options;
    this.#queue = new DueQueue({ jobsMax: options.jobsKnownMax });
  }

  /** Time of the next due work; `null` if only new jobs or completions can cause any. */
  get wakeAt(): number | null {
    if (this.#closed || this.#loading !== null) return null;
    const next = this.#queue.next;
    if (next !== null && !this.#admits(next)) return null;
    const dueAt = this.#mayLoad ? -Infinity : next?.scheduledTime ?? null;
    return dueAt === null ? null : Math.max(dueAt, this.#backoff.until);
  }

  /** Resolves when all running jobs have ended. */
  get idle(): Promise<unknown> {
    return Promise.all([...[...this.#running.values()].map(({ end }) => end), this.#loading]);
  }

  add(job: PendingJob): void {
    if (!this.#running.has(job.id)) this.#queue.add(job);
  }

  remove(id: string): void {
    this.#onlyRunningLoaded = false;
    this.#queue.remove(id);
  }

  /** Drops all pending jobs, because changes may have been missed. */
  clear(): void {
    this.#onlyRunningLoaded = false;
    this.#queue.clear();
  }

  /** Starts due jobs. */
  work(): void {
    const now = this.#options.clock.now();
    if (this.#closed || this.#loading !== null || now < this.#backoff.until) return;
    if (this.#mayLoad) {
      this.#loading = this.#load();
      return;
    }
    for (let next = this.#queue.next; next !== null && this.#admits(next); next = this.#queue.next) {
      const job = this.#queue.take(now);
      if (job === null) break;
      this.#running.set(job.id, { name: job.name, end: this.#run(job) });
    }
  }

  /** Stops starting jobs. */
  close(): void {
    this.#closed = true;
  }

  #admits({ name }: PendingJob): boolean {
    return this.#options.admits(name, [...this.#running.values()].map((running) => running.name));
  }

  get #mayLoad(): boolean {
    return this.#queue.incomplete && !this.#onlyRunningLoaded;
  }

  async #run(job: PendingJob): Promise<void> {
    // Settles in a later tick, so that the entry is added before it is deleted.
    const end = await this.#options.run(job);
    this.#running.delete(job.id);
    this.#onlyRunningLoaded = false;
    if (end === "again") {
      this.#backoff.failed(this.#options.clock.now());
      this.#queue.add(job);
    } else {
      this.#backoff.succeeded();
      if (end !== "done") this.#queue.add({ ...job, scheduledTime: end.at });
    }
    this.#options.onChange();
  }

  async #load(): Promise<void> {
    this.#queue.beginLoad();
    try {
      const { jobs, more } = await this.#options.load();
      // Jobs started a moment ago may still be pending in the database.
      const others = jobs.filter(({ id }) => !this.#running.has(id));
      this.#queue.loaded(others, { more });
      this.#onlyRunningLoaded = more && others.length === 0;
      this.#backoff.succeeded();
    } catch (error) {
      this.#queue.clear();
      this.#backoff.failed(this.#options.clock.now());
      this.#options.log("warn", "Cannot load scheduled functions", { error });
    }
    this.#loading = null;
    this.#options.onChange();
  }
}
