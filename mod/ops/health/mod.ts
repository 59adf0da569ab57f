/** Readiness: a check makes the server commit and read a heartbeat; results of the last seconds are reused. */
import { Hono } from "hono";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { createApi } from "../../protocol/api_reference.ts";
import { opsLimits, statsLimits } from "../limits.ts";
import type { healthFunctions } from "./isolate_functions.ts";

const system = createApi<{ "_system/health": typeof healthFunctions }>().internal._system.health;

export type Part = "ok" | "failing";

export interface ReadinessReport {
  readonly status: "ready" | "unready";
  /** Whether a commit succeeded recently. */
  readonly commits: Part;
  readonly reads: Part;
  /** Whether subscriptions were updated to it. */
  readonly pushes: Part;
  /** `closed`: this process accepts no connections. */
  readonly listener: "open" | "closed";
  /** `low`: less free space than the server needs. */
  readonly disk: "ok" | "low" | "unknown";
  /** `null` without replication. */
  readonly replication: { readonly lagMs: number } | null;
  /** Followers only: how far it lags, as far as known. */
  readonly follower?: FollowerLag;
  readonly cluster?: ClusterPart;
}

/** Role of a cluster member, and whether it reaches the cluster's database. */
export interface ClusterPart {
  readonly role: "leader" | "follower";
  readonly database: "ok" | "away";
  /** Whether a follower reaches the leader, which runs its mutations. Absent on the leader. */
  readonly link?: "ok" | "lost";
}

export interface FollowerLag {
  readonly ts: number;
  readonly lagCommits: number;
  /** Time since the oldest change that may not be visible yet; `null` before the first check. */
  readonly lagMs: number | null;
}

export interface ReadinessOptions {
  readonly calls: Pick<SystemCalls, "mutate" | "query">;
  /** Free bytes on the data folder's disk; `null` if unavailable. */
  readonly freeBytes: () => Promise<number | null>;
  /** Whether the port accepts connections. */
  readonly listening: () => boolean;
  /** Replication lag; `null` without replication. */
  readonly replicationLagMs: () => number | null;
  /** Set on followers, which make no commits. */
  readonly follower?: (() => FollowerLag) | null;
  /** Set on cluster members. */
  readonly cluster?: () => ClusterPart;
  readonly now: () => number;
}

export class Readiness {
  readonly #options: ReadinessOptions;
  /** Times of the last successful commit, and of a result that included it. */
  #committedAt = -Infinity;
  #pushedAt = -Infinity;
  /** The check in progress, shared by concurrent requests. */
  #checking: Promise<void> | null = null;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  async report(): Promise<ReadinessReport> {
    const { freeBytes, listening, replicationLagMs } = this.#options;
    if (!this.#fresh(this.#committedAt) || !this.#fresh(this.#pushedAt)) {
      await (this.#checking ??= this.#check().finally(() => this.#checking = null));
    }
    const free = await freeBytes();
    const follower = this.#options.follower?.();
    const commits = this.#part(this.#committedAt);
    const pushes = this.#part(this.#pushedAt);
    const disk = free === null ? "unknown" : free > opsLimits.diskReserveBytes ? "ok" : "low";
    const lagMs = replicationLagMs();
    const cluster = this.#options.cluster?.();
    // Reads work, which is all this server can do: without the cluster's database no other one could do more.
    const readsOn = cluster?.role === "follower" && cluster.database === "away";
    const listener = listening() ? "open" : "closed";
    const writes = readsOn || (commits === "ok" && cluster?.link !== "lost");
    const ready = listener === "open" && writes && pushes === "ok" && disk !== "low";
    return {
      status: ready ? "ready" : "unready",
      commits,
      // One result shows both: it was read after a commit and includes it.
      reads: pushes,
      pushes,
      listener,
      disk,
      replication: lagMs === null ? null : { lagMs },
      ...(follower && { follower }),
      ...(cluster && { cluster }),
    };
  }

  /** Commits a heartbeat and waits until a shared query shows it. Bounded by a timeout. */
  async #check(): Promise<void> {
    const { calls, now, follower = null } = this.#options;
    const beat = now();
    const done = follower !== null ? this.#checkFollower(follower) : (async () => {
      await calls.mutate(system.beat, { beat });
      this.#committedAt = now();
      if ((await calls.query(system.last, {}) ?? -1) >= beat) this.#pushedAt = now();
    })();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, statsLimits.readyMs));
    // A failure counts as not seen; its reason is logged where it occurred.
    await Promise.race([done.catch(() => {}), late]);
    clearTimeout(timer);
  }

  /** A follower's commits work while it is up to date or catching up. */
  async #checkFollower(follower: () => FollowerLag): Promise<void> {
    const { calls, now } = this.#options;
    await calls.query(system.last, {});
    this.#pushedAt = now();
    const { lagMs } = follower();
    if (lagMs !== null && lagMs < statsLimits.followerLateMs) this.#committedAt = now();
  }

  #fresh(at: number): boolean {
    return this.#options.now() - at < statsLimits.readySeenMs;
  }

  #part(at: number): Part {
    return this.#fresh(at) ? "ok" : "failing";
  }
}

/** `GET /api/health/ready`, for load balancers and supervisors; requires no token. */
export function healthRoutes(readiness: Pick<Readiness, "report">): Hono {
  return new Hono().get("/ready", async (c) => {
    const report = await readiness.report();
    return c.json(report, report.status === "ready" ? 200 : 503, { "Cache-Control": "no-store" });
  });
}
