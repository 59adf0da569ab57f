/** The jobs of one kind: knows which wait, and runs those that are due, a bounded number at once, in the order of time. */
import type { Log } from "../kit/log.ts";
import { Backoff } from "./backoff.ts";
import type { Clock } from "../kit/clock.ts";
import { DueQueue, type PendingJob } from "./due_queue.ts";
import type { JobEnd } from "./job_runner.ts";

export interface LaneOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly jobsKnownMax: number;
  /** Looks up the first waiting jobs. */
  readonly load: () => Promise<{ readonly jobs: readonly PendingJob[]; readonly more: boolean }>;
  /** Runs a job. Never rejects. */
  readonly run: (job: PendingJob) => Promise<JobEnd>;
  /** Whether a job may run beside those that run, by their functions. */
  readonly admits: (name: string, running: readonly string[]) => boolean;
  /** Called when the lane has to be looked at again at another time than before. */
  readonly onChange: () => void;
}

export class Lane {
  readonly #options: LaneOptions;
  readonly #queue: DueQueue;
  readonly #backoff = new Backoff();
  /** Jobs that were taken and have not ended, with the promise of their end. */
  readonly #running = new Map<string, { readonly name: string; readonly end: Promise<void> }>();
  /** The look-up under way. */
  #loading: Promise<void> | null = null;
  /** Set when a look-up found nothing but what runs already: the next one waits until a job has left the line. */
  #nothingNew = false;
  #closed = false;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#queue = new DueQueue({ jobsMax: options.jobsKnownMax });
  }

  /** When the lane has something to do; `null` when it waits for nothing but new jobs or the end of running ones. */
  get wakeAt(): number | null {
    if (this.#closed || this.#loading !== null) return null;
    const next = this.#queue.next;
    if (next !== null && !this.#admits(next)) return null;
    const dueAt = this.#mayLoad ? -Infinity : next?.scheduledTime ?? null;
    return dueAt === null ? null : Math.max(dueAt, this.#backoff.until);
  }

  /** Resolves when the jobs that run now have ended. */
  get idle(): Promise<unknown> {
    return Promise.all([...[...this.#running.values()].map(({ end }) => end), this.#loading]);
  }

  /** Takes note of a job that began to wait. */
  add(job: PendingJob): void {
    if (!this.#running.has(job.id)) this.#queue.add(job);
  }

  /** Takes note of a job that no longer waits. */
  remove(id: string): void {
    this.#nothingNew = false;
    this.#queue.remove(id);
  }

  /** Forgets what it knows: changes may have been missed. */
  forget(): void {
    this.#nothingNew = false;
    this.#queue.clear();
  }

  /** Starts what is due. */
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

  /** Starts nothing more. */
  close(): void {
    this.#closed = true;
  }

  #admits({ name }: PendingJob): boolean {
    return this.#options.admits(name, [...this.#running.values()].map((running) => running.name));
  }

  get #mayLoad(): boolean {
    return this.#queue.incomplete && !this.#nothingNew;
  }

  async #run(job: PendingJob): Promise<void> {
    // Settles in a later turn, so that it is in the map before it is taken out of it.
    const end = await this.#options.run(job);
    this.#running.delete(job.id);
    this.#nothingNew = false;
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
      // What was started a moment ago may still seem to wait.
      const others = jobs.filter(({ id }) => !this.#running.has(id));
      this.#queue.loaded(others, { more });
      this.#nothingNew = more && others.length === 0;
      this.#backoff.succeeded();
    } catch (error) {
      this.#queue.clear();
      this.#backoff.failed(this.#options.clock.now());
      this.#options.log("warn", "The scheduled functions could not be looked up", { error });
    }
    this.#loading = null;
    this.#options.onChange();
  }
}
