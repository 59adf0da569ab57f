/** The servers of a cluster, as each tells of itself. */
import type { Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface Member {
  readonly address: string;
  readonly role: "leader" | "follower";
  /** Under which epoch it leads; `null` for followers. */
  readonly epoch: number | null;
  readonly ts: number;
  /** Behind the newest commit of the log. */
  readonly lagCommits: number;
  /** Since when it may lack something, as it was when it was heard of; `null`: it has not told. The leader lacks nothing. */
  readonly lagMs: number | null;
  readonly sockets: number;
  /** Since it was heard of. */
  readonly seenMs: number;
}

/** Those that were heard of not long ago. The leader is whoever has the lease, whatever it says itself. */
export async function readMembers(
  connection: Connection,
  statements: Statements,
): Promise<readonly Member[]> {
  const [rows, [lease], [end]] = await Promise.all([
    connection.query(statements.members, clusterLimits.memberMs),
    connection.query(statements.lease),
    connection.query(statements.end),
  ]);
  const newest = Number(end?.["ts"] ?? 0);
  return rows.map(({ holder, address, ts, sockets, lag_ms, seen_ms }) => {
    const leads = holder === lease?.["holder"];
    return {
      address: String(address),
      role: leads ? "leader" : "follower",
      epoch: leads ? Number(lease?.["epoch"]) : null,
      ts: Number(ts),
      lagCommits: Math.max(0, newest - Number(ts)),
      lagMs: leads ? 0 : lag_ms === null ? null : Math.round(Number(lag_ms)),
      sockets: Number(sockets),
      seenMs: Math.max(0, Math.round(Number(seen_ms))),
    };
  });
}
