/**
 * Scheduled backups. The cron job `svc-backup` keeps the schedule across restarts. This class adds retries after failures and
 * catch-up after interruptions:
 *
 *     cron run, catch-up or retry --> making --ok--> old ones deleted, waits for the cron run
 *                                     making --failed--> waits for a retry with growing delay
 *                                     making --server stops--> the cron's job waits for the next start
 *
 * Catch-up: at startup the newest backup in the target is older than the interval. The target's contents are authoritative, no
 * matter when a server was killed.
 */
import { join } from "node:path";
import { ServiceError } from "../../../errors.ts";
import type { MainAction } from "../../../functions/main_actions.ts";
import { failed, unavailable } from "../../../functions/outcome.ts";
import { removeIfThere } from "../../../kit/durable_files.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import { opsLimits } from "../../limits.ts";
import type { BackupCounts, MakeBackup } from "../backups.ts";
import { type BackupTarget, expiredBackups, newestScheduled, scheduledName } from "./backup_target.ts";

export { BackupTarget } from "./backup_target.ts";

export interface ScheduledBackupsOptions {
  readonly target: Pick<BackupTarget, "location" | "check" | "list" | "put" | "remove">;
  /** Creates a backup of the data folder in a file inside it. */
  readonly make: MakeBackup;
  /** Empty folder in the data folder for archives waiting for the upload. */
  readonly outgoingDir: string;
  readonly everyMs: number;
  readonly keep: number;
  /** Whether stored files are in the data folder and so part of the backup. */
  readonly withFiles: boolean;
  readonly clock: Clock;
  /** Whether no other server makes backups; absent without other servers. */
  readonly mayMake?: () => boolean;
  /** Counts backups, once they are in the target. Optional. */
  readonly counts?: BackupCounts;
  readonly log: Log;
}

export type BackupEnd =
  | { readonly kind: "made" }
  | { readonly kind: "failed"; readonly reason: string }
  /** The server is stopping, or another one may have taken over; retried later. */
  | { readonly kind: "stopped" };

/** Another server may have taken over. */
class NotResponsibleError extends Error {}

export class ScheduledBackups implements AsyncDisposable {
  readonly #options: ScheduledBackupsOptions;
  /** The backup in progress, shared by concurrent requests. */
  #running: Promise<BackupEnd> | null = null;
  /** The listing of the target in progress. */
  #listing: Promise<void> | null = null;
  /** Time of the newest backup made by this process. */
  #madeAt: number | null = null;
  /** Failures since the last success. */
  #failures = 0;
  /** Timer of the next retry. */
  #timer: Timer | null = null;
  #closed = false;
  #failure: string | null = null;
  #listed = false;

  constructor(options: ScheduledBackupsOptions) {
    this.#options = options;
  }

  /** Why the last backup failed, or the target could not be listed; `null` if it succeeded. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Whether the backups of earlier processes are counted. */
  get isListed(): boolean {
    return this.#listed;
  }

  /** Schedules catch-up for an overdue backup. Call once, when the cron job runs. */
  start(): void {
    this.#catchUp();
  }

  /** Makes a backup, unless one is running or was made a moment ago. Never rejects. */
  run(): Promise<BackupEnd> {
    return this.#running ??= this.#run().finally(() => this.#running = null);
  }

  /** Starts nothing more and waits for the backup in progress, which the owner aborts by closing its dependencies. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#running;
    await this.#listing;
  }

  async #run(): Promise<BackupEnd> {
    const { clock, counts, log, target } = this.#options;
    if (this.#closed) return { kind: "stopped" };
    if (this.#isFresh()) return { kind: "made" };
    this.#timer?.cancel();
    if (!this.#mayMake) return this.#leave();
    try {
      const name = await (counts === undefined ? this.#make() : counts.count(() => this.#make()));
      this.#madeAt = clock.now();
      this.#failures = 0;
      this.#failure = null;
      await this.#removeOld(name);
      return { kind: "made" };
    } catch (error) {
      if (error instanceof NotResponsibleError) return this.#leave();
      if (this.#closed || (error instanceof ServiceError && error.code === "unavailable")) {
        return { kind: "stopped" };
      }
      this.#failures++;
      const at = this.#waitForNextTry();
      const reason = error instanceof Error ? error.message : String(error);
      this.#failure = reason;
      log("error", "Scheduled backup failed", {
        code: "backup",
        target: target.location,
        reason,
        nextTry: new Date(at).toISOString(),
      });
      return { kind: "failed", reason };
    }
  }

  async #make(): Promise<string> {
    const { target, make, outgoingDir, withFiles, clock, log } = this.#options;
    await target.check();
    // The backup contains everything committed anywhere before the time in its name.
    if (!this.#mayMake) throw new NotResponsibleError();
    const name = scheduledName(new Date(clock.now()));
    const path = join(outgoingDir, name);
    try {
      // Never with the secret key: more people may have access to the archive than may sign in as any user.
      const made = await make({ out: path, withAux: true, withFiles, includeSecret: false });
      if (this.#closed) throw new ServiceError("unavailable");
      await target.put(name, path);
      const { bytes, ts, missingFiles } = made;
      log("info", "Scheduled backup created", { target: target.location, name, bytes, ts, missingFiles });
      return name;
    } finally {
      await removeIfThere(path);
    }
  }

  /** A failure does not affect the new backup; the next run tries again. */
  async #removeOld(justMade: string): Promise<void> {
    const { target, keep, log } = this.#options;
    try {
      for (const name of expiredBackups(await target.list(), { keep, justMade })) {
        // Skip newer ones of another server, made after this one had lost the role.
        if (this.#closed || !this.#mayMake) return;
        await target.remove(name);
        log("info", "Old scheduled backup deleted", { target: target.location, name });
      }
    } catch (error) {
      // The stop has aborted the listing.
      if (this.#closed) return;
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "Cannot delete old scheduled backups", { code: "backup", target: target.location, reason });
    }
  }

  /** Catch-up and a cron run at the same time need one backup only. */
  #isFresh(): boolean {
    const { clock, everyMs } = this.#options;
    if (this.#madeAt === null) return false;
    const age = clock.now() - this.#madeAt;
    return age >= 0 && age < Math.min(opsLimits.backupFreshMs, everyMs / 2);
  }

  /** Whether nothing has happened since startup. */
  get #isUntried(): boolean {
    return !this.#closed && this.#madeAt === null && this.#running === null && this.#failures === 0;
  }

  #catchUp(): void {
    this.#listing = this.#catchUpNow().finally(() => this.#listing = null);
  }

  async #catchUpNow(): Promise<void> {
    const { target, clock, everyMs, counts, log } = this.#options;
    if (!this.#isUntried) return;
    try {
      const newest = newestScheduled(await target.list());
      if (newest !== null) counts?.found(newest);
      this.#listed = true;
      this.#failure = null;
      const dueAt = newest === null ? -Infinity : newest + everyMs;
      if (!this.#isUntried) return;
      if (dueAt <= clock.now()) await this.run();
      else this.#wait(dueAt, () => this.#catchUp());
    } catch (error) {
      // The stop has aborted the listing.
      if (this.#closed) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#failure = reason;
      log("warn", "Cannot list the scheduled backups", { code: "backup", target: target.location, reason });
      this.#wait(clock.now() + opsLimits.backupRetryMs, () => this.#catchUp());
    }
  }

  get #mayMake(): boolean {
    return this.#options.mayMake?.() ?? true;
  }

  /** Checks again later whether this server makes backups. */
  #leave(): BackupEnd {
    this.#wait(this.#options.clock.now() + opsLimits.backupRetryMs, () => void this.run());
    return { kind: "stopped" };
  }

  /** Returns the time of the retry. */
  #waitForNextTry(): number {
    const { backupRetryMs, backupRetryMsMax } = opsLimits;
    const { clock, everyMs } = this.#options;
    const pauseMs = Math.min(backupRetryMs * 2 ** (this.#failures - 1), backupRetryMsMax, everyMs);
    const at = clock.now() + pauseMs;
    this.#wait(at, () => void this.run());
    return at;
  }

  /** Replaces the timer. Long waits are split, because the clock may be set. */
  #wait(at: number, then: () => void): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    const { clock } = this.#options;
    const ms = Math.max(0, at - clock.now());
    this.#timer = clock.after(Math.min(ms, opsLimits.backupCheckMs), () => {
      if (clock.now() >= at) then();
      else this.#wait(at, then);
    });
  }
}

export const BACKUP_PATH = "_system/backups:run";

/** The action of the cron job `svc-backup`, by path. A stop of the server makes the job run again at the next start. */
export function backupActions(backups: Pick<ScheduledBackups, "run">): ReadonlyMap<string, MainAction> {
  return new Map([[BACKUP_PATH, {
    visibility: "internal",
    async run() {
      const end = await backups.run();
      switch (end.kind) {
        case "made":
          return { ok: true, value: "null", logLines: [] };
        case "failed":
          return failed("user", `Scheduled backup failed: ${end.reason}`);
        case "stopped":
          return unavailable("The backup was interrupted, or another server makes backups");
        default:
          return end satisfies never;
      }
    },
  }]]);
}
