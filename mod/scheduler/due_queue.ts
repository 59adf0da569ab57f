/** The waiting jobs that main knows, in the order in which they are due, in bounded memory. */
import type { PendingJob } from "./isolate_functions/jobs.ts";

export type { PendingJob };

/** A place in the order of jobs: by time, then by creation. */
type Place = Pick<PendingJob, "scheduledTime" | "creationTime">;

const NOTHING_KNOWN: Place = { scheduledTime: -Infinity, creationTime: -Infinity };

export class DueQueue {
  readonly #jobsMax: number;
  /** The job due first stands last. */
  readonly #jobs: PendingJob[] = [];
  readonly #byId = new Map<string, PendingJob>();
  /**
   * Jobs up to this place are all here; behind it there may be others in the database. `null`: all are here. Moves back
   * when there is no room, and on when jobs are loaded.
   */
  #horizon: Place | null = NOTHING_KNOWN;

  constructor(options: { readonly jobsMax: number }) {
    this.#jobsMax = options.jobsMax;
  }

  get size(): number {
    return this.#jobs.length;
  }

  /** The job due next of those that are known. */
  get next(): PendingJob | null {
    return this.#jobs.at(-1) ?? null;
  }

  /** When it is due; `null` when none is known. */
  get nextDueAt(): number | null {
    return this.next?.scheduledTime ?? null;
  }

  /** Whether the next job is not known because it has to be looked up. */
  get incomplete(): boolean {
    return this.#jobs.length === 0 && this.#horizon !== null;
  }

  /** Adds a job that began to wait. */
  add(job: PendingJob): void {
    if (this.#byId.has(job.id) || (this.#horizon !== null && compare(job, this.#horizon) > 0)) return;
    this.#jobs.splice(this.#position(job), 0, job);
    this.#byId.set(job.id, job);
    if (this.#jobs.length <= this.#jobsMax) return;
    this.#dropLast();
    this.#horizon = this.#jobs[0] ?? NOTHING_KNOWN;
  }

  /** Takes out a job that no longer waits. */
  remove(id: string): void {
    const job = this.#byId.get(id);
    if (job === undefined) return;
    this.#byId.delete(id);
    this.#jobs.splice(this.#position(job), 1);
  }

  /** Takes the next job if it is due. */
  take(now: number): PendingJob | null {
    const job = this.#jobs.at(-1);
    if (job === undefined || job.scheduledTime > now) return null;
    this.#jobs.pop();
    this.#byId.delete(job.id);
    return job;
  }

  /** Forgets everything: what there is has to be looked up. */
  clear(): void {
    this.#jobs.length = 0;
    this.#byId.clear();
    this.#horizon = NOTHING_KNOWN;
  }

  /** To be called before jobs are looked up: what begins to wait meanwhile may be missing there, so it is kept here. */
  beginLoad(): void {
    this.#horizon = null;
  }

  /** Takes in what was looked up: the first waiting jobs in order; `more` says that there are others behind them. */
  loaded(jobs: readonly PendingJob[], { more }: { readonly more: boolean }): void {
    for (const job of jobs) this.add(job);
    if (!more) return;
    const last = jobs.at(-1) ?? NOTHING_KNOWN;
    if (this.#horizon !== null && compare(this.#horizon, last) < 0) return;
    this.#horizon = last;
    for (let first = this.#jobs[0]; first !== undefined && compare(first, last) > 0; first = this.#jobs[0]) {
      this.#dropLast();
    }
  }

  #dropLast(): void {
    const job = this.#jobs.shift();
    if (job !== undefined) this.#byId.delete(job.id);
  }

  /** Where a job stands, or would stand. */
  #position(job: Place): number {
    let low = 0;
    let high = this.#jobs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#jobs[middle];
      if (other !== undefined && compare(other, job) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function compare(a: Place, b: Place): number {
  return a.scheduledTime - b.scheduledTime || a.creationTime - b.creationTime;
}
