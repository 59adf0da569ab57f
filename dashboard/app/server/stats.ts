/** Responses of `GET /api/admin/stats` and related endpoints, limited to the fields that the views use. */
import type { Member } from "../../../mod/cluster/postgres/members.ts";
import type { RoleCount } from "../../../mod/functions/host/process/isolate_stats.ts";
import type { GaugesAt } from "../../../mod/ops/stats/server_stats.ts";
import type { CommitStats, MinuteStats, StatsOfFunction, Window } from "../../../mod/ops/stats/run_stats.ts";

export type { FunctionStats, StatsOfFunction } from "../../../mod/ops/stats/run_stats.ts";

export interface Stats {
  readonly at: number;
  readonly version: string;
  readonly startedAt: number;
  readonly publicUrl: string | null;
  readonly ts: number;
  readonly functions: readonly StatsOfFunction[];
  readonly commitMs: Readonly<Record<Window, CommitStats>>;
  readonly history: readonly MinuteStats[];
  readonly gauges: readonly GaugesAt[];
  readonly sync: { readonly sockets: number; readonly subscriptions: number; readonly sharedQueries: number };
  readonly queues: Readonly<Record<string, number>>;
  readonly isolates: Readonly<Record<string, RoleCount>>;
  readonly log: { readonly trouble?: string | null } | null;
  readonly memory: { readonly main: number; readonly isolates: Readonly<Record<string, number>> | null };
  readonly disk: {
    readonly database: number;
    readonly log: number;
    readonly free: number | null;
    readonly total: number | null;
  };
}

/** A range of restorable points in time. Times are milliseconds since the epoch. */
export interface Range {
  readonly fromTs: number;
  readonly toTs: number;
  readonly fromTime: number;
  readonly toTime: number;
}

export interface FollowerStatus {
  /** URL of the replica. */
  readonly from: string;
  readonly generation: string;
  readonly ts: number;
  readonly newestTs: number;
  readonly lagCommits: number;
  readonly lagMs: number | null;
  readonly errors: readonly { readonly at: string; readonly message: string }[];
}

export type ScheduledBackups = { readonly place: null } | {
  readonly place: string;
  readonly backups: readonly { readonly name: string; readonly createdAt: string }[];
  /** Why the backups could not be listed. */
  readonly error?: string;
};

/** Response of `GET /api/admin/cluster`. */
export type ClusterStatus = { readonly enabled: false } | {
  readonly enabled: true;
  readonly id: string;
  readonly place: string;
  readonly role: "leader" | "follower";
  readonly epoch: number;
  readonly takeovers: number;
  readonly database: { readonly status: "ok" | "away"; readonly forMs: number };
  /** `null` while the database is unreachable. */
  readonly servers: readonly Member[] | null;
};

export type ReplicationStatus = { readonly enabled: false; readonly follower?: FollowerStatus } | {
  readonly enabled: true;
  readonly target: string;
  readonly generation: string | null;
  readonly currentTs: number;
  readonly shippedTs: number | null;
  readonly lagCommits: number | null;
  readonly lagMs: number | null;
  readonly journalBytes: number | null;
  readonly lastSegment: { readonly at: string } | null;
  readonly lastSnapshot: { readonly at: string; readonly bytes: number } | null;
  readonly takenBy: { readonly host: string; readonly since: string } | null;
  readonly errors: readonly { readonly at: string; readonly message: string }[];
  readonly generations?: readonly {
    readonly generation: string;
    readonly snapshots: number;
    readonly segments: number;
    readonly bytes: number;
    readonly ranges: readonly Range[];
  }[];
};

export interface Backup {
  readonly name: string;
  readonly size: number;
  readonly createdAt: string;
  readonly ts?: number;
  readonly parts?: Readonly<Record<string, boolean>> | readonly string[];
  readonly error?: string;
}

export interface StagedRestore {
  readonly createdAt: string;
  readonly stagedAt: string;
  readonly ts: number;
  readonly tables: number;
  readonly documents: number;
  readonly source: string;
  readonly error?: string;
}

export interface BackupList {
  readonly backups: readonly Backup[];
  /** Time of the newest backup at any location, or `null`. */
  readonly newest: number | null;
  readonly restore: StagedRestore | null;
  readonly replication: ReplicationStatus;
}
