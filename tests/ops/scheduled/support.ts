/** Scheduled backups on the real scheduler and engine, with a controlled clock and a target in memory. */
import type { MainAction } from "../../../mod/functions/main_actions.ts";
import type { BackupSummary } from "../../../mod/ops/backups/backup.ts";
import type { MakeBackup } from "../../../mod/ops/backups/backups.ts";
import type { Clock } from "../../../mod/kit/clock.ts";
import { BACKUP_PATH, backupActions, ScheduledBackups } from "../../../mod/ops/backups/scheduled/mod.ts";
import { serviceCron } from "../../../mod/scheduler/mod.ts";
import { World } from "../../scheduler/support/test_scheduler.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** A target that stores names only, with controllable failures. */
export class MemoryTarget {
  readonly location = "memory";
  names: string[] = [];
  /** Events in order. */
  readonly events: string[] = [];
  checkFailure: Error | null = null;
  putFailure: Error | null = null;
  listFailure: Error | null = null;

  check(): Promise<void> {
    return this.checkFailure === null ? Promise.resolve() : Promise.reject(this.checkFailure);
  }

  list(): Promise<string[]> {
    return this.listFailure === null ? Promise.resolve([...this.names]) : Promise.reject(this.listFailure);
  }

  put(name: string): Promise<void> {
    if (this.putFailure !== null) return Promise.reject(this.putFailure);
    this.names.push(name);
    this.events.push(`put ${name}`);
    return Promise.resolve();
  }

  remove(name: string): Promise<void> {
    this.names = this.names.filter((other) => other !== name);
    this.events.push(`remove ${name}`);
    return Promise.resolve();
  }
}

export const summary: BackupSummary = {
  path: "",
  bytes: 1,
  ts: 2,
  createdAt: "2030-01-01T00:00:00.000Z",
  parts: ["database"],
  missingFiles: 0,
  history: null,
};

export interface BackupWorldOptions {
  readonly everyMs?: number;
  readonly keep?: number;
  readonly mayMake?: () => boolean;
}

/** A server's schedule, and a target that outlives it. */
export class BackupWorld implements AsyncDisposable {
  readonly target = new MemoryTarget();
  readonly logged: { readonly message: string; readonly fields: Record<string, unknown> }[] = [];
  /** Makes archives, and counts them and the maximum concurrency. */
  make: MakeBackup = () => Promise.resolve(summary);
  made = 0;
  atOnceMax = 0;
  #atOnce = 0;
  readonly #folder: string;
  readonly #options: BackupWorldOptions;
  readonly #runs: Promise<unknown>[] = [];
  #backups: ScheduledBackups | null = null;
  #world: World | null = null;

  private constructor(folder: string, options: BackupWorldOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  static async open(options: BackupWorldOptions = {}): Promise<BackupWorld> {
    const opened = new BackupWorld(await Deno.makeTempDir(), options);
    const { everyMs = DAY } = options;
    const task = { path: BACKUP_PATH, kind: "action" } as const;
    opened.#world = await World.open({
      serviceCrons: [serviceCron("svc-backup", { kind: "interval", everyMs }, task)],
      actions: (clock) => opened.#build(clock),
    });
    opened.backups.start();
    await opened.settle();
    return opened;
  }

  get world(): World {
    if (this.#world === null) throw new Error("It is not open");
    return this.#world;
  }

  get backups(): ScheduledBackups {
    if (this.#backups === null) throw new Error("It is not open");
    return this.#backups;
  }

  /** Times of the backups in the target in hours since the start, in order of creation. */
  get hours(): number[] {
    const start = Date.UTC(2030, 0, 1);
    return this.target.events.filter((event) => event.startsWith("put ")).map((event) => {
      const [, y, mo, d, h, mi, s] = event.match(/scheduled-(....)(..)(..)T(..)(..)(..)Z/) ?? [];
      return (Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s)) - start) /
        HOUR;
    });
  }

  /** Moves the clock from one due time to the next, waiting for each backup. */
  async advance(ms: number): Promise<void> {
    const { clock } = this.world;
    const end = clock.now() + ms;
    await this.settle();
    for (let next = clock.nextAt; next !== null && next <= end; next = clock.nextAt) {
      clock.moveTo(next);
      await this.settle();
    }
    clock.moveTo(end);
    await this.settle();
  }

  /** Stops a server gracefully, or kills it leaving `backups`, and starts it again. */
  async restart({ downMs, killed = false }: { readonly downMs: number; readonly killed?: boolean }) {
    const before = this.backups;
    if (!killed) await before[Symbol.asyncDispose]();
    await this.world.restart({ downMs });
    this.backups.start();
    await this.settle();
    if (killed) await before[Symbol.asyncDispose]();
  }

  async settle(): Promise<void> {
    for (let seen = -1; seen !== this.#runs.length;) {
      seen = this.#runs.length;
      await this.world.quiet();
      await Promise.all(this.#runs);
      await this.world.quiet();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.backups[Symbol.asyncDispose]();
    await this.world[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  #build(clock: Clock): ReadonlyMap<string, MainAction> {
    const { everyMs = DAY, keep = 100, mayMake } = this.#options;
    const runs = this.#runs;
    class WatchedBackups extends ScheduledBackups {
      override run() {
        const run = super.run();
        runs.push(run);
        return run;
      }
    }
    const backups = new WatchedBackups({
      target: this.target,
      make: (options) => this.#make(options),
      outgoingDir: this.#folder,
      everyMs,
      keep,
      withFiles: true,
      clock,
      ...(mayMake && { mayMake }),
      log: (_level, message, fields = {}) => void this.logged.push({ message, fields }),
    });
    this.#backups = backups;
    return backupActions(backups);
  }

  #make(options: Parameters<MakeBackup>[0]): Promise<BackupSummary> {
    this.made++;
    this.atOnceMax = Math.max(this.atOnceMax, ++this.#atOnce);
    return this.make(options).finally(() => this.#atOnce--);
  }
}
