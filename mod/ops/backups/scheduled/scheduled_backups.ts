/**
 * Backups on a schedule. The cron `svc-backup` keeps the beat, also over restarts. What it cannot know is told here: a
 * backup that failed, or was cut off with the server, is made up for.
 *
 *     cron's turn, late, or next try --> making --ok--> old ones go, waits for the turn
 *                                        making --failed--> waits for the next try, each longer than the one before
 *                                        making --server stops--> the cron's job waits for the next start
 *
 * `late`: at the start the newest backup in the target is older than the interval; the target is the truth about what was
 * made, whoever was killed when.
 */
import { join } from "node:path";
import { ServiceError } from "../../../errors.ts";
import { removeIfThere } from "../../../kit/durable_files.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import { opsLimits } from "../../limits.ts";
import type { BackupCounts } from "../backup_counts.ts";
import type { MakeBackup } from "../backups.ts";
import type { BackupTarget } from "./backup_target.ts";
import { newestScheduled, scheduledName, superfluous } from "./names.ts";

export interface ScheduledBackupsOptions {
  readonly target: BackupTarget;
  /** Makes a backup of the data folder into a file of it. */
  readonly make: MakeBackup;
  /** Empty folder in the data folder, for archives on their way to the target. */
  readonly outgoingDir: string;
  readonly everyMs: number;
  /** Scheduled backups that are left in the target. */
  readonly keep: number;
  /** Whether uploaded files lie in the data folder, and so go with it. */
  readonly withFiles: boolean;
  readonly clock: Clock;
  /** Whether no other server makes them by now; absent where there is no other. */
  readonly mayMake?: () => boolean;
  /** Told of each backup, which counts once it is in the target; nobody has to be. */
  readonly counts?: BackupCounts;
  readonly log: Log;
}

export type BackupEnd =
  | { readonly kind: "made" }
  | { readonly kind: "failed"; readonly reason: string }
  /** The server stops, or another one may make them by now: it has to be made later. */
  | { readonly kind: "stopped" };

/** Another server may make them by now. */
class AnothersError extends Error {}

export class ScheduledBackups implements AsyncDisposable {
  readonly #options: ScheduledBackupsOptions;
  /** The backup under way: whoever asks for one meanwhile gets this one. */
  #running: Promise<BackupEnd> | null = null;
  /** The look at the target under way. */
  #looking: Promise<void> | null = null;
  /** When the newest backup of this server's life was there; set by each one that succeeds. */
  #madeAt: number | null = null;
  /** Failures since the last success. */
  #failures = 0;
  /** Ends the wait for the next try. */
  #timer: Timer | null = null;
  #closed = false;

  constructor(options: ScheduledBackupsOptions) {
    this.#options = options;
  }

  /** Sees to it that a backup which is late is made soon. To be called once, when the cron runs. */
  start(): void {
    this.#look();
  }

  /** Makes one now; two never run at once. One that was made a moment ago is it. Never rejects. */
  run(): Promise<BackupEnd> {
    return this.#running ??= this.#run().finally(() => this.#running = null);
  }

  /**
   * Begins nothing more and waits for what is under way, which the owner ends: by closing what makes backups and where they
   * go.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#running;
    await this.#looking;
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
      await this.#removeOld(name);
      return { kind: "made" };
    } catch (error) {
      if (error instanceof AnothersError) return this.#leave();
      if (this.#closed || (error instanceof ServiceError && error.code === "unavailable")) {
        return { kind: "stopped" };
      }
      this.#failures++;
      const at = this.#waitForNextTry();
      const reason = error instanceof Error ? error.message : String(error);
      log("error", "A scheduled backup failed", {
        target: target.place,
        reason,
        nextTry: new Date(at).toISOString(),
      });
      return { kind: "failed", reason };
    }
  }

  /** Gives the name of the new backup. */
  async #make(): Promise<string> {
    const { target, make, outgoingDir, withFiles, clock, log } = this.#options;
    await target.check();
    // What is made from here on has all that was committed anywhere before the time in its name.
    if (!this.#mayMake) throw new AnothersError();
    const name = scheduledName(new Date(clock.now()));
    const path = join(outgoingDir, name);
    try {
      // Never the secret key: an archive may lie where more people can read it than may sign in as anybody.
      const made = await make({ out: path, withAux: true, withFiles, includeSecret: false });
      if (this.#closed) throw new ServiceError("unavailable");
      await target.put(name, path);
      const { bytes, ts, missingFiles } = made;
      log("info", "A scheduled backup was made", { target: target.place, name, bytes, ts, missingFiles });
      return name;
    } finally {
      await removeIfThere(path);
    }
  }

  /** The new backup is there whether or not this succeeds: the next one tries again. */
  async #removeOld(justMade: string): Promise<void> {
    const { target, keep, log } = this.#options;
    try {
      for (const name of superfluous(await target.list(), { keep, justMade })) {
        // Those of another server that are newer were not there when this one still made them.
        if (this.#closed || !this.#mayMake) return;
        await target.remove(name);
        log("info", "An old scheduled backup was deleted", { target: target.place, name });
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "Old scheduled backups could not be deleted", { target: target.place, reason });
    }
  }

  /** A late one and the cron's turn may come at once: that is one backup. */
  #isFresh(): boolean {
    const { clock, everyMs } = this.#options;
    if (this.#madeAt === null) return false;
    const age = clock.now() - this.#madeAt;
    return age >= 0 && age < Math.min(opsLimits.backupFreshMs, everyMs / 2);
  }

  /** Whether nothing has begun since the start: what has goes on by itself. */
  get #isUntried(): boolean {
    return !this.#closed && this.#madeAt === null && this.#running === null && this.#failures === 0;
  }

  #look(): void {
    this.#looking = this.#lookNow().finally(() => this.#looking = null);
  }

  async #lookNow(): Promise<void> {
    const { target, clock, everyMs, counts, log } = this.#options;
    if (!this.#isUntried) return;
    try {
      const newest = newestScheduled(await target.list());
      if (newest !== null) counts?.found(newest);
      const dueAt = newest === null ? -Infinity : newest + everyMs;
      if (!this.#isUntried) return;
      if (dueAt <= clock.now()) await this.run();
      else this.#wait(dueAt, () => this.#look());
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log("warn", "The scheduled backups could not be listed", { target: target.place, reason });
      this.#wait(clock.now() + opsLimits.backupRetryMs, () => this.#look());
    }
  }

  get #mayMake(): boolean {
    return this.#options.mayMake?.() ?? true;
  }

  /** It may be for this server again, when nobody else has come to make them. */
  #leave(): BackupEnd {
    this.#wait(this.#options.clock.now() + opsLimits.backupRetryMs, () => void this.run());
    return { kind: "stopped" };
  }

  /** Gives the time of it. */
  #waitForNextTry(): number {
    const { backupRetryMs, backupRetryMsMax } = opsLimits;
    const { clock, everyMs } = this.#options;
    const pauseMs = Math.min(backupRetryMs * 2 ** (this.#failures - 1), backupRetryMsMax, everyMs);
    const at = clock.now() + pauseMs;
    this.#wait(at, () => void this.run());
    return at;
  }

  /** One wait at a time; long ones in pieces, because the clock may be set meanwhile. */
  #wait(at: number, then: () => void): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    const { clock } = this.#options;
    const ms = Math.max(0, at - clock.now());
    this.#timer = clock.after(Math.min(ms, opsLimits.backupLookMs), () => {
      if (clock.now() >= at) then();
      else this.#wait(at, then);
    });
  }
}
