/**
 * Whether the server does its work: commits, and what has to follow them. Who asks has the server make a commit of its own and
 * look at it; what was seen within the last seconds is believed.
 */
import type { SystemCalls } from "../../functions/system_calls.ts";
import { createApi } from "../../protocol/api_reference.ts";
import { opsLimits, statsLimits } from "../limits.ts";
import type { healthFunctions } from "./isolate_functions.ts";

const system = createApi<{ "_system/health": typeof healthFunctions }>().internal._system.health;

export type Part = "ok" | "failing";

export interface ReadinessReport {
  readonly status: "ready" | "unready";
  /** A commit was made within the last seconds. */
  readonly commits: Part;
  /** What it changed was read after it. */
  readonly reads: Part;
  /** The results that sockets are shown were brought up to it. */
  readonly pushes: Part;
  /** `closed`: the port of this process takes no connections. */
  readonly listener: "open" | "closed";
  /** `low`: there is no room for what the server needs. */
  readonly disk: "ok" | "low" | "unknown";
  /** `null`: this server does not replicate. */
  readonly replication: { readonly lagMs: number } | null;
  /** Only of a server that follows another: how far it is behind, as far as is known. */
  readonly follower?: FollowerLag;
  /** Only of a server of a cluster. */
  readonly cluster?: ClusterPart;
}

/** What a server is in its cluster, and whether it reaches the cluster's database. */
export interface ClusterPart {
  readonly role: "leader" | "follower";
  readonly database: "ok" | "away";
  /** Whether a follower reaches the leader, which runs its mutations. Absent on the leader. */
  readonly link?: "ok" | "lost";
}

/** How far a server is behind the one it follows. */
export interface FollowerLag {
  readonly ts: number;
  readonly lagCommits: number;
  /** Since when something may be there that is not shown; `null` before the first look. */
  readonly lagMs: number | null;
}

export interface ReadinessOptions {
  readonly calls: Pick<SystemCalls, "mutate" | "query">;
  /** Room on the disk of the data folder in bytes; `null` where that cannot be asked. */
  readonly freeBytes: () => Promise<number | null>;
  /** Whether the port takes connections. */
  readonly listening: () => boolean;
  /** How far the replica is behind; `null` without one. */
  readonly replicationLagMs: () => number | null;
  /** On a server that makes no commits itself, because it follows another. */
  readonly follower?: (() => FollowerLag) | null;
  /** On a server of a cluster. */
  readonly cluster?: () => ClusterPart;
  readonly now: () => number;
}

export class Readiness {
  readonly #options: ReadinessOptions;
  /** When a commit was last seen, and a result that showed one. */
  #committedAt = -Infinity;
  #pushedAt = -Infinity;
  /** A look under way; others wait for it. */
  #looking: Promise<void> | null = null;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  async report(): Promise<ReadinessReport> {
    const { freeBytes, listening, replicationLagMs } = this.#options;
    if (!this.#fresh(this.#committedAt) || !this.#fresh(this.#pushedAt)) {
      await (this.#looking ??= this.#look().finally(() => this.#looking = null));
    }
    const free = await freeBytes();
    const follower = this.#options.follower?.();
    const commits = this.#part(this.#committedAt);
    const pushes = this.#part(this.#pushedAt);
    const disk = free === null ? "unknown" : free > opsLimits.diskReserveBytes ? "ok" : "low";
    const lagMs = replicationLagMs();
    const cluster = this.#options.cluster?.();
    // It reads, which is all that it does: without the cluster's database no other server could do more.
    const readsOn = cluster?.role === "follower" && cluster.database === "away";
    const listener = listening() ? "open" : "closed";
    const writes = readsOn || (commits === "ok" && cluster?.link !== "lost");
    const ready = listener === "open" && writes && pushes === "ok" && disk !== "low";
    return {
      status: ready ? "ready" : "unready",
      commits,
      // Both are seen by the same result: one that was read after a commit and shows it.
      reads: pushes,
      pushes,
      listener,
      disk,
      replication: lagMs === null ? null : { lagMs },
      ...(follower && { follower }),
      ...(cluster && { cluster }),
    };
  }

  /** Makes a commit and has the shared queries show it, as they show it to sockets. Takes a bounded time. */
  async #look(): Promise<void> {
    const { calls, now, follower = null } = this.#options;
    const beat = now();
    const done = follower !== null ? this.#lookAtFollower(follower) : (async () => {
      await calls.mutate(system.beat, { beat });
      this.#committedAt = now();
      if ((await calls.query(system.last, {}) ?? -1) >= beat) this.#pushedAt = now();
    })();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, statsLimits.readyMs));
    // What failed has not been seen; the reason stands in the log of whoever it failed for.
    await Promise.race([done.catch(() => {}), late]);
    clearTimeout(timer);
  }

  /** Its commits work while it has seen lately all there is, or is on its way to it. */
  async #lookAtFollower(follower: () => FollowerLag): Promise<void> {
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
