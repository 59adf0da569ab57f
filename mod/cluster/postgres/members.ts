/** The servers of a cluster, as each reports itself. */
import type { Log } from "../../kit/log.ts";
import type { ClusterRole, ServedState } from "./election.ts";
import { AwayError, codeOf, type PostgresConnection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface Member {
  readonly address: string;
  readonly role: "leader" | "follower";
  /** Epoch of the leader; `null` for followers. */
  readonly epoch: number | null;
  readonly ts: number;
  /** Commits between this server and the end of the log. */
  readonly lagCommits: number;
  /** Age of the oldest commit that it may lack, at its last report; `null` if it has not reported one; 0 for the leader. */
  readonly lagMs: number | null;
  readonly sockets: number;
  /** Time since its last report. */
  readonly seenMs: number;
}

/** Returns the servers with a recent report. The leader is the holder of the lease. */
export async function readMembers(
  connection: PostgresConnection,
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

interface MemberReportOptions {
  readonly connection: PostgresConnection;
  readonly statements: Statements;
  readonly holder: string;
  /** URL of this server, for administrators. */
  readonly address: string;
  readonly log: Log;
}

/** Reports this server to the others. */
export class MemberReport {
  readonly #options: MemberReportOptions;
  /** Reason of the last rejected report, which was logged; `null` after a success. */
  #rejected: string | null = null;

  constructor(options: MemberReportOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async send({ position, sockets, lagMs }: ServedState, role: ClusterRole): Promise<void> {
    const { connection, statements, holder, address, log } = this.#options;
    const { seq, ts } = position();
    try {
      await connection.query(statements.note, holder, address, role, ts, seq, sockets(), lagMs());
      this.#rejected = null;
    } catch (error) {
      // The election detects outages.
      if (error instanceof AwayError) return;
      const reason = codeOf(error) ?? String(error);
      if (reason === this.#rejected) return;
      this.#rejected = reason;
      log("error", "The cluster's database rejected the report of this server", { code: "cluster", error });
    }
  }

  /** Removes the report, and those of servers that are gone. Never rejects. */
  async remove(): Promise<void> {
    const { connection, statements, holder } = this.#options;
    await connection.query(statements.forget, holder, clusterLimits.memberMs).catch(() => {});
  }
}
