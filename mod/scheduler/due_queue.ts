/** Bounded queue of the pending jobs due first. */
import type { PendingJob } from "./isolate_functions/jobs.ts";

export type { PendingJob };

/** Position in the order of jobs: by time, then by creation. */
type Position = Pick<PendingJob, "scheduledTime" | "creationTime">;

const NOTHING_LOADED: Position = { scheduledTime: -Infinity, creationTime: -Infinity };

export class DueQueue {
  readonly #jobsMax: number;
  /** Sorted descending: the job due first is last. */
  readonly #jobs: PendingJob[] = [];
  readonly #byId = new Map<string, PendingJob>();
  /** Jobs up to here are in memory (`null`: all). Moves back by evictions and forward by loading. */
  #horizon: Position | null = NOTHING_LOADED;

  constructor(options: { readonly jobsMax: number }) {
    this.#jobsMax = options.jobsMax;
  }

  get size(): number {
    return this.#jobs.length;
  }

  get next(): PendingJob | null {
    return this.#jobs.at(-1) ?? null;
  }

  /** Its due time; `null` if the queue is empty. */
  get nextDueAt(): number | null {
    return this.next?.scheduledTime ?? null;
  }

  /** Whether the next job must be loaded from the database. */
  get incomplete(): boolean {
    return this.#jobs.length === 0 && this.#horizon !== null;
  }

  add(job: PendingJob): void {
    if (this.#byId.has(job.id) || (this.#horizon !== null && compare(job, this.#horizon) > 0)) return;
    this.#jobs.splice(this.#position(job), 0, job);
    this.#byId.set(job.id, job);
    if (this.#jobs.length <= this.#jobsMax) return;
    this.#dropLast();
    this.#horizon = this.#jobs[0] ?? NOTHING_LOADED;
  }

  /** Removes a job that is no longer pending. */
  remove(id: string): void {
    const job = this.#byId.get(id);
    if (job === undefined) return;
    this.#byId.delete(id);
    this.#jobs.splice(this.#position(job), 1);
  }

  take(now: number): PendingJob | null {
    const job = this.#jobs.at(-1);
    if (job === undefined || job.scheduledTime > now) return null;
    this.#jobs.pop();
    this.#byId.delete(job.id);
    return job;
  }

  /** Drops everything; jobs must be loaded again. */
  clear(): void {
    this.#jobs.length = 0;
    this.#byId.clear();
    this.#horizon = NOTHING_LOADED;
  }

  /** Call before loading: jobs added during the load are kept, because the load may miss them. */
  beginLoad(): void {
    this.#horizon = null;
  }

  /** Adds loaded jobs, the first pending ones in order. `more`: whether the database has further jobs. */
  loaded(jobs: readonly PendingJob[], { more }: { readonly more: boolean }): void {
    for (const job of jobs) this.add(job);
    if (!more) return;
    const last = jobs.at(-1) ?? NOTHING_LOADED;
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

  /** Index at which a job is or would be. */
  #position(job: Position): number {
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

function compare(a: Position, b: Position): number {
  return a.scheduledTime - b.scheduledTime || a.creationTime - b.creationTime;
}
