/**
 * Replication in the main process: a child process ships the journal. Main notifies it of new commits, makes snapshots
 * for it, and forwards confirmed positions to the writer. None of the shipping runs in main.
 */
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { replicationLimits } from "../limits.ts";
import type { BackupSummary } from "../backups/mod.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { Begin, FromProcess } from "./process/messages.ts";
import { ReplicaProcess } from "./process/replica_process.ts";
import { ShippingDelay } from "./shipping_delay.ts";
import type { JournalRestart } from "./shipper.ts";
import type { GenerationReport, ShippingStatus } from "./status.ts";
import { LocationError, locationText, type ObjectLocation } from "../../kit/locations/object_store.ts";

export interface ReplicationOptions {
  /** Absolute; held by this server. */
  readonly dataDir: string;
  /** Address of this server, shown to other servers. */
  readonly server: string;
  readonly target: ObjectLocation;
  readonly everyMs: number;
  readonly snapshotEveryMs: number;
  readonly keepMs: number;
  /** URL requested after confirmed shipments, or `null`. */
  readonly heartbeatUrl: string | null;
  /** Makes a backup without files, in a path of the data folder. */
  readonly makeBackup: (options: {
    readonly out: string;
    readonly withAux: boolean;
    readonly withFiles: boolean;
    readonly includeSecret: boolean;
  }) => Promise<BackupSummary>;
  /** Notifies the writer of confirmed rows and journal restarts. */
  readonly updateJournal: (
    message:
      | { readonly type: "JournalConfirmed"; readonly generation: string; readonly seq: number }
      | ({ readonly type: "JournalRestart" } & JournalRestart),
  ) => void;
  /** The newest commit. */
  readonly ts: () => number;
  readonly log: Log;
}

/** Folder for new snapshots, below the data folder. */
const SNAPSHOT_DIR = "outgoing-snapshot";

const { now } = Date;

export class Replication implements AsyncDisposable {
  readonly #options: ReplicationOptions;
  readonly #begin: Begin;
  readonly #heartbeat: Heartbeat;
  #process: ReplicaProcess | null = null;
  #status: ShippingStatus | null = null;
  /** Set while the process has not been notified of new commits. */
  #shipTimer: ReturnType<typeof setTimeout> | undefined;
  /** Times by the monotonic clock: the last notification of the process, and the earliest start of a commit's wait. */
  #notifiedAt = performance.now();
  #waitingSince: number | null = null;
  readonly #delay: ShippingDelay;
  #restartTimer: ReturnType<typeof setTimeout> | undefined;
  #restarts = 0;
  /** The last error that was logged. */
  #logged: string | null = null;
  #reports = 0;
  readonly #pendingReports = new Map<number, (generations: readonly GenerationReport[]) => void>();
  readonly #pendingSnapshots: ((status: ShippingStatus) => void)[] = [];
  #snapshot: Promise<void> = Promise.resolve();
  /** Settles when the generation has a snapshot, or will not have one soon. */
  readonly #firstSnapshot = Promise.withResolvers<void>();
  #closed = false;

  private constructor(options: ReplicationOptions) {
    this.#options = options;
    const { dataDir, server: host, target, snapshotEveryMs, keepMs, heartbeatUrl, log } = options;
    this.#heartbeat = new Heartbeat(heartbeatUrl, { log });
    this.#delay = new ShippingDelay(options.everyMs);
    const claim = { instance: crypto.randomUUID(), host, since: new Date().toISOString() };
    this.#begin = { type: "Begin", work: "ship", dataDir, target, claim, snapshotEveryMs, keepMs };
  }

  /**
   * Starts, and waits for a bounded time until commits from now on can be restored, which takes a snapshot
   * when a generation begins. Throws a `LocationError` when the target is not a replica, or refuses access. An unreachable
   * target is only logged, since availability takes precedence over replication.
   */
  static async start(options: ReplicationOptions): Promise<Replication> {
    const replication = new Replication(options);
    await replication.#claim();
    await replication.#waitForFirstSnapshot();
    return replication;
  }

  async #claim(): Promise<void> {
    await removeIfThere(join(this.#options.dataDir, SNAPSHOT_DIR));
    const fault = await this.#start();
    if (fault !== null && (fault.fault === "target" || fault.fault === "refused")) {
      await this[Symbol.asyncDispose]();
      throw new LocationError(fault.fault, fault.message);
    }
    this.committed();
  }

  async #waitForFirstSnapshot(): Promise<void> {
    const { promise, resolve } = this.#firstSnapshot;
    const late = setTimeout(resolve, replicationLimits.firstSnapshotMs);
    await promise;
    clearTimeout(late);
  }

  /** Call after each group of commits. */
  committed(): void {
    if (this.#closed) return;
    this.#waitingSince ??= performance.now();
    this.#shipTimer ??= setTimeout(() => {
      this.#shipTimer = undefined;
      this.#notifiedAt = performance.now();
      this.#process?.send({ type: "Ship" });
    }, this.#delay.waitMs);
  }

  /** Returns the current figures, and the restorable generations from the process. */
  async status(): Promise<object> {
    return { ...this.figures(), generations: await this.#report() };
  }

  /** Returns the current figures without the restorable generations. */
  figures() {
    const { target, ts } = this.#options;
    const status = this.#status;
    const currentTs = ts();
    const shippedTs = status?.shippedTs ?? null;
    const oldestAt = status?.pending.oldestAt ?? null;
    return {
      enabled: true,
      target: locationText(target),
      generation: status?.generation ?? null,
      currentTs,
      shippedTs,
      lagCommits: shippedTs === null ? null : currentTs - shippedTs,
      lagMs: shippedTs === null
        ? null
        : shippedTs >= currentTs
        ? 0
        : Math.max(0, oldestAt === null ? this.#waitingMs : now() - oldestAt),
      journalBytes: status?.pending.bytes ?? null,
      lastSegment: withIsoTime(status?.lastSegment ?? null),
      lastSnapshot: withIsoTime(status?.lastSnapshot ?? null),
      takenBy: status?.takenBy ?? null,
      errors: (status?.errors ?? []).map(({ at, message }) => ({ at: new Date(at).toISOString(), message })),
      counts: status?.counts ?? null,
    } as const;
  }

  /** Age of the oldest commit that the process has not reported as shipped. */
  get #waitingMs(): number {
    return this.#waitingSince === null ? 0 : Math.round(performance.now() - this.#waitingSince);
  }

  /** Makes and ships a snapshot. Throws a `ServiceError` with the reason if that fails. */
  async takeSnapshot(): Promise<object> {
    const before = this.#status;
    if (this.#process === null || before === null || before.generation === null || before.takenBy !== null) {
      const reason = before?.errors.at(-1)?.message ?? "the target has not answered yet";
      throw new ServiceError("unavailable", `No snapshot can be shipped now: ${reason}`);
    }
    const { promise, resolve } = Promise.withResolvers<ShippingStatus>();
    this.#pendingSnapshots.push(resolve);
    this.#process.send({ type: "WantSnapshot" });
    const after = await promise;
    if (after.lastSnapshot === null || after.counts.snapshots === before.counts.snapshots) {
      throw new ServiceError(
        "backup_failed",
        after.errors.at(-1)?.message ?? "The snapshot could not be made",
      );
    }
    return { generation: after.generation, snapshot: withIsoTime(after.lastSnapshot) };
  }

  /** Ships the remaining commits for a bounded time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#shipTimer);
    clearTimeout(this.#restartTimer);
    await this.#process?.close(replicationLimits.closeMs);
    await this.#snapshot;
    await this.#heartbeat[Symbol.asyncDispose]();
    await removeIfThere(join(this.#options.dataDir, SNAPSHOT_DIR));
  }

  /** Starts the process. Returns the first error of the target, if any. */
  async #start(): Promise<{ readonly fault: LocationError["fault"]; readonly message: string } | null> {
    const opened = Promise.withResolvers<
      { readonly fault: LocationError["fault"]; readonly message: string } | null
    >();
    const process = await ReplicaProcess.start(this.#begin, (message) => {
      if (message.type === "Opened") opened.resolve(message.fault);
      else this.#onMessage(message);
    });
    this.#process = process;
    void process.ended.then(() => {
      opened.resolve({ fault: "away", message: "The process that ships has ended" });
      this.#ended();
    });
    const late = setTimeout(
      () => opened.resolve({ fault: "away", message: "the target has not answered yet" }),
      replicationLimits.openMs,
    );
    const fault = await opened.promise;
    clearTimeout(late);
    if (fault !== null) {
      this.#logProblem(fault.message);
      this.#firstSnapshot.resolve();
    }
    return fault;
  }

  #ended(): void {
    this.#process = null;
    this.#firstSnapshot.resolve();
    this.#answerAll();
    if (this.#closed) return;
    const { restartMsMin, restartMsMax } = replicationLimits;
    const pauseMs = Math.min(restartMsMax, restartMsMin * 2 ** this.#restarts++);
    this.#options.log("warn", "The process that ships to the replica ended; restarting it", {
      code: "replication",
      pauseMs,
    });
    this.#restartTimer = setTimeout(
      () =>
        void this.#start().catch((error) => {
          this.#logProblem(String(error));
          this.#ended();
        }),
      pauseMs,
    );
  }

  #onMessage(message: Exclude<FromProcess, { type: "Opened" }>): void {
    const { updateJournal } = this.#options;
    switch (message.type) {
      case "Confirmed":
        this.#restarts = 0;
        updateJournal({ type: "JournalConfirmed", generation: message.generation, seq: message.seq });
        this.#heartbeat.beat();
        break;
      case "Restart":
        updateJournal({ type: "JournalRestart", generation: message.generation, reason: message.reason });
        // The next group of commits may be far off, so notify the process now.
        this.committed();
        break;
      case "SnapshotWanted":
        this.#snapshot = this.#snapshot.then(() => this.#makeSnapshot());
        break;
      case "SnapshotTaken":
        this.#snapshot = this.#snapshot.then(() => removeIfThere(join(this.#options.dataDir, SNAPSHOT_DIR)));
        break;
      case "Status":
        this.#onStatus(message.status);
        break;
      case "Report":
        this.#pendingReports.get(message.id)?.(message.generations);
        this.#pendingReports.delete(message.id);
        break;
      case "Progress":
      case "Staged":
      case "History":
      case "Updated":
      case "LogRow":
      case "LogBatch":
      case "LogFault":
        break;
      default:
        message satisfies never;
    }
  }

  #onStatus(status: ShippingStatus): void {
    const before = this.#status;
    this.#status = status;
    if (status.restorable || status.takenBy !== null || status.counts.failures > 0) {
      this.#firstSnapshot.resolve();
    }
    const { log, ts } = this.#options;
    const { shippedTs } = status;
    if (status.lastSegment !== null && status.lastSegment.toTs !== before?.lastSegment?.toTs) {
      this.#delay.record(performance.now() - this.#notifiedAt);
    }
    if (shippedTs !== null && shippedTs >= ts()) this.#waitingSince = null;
    // All rows of the last notification are shipped: waiting commits are newer.
    else if (shippedTs !== (before?.shippedTs ?? null)) this.#waitingSince = this.#notifiedAt;
    if (status.generation !== null && status.generation !== before?.generation) {
      const { generation, reason } = status;
      log(reason === "overflow" || reason === "lost" ? "warn" : "info", "Replication started a generation", {
        generation,
        reason,
      });
    }
    if (status.aheadMs !== null && status.aheadMs !== before?.aheadMs) {
      log(
        "info",
        "The newest object at the replication target is old: replication was paused, or the clock is wrong",
        {
          hours: Math.round(status.aheadMs / 3_600_000),
        },
      );
    }
    const newest = status.errors.at(-1);
    if (newest !== undefined && status.counts.failures !== before?.counts.failures) {
      this.#logProblem(newest.message);
    } else if (status.lastSegment !== null && status.lastSegment.at > (newest?.at ?? 0)) this.#logged = null;
    // Requested snapshots are shipped or have failed.
    const shipped = status.counts.snapshots !== before?.counts.snapshots;
    const failed = newest !== undefined && newest.at !== before?.errors.at(-1)?.at;
    if (shipped || failed) this.#answerAll();
  }

  #answerAll(): void {
    const status = this.#status;
    for (const [id, resolve] of this.#pendingReports) {
      if (this.#process !== null) break;
      resolve([]);
      this.#pendingReports.delete(id);
    }
    if (status === null) return;
    for (const resolve of this.#pendingSnapshots.splice(0)) resolve(status);
  }

  async #makeSnapshot(): Promise<void> {
    const { dataDir, makeBackup, log } = this.#options;
    const folder = join(dataDir, SNAPSHOT_DIR);
    const path = join(folder, "snapshot.tar.zst");
    try {
      await removeIfThere(folder);
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const made = await makeBackup({ out: path, withAux: false, withFiles: false, includeSecret: false });
      const { ts, history, createdAt } = made;
      this.#process?.send({ type: "Snapshot", made: { path, ts, history, at: Date.parse(createdAt) } });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (!this.#closed) {
        log("warn", "Cannot make a snapshot for the replica", { code: "replication", reason: message });
      }
      this.#process?.send({ type: "NoSnapshot", message });
    }
  }

  async #report(): Promise<readonly GenerationReport[]> {
    const process = this.#process;
    if (process === null || this.#status?.generation === null) return [];
    const { promise, resolve } = Promise.withResolvers<readonly GenerationReport[]>();
    const id = ++this.#reports;
    this.#pendingReports.set(id, resolve);
    process.send({ type: "Report", id });
    return await promise;
  }

  /** Logs a problem unless the last one had the same message. */
  #logProblem(message: string): void {
    if (this.#logged === message) return;
    this.#logged = message;
    this.#options.log("warn", "Replication problem", { code: "replication", reason: message });
  }
}

function withIsoTime(object: ShippingStatus["lastSegment"]): object | null {
  return object === null ? null : { ...object, at: new Date(object.at).toISOString() };
}
