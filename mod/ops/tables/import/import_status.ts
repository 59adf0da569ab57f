/** Status of the running and the last import over HTTP, for clients that reconnect. */

export interface RunningImport {
  readonly table: string;
  /** Whether nothing will be written. */
  readonly dryRun: boolean;
  readonly step: "receiving" | "checking" | "deleting" | "writing";
  /** Bytes processed, and the total or `null` if unknown. */
  readonly done: number;
  readonly of: number | null;
  /** Rows checked, rows written or documents deleted in this step. */
  readonly rows: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

export interface FinishedImport {
  readonly table: string;
  readonly dryRun: boolean;
  readonly endedAt: number;
  /** Rows written; `null` for failed imports and dry runs. */
  readonly imported: number | null;
  /** Reason of a failure. */
  readonly error: string | null;
}

export class ImportStatus {
  readonly #now: () => number;
  #running: RunningImport | null = null;
  #last: FinishedImport | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  get current(): { readonly running: RunningImport | null; readonly last: FinishedImport | null } {
    return { running: this.#running, last: this.#last };
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  begin(what: Pick<RunningImport, "table" | "dryRun" | "of">): void {
    this.#running = { ...what, step: "receiving", done: 0, rows: 0, startedAt: this.#now() };
  }

  update(progress: Partial<Pick<RunningImport, "step" | "done" | "of" | "rows">>): void {
    if (this.#running !== null) this.#running = { ...this.#running, ...progress };
  }

  end(
    { imported = null, error = null }: { readonly imported?: number | null; readonly error?: string | null },
  ): void {
    if (this.#running === null) return;
    const { table, dryRun } = this.#running;
    this.#last = { table, dryRun, endedAt: this.#now(), imported, error };
    this.#running = null;
  }
}
