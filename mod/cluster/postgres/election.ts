/**
 * Renews the lease, or takes a free one: the server applies the log to its end, then its backend restarts as leader. The
 * `PostgresCluster` creates one for its lifetime; its loop runs until `end`. It takes the lease only while a follower is served
 * near the end of the log, and never while it holds off or the server stops. Errors of PostgreSQL are logged and retried.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Log } from "../../kit/log.ts";
import type { MakeBackup } from "../../ops/backups/mod.ts";
import type { LogPosition } from "../../ops/replication/mod.ts";
import type { LeadingServer } from "../mod.ts";
import { AwayError } from "./connection.ts";
import type { ClusterDatabase } from "./database.ts";
import type { Lease, LeaseHolder } from "./lease.ts";
import { clusterLimits } from "./limits.ts";

export type ClusterRole = "leader" | "follower";

/** The served backend, as the cluster uses it. */
export interface ServedState {
  readonly position: () => Pick<LogPosition, "seq" | "ts">;
  readonly sockets: () => number;
  /** Age of the oldest commit that may be missing here, in milliseconds; `null` if unknown or on the leader. */
  readonly lagMs: () => number | null;
  readonly makeBackup: MakeBackup;
  /** Ends work that only the leader may run, because another server may lead now. */
  readonly lapsed: () => Promise<void>;
  /** Restarts the backend in the role that `begin` returns. */
  readonly restart: () => void;
}

export interface LinkState {
  /** Number of links from other servers; `null` while this server does not accept any. */
  readonly links: () => number | null;
  /** Time without a link to a leader; `null` while there is one or this server leads. */
  readonly unlinkedMs: () => number | null;
}

export interface ElectionOptions {
  readonly database: ClusterDatabase;
  readonly lease: Lease;
  readonly leaseMs?: number;
  readonly logEnd: () => Promise<LogPosition>;
  readonly state: () => { readonly role: ClusterRole; readonly served: ServedState | null };
  /** Called after each check while a backend is served. Must not throw. */
  readonly onChecked: (served: ServedState) => void;
  /** Aborted when the server stops. A leader keeps its lease until `end`. */
  readonly stopping: AbortSignal;
  readonly log: Log;
}

export class Election {
  readonly #options: ElectionOptions;
  readonly #ended = new AbortController();
  /** Never rejects. */
  readonly #loop: Promise<void>;
  linkState: LinkState = { links: () => null, unlinkedMs: () => null };
  /** Called at checks of a follower with the last holder of the lease, even if it expired; `null`: there is none. */
  onLeader: (leader: LeadingServer | null) => void = () => {};
  /** Expected end of another server's lease, by performance.now(). */
  #othersEndAt = Infinity;
  /** Do not acquire the lease before this time (performance.now()). */
  #holdOffUntil = 0;
  /** Newest position, and when it was reached, while this server has the lease and does not lead. */
  #progress: { readonly seq: number; readonly at: number } | null = null;
  #awaySince: number | null = null;
  /** When the last link of another server ended, by performance.now(); `null` unless this leader is unreachable. */
  #unreachedSince: number | null = null;
  /** Whether a server without links releases the lease: once, until it was reached again. */
  #mayYield = true;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#loop = this.#run();
  }

  /** Start of the current outage of PostgreSQL, by performance.now(). */
  get awaySince(): number | null {
    return this.#awaySince;
  }

  /** Whether this server must not take the lease now. */
  get isHoldingOff(): boolean {
    return performance.now() < this.#holdOffUntil;
  }

  /** Leaves the lease to other servers for a while. */
  async holdOff(): Promise<void> {
    this.#holdOffUntil = performance.now() + clusterLimits.holdOffMs;
    await this.#options.lease.release();
  }

  /** Checks the lease at once. */
  check(): void {
    const { notifications, channels } = this.#options.database;
    notifications.notify(channels.lease);
  }

  /** Stops the loop, after a check in progress. Does not release the lease. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    const { database, leaseMs = clusterLimits.leaseMs } = this.#options;
    const { notifications, channels: { lease: channel } } = database;
    const renewMs = Math.min(clusterLimits.renewMs, leaseMs / 3);
    // The constructor of the owner ends first.
    await Promise.resolve();
    while (!signal.aborted) {
      let notified = notifications.since(channel);
      let pauseMs = renewMs;
      const startedAt = performance.now();
      try {
        await this.#check();
        // After a slow renewal, the next one is due sooner.
        pauseMs = Math.max(clusterLimits.reconnectMs, renewMs - (performance.now() - startedAt));
        if (this.#awaySince !== null) database.logRecovery(this.#awaySince);
        this.#awaySince = null;
      } catch (error) {
        if (signal.aborted) return;
        pauseMs = this.#onError(error, renewMs);
        // A new connection counts as a notification. Wait for the next one, or a failed attempt would repeat at once.
        notified = (wait) => notifications.next(channel, wait);
      }
      const othersMs = Math.max(0, this.#othersEndAt - performance.now()) + clusterLimits.endedMs;
      this.#othersEndAt = Infinity;
      await notified({ ms: Math.min(pauseMs, othersMs), signal });
    }
  }

  /** Returns the pause before the next check. */
  #onError(error: unknown, renewMs: number): number {
    const { database, lease, log } = this.#options;
    const isAway = error instanceof AwayError;
    if (isAway && this.#awaySince === null) database.logOutage(error);
    if (!isAway) {
      log("error", "The cluster's database rejected a query for the lease", { code: "cluster", error });
    }
    this.#awaySince ??= performance.now();
    // Links are not counted during an outage.
    this.#unreachedSince = null;
    // Only the connection may be lost: the lease can be renewed on another one.
    return isAway && lease.isSure ? clusterLimits.reconnectMs : renewMs;
  }

  async #check(): Promise<void> {
    const { lease, log, state, onChecked } = this.#options;
    const { role, served } = state();
    let checkedHolder = false;
    if (this.#isStuck()) {
      log("warn", "This server makes no progress in the log and releases the lease");
      await this.holdOff();
    }
    if (lease.epoch !== null) {
      const renewed = await lease.renew();
      if (renewed === null) {
        log("warn", "Another server has taken the lease of the cluster", { code: "cluster" });
        if (role === "leader") served?.restart();
        return;
      }
      if (served !== null && this.#isUnreached(renewed.others)) return await this.#yield(served);
      if (role === "follower" && served !== null) await this.#applyToEnd(served);
    } else if (this.#mayTake(served)) {
      const isFree = await this.#isFree();
      checkedHolder = !isFree;
      // The server may have begun to stop in the meantime.
      if (isFree && await this.#isNearEnd(served) && this.#mayTake(served) && await lease.take()) {
        log("info", "The lease of the cluster had ended and was taken", { epoch: lease.epoch });
        await this.#applyToEnd(served);
      }
    }
    if (served === null) return;
    if (lease.epoch === null && !checkedHolder) this.#onHolder(await lease.holder());
    onChecked(served);
  }

  /** Returns whether several other servers are alive, and none of them has had a link to this leader for a while. */
  #isUnreached(others: number): boolean {
    const links = this.#options.state().role === "leader" ? this.linkState.links() : null;
    if (links !== null && links > 0) this.#mayYield = true;
    else if (links !== null && others >= clusterLimits.othersMin && this.#mayYield) {
      this.#unreachedSince ??= performance.now();
      return performance.now() - this.#unreachedSince > clusterLimits.unreachedMs;
    }
    this.#unreachedSince = null;
    return false;
  }

  /** Releases the lease for servers that cannot reach this one. */
  async #yield(served: ServedState): Promise<void> {
    this.#options.log("warn", "No other server reaches this leader, which releases the lease", {
      code: "cluster",
    });
    this.#mayYield = false;
    this.#unreachedSince = null;
    this.#holdOffUntil = performance.now() + clusterLimits.holdOffMs;
    await served.lapsed();
    // Commits until another server takes the lease are valid.
    await this.#options.lease.release();
    served.restart();
  }

  #onHolder(holder: LeaseHolder | null): void {
    const leader = holder === null || holder.isThis ? null : holder;
    const isOver = leader === null || leader.leftMs < 0;
    this.#othersEndAt = isOver ? Infinity : performance.now() + leader.leftMs;
    this.onLeader(leader);
  }

  #mayTake(served: ServedState | null): served is ServedState {
    const { state, stopping } = this.#options;
    return state().role === "follower" && served !== null && !stopping.aborted && !this.isHoldingOff;
  }

  /** Returns whether this server has the lease, but has not come nearer to the end of the log for long. */
  #isStuck(): boolean {
    const { lease, state } = this.#options;
    const { role, served } = state();
    if (lease.epoch === null || role === "leader") {
      this.#progress = null;
      return false;
    }
    const seq = served?.position().seq ?? 0;
    const now = performance.now();
    if (this.#progress === null || seq > this.#progress.seq) this.#progress = { seq, at: now };
    return now - this.#progress.at > clusterLimits.stuckMs;
  }

  /** Returns whether the lease is free, after a random delay, so that few servers compete. */
  async #isFree(): Promise<boolean> {
    const { lease, database: { notifications, channels } } = this.#options;
    const holder = await lease.holder();
    this.#onHolder(holder);
    if (holder !== null && holder.leftMs >= 0) return false;
    const { signal } = this.#ended;
    // A faster server sends a notification.
    await notifications.next(channels.lease, { ms: (0.5 + Math.random()) * clusterLimits.jitterMs, signal });
    return !signal.aborted;
  }

  /** A server far from the end of the log would hold the lease for long before it can commit. */
  async #isNearEnd(served: ServedState): Promise<boolean> {
    const { seq } = await this.#options.logEnd();
    return seq - served.position().seq < clusterLimits.takeRowsMax;
  }

  /** With the lease, no other server can append rows, so the log has its final end. */
  async #applyToEnd(served: ServedState): Promise<void> {
    const { database: { notifications, channels }, logEnd, state, stopping } = this.#options;
    const { seq } = await logEnd();
    const until = performance.now() + clusterLimits.renewMs;
    while (served.position().seq < seq) {
      // The next check continues, after a renewal.
      if (performance.now() > until || stopping.aborted) return;
      notifications.notify(channels.log);
      await wait(clusterLimits.applyCheckMs);
    }
    if (state().served === served) served.restart();
  }
}
