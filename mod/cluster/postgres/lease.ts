/** The lease of a cluster: who is the leader, under which epoch. Only the database's clock counts. */
import { AwayError, type Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface LeaseOptions {
  readonly connection: Connection;
  readonly statements: Statements;
  /** Names this run of this server. */
  readonly holder: string;
  readonly leaseMs?: number;
}

export interface LeaseHolder {
  readonly epoch: number;
  readonly address: string;
  readonly isThis: boolean;
  /** For how long it is kept unless it is renewed; negative when it has ended. */
  readonly leftMs: number;
}

export class Lease {
  readonly #options: LeaseOptions;
  /** Set by `take`, `null` again when it was lost or given up. */
  #epoch: number | null = null;
  /** Where other servers reach this one while it leads. */
  address = "";

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** `null`: this server does not have it, as far as it knows. */
  get epoch(): number | null {
    return this.#epoch;
  }

  /** Takes it, if nobody has it any more. Throws an `AwayError`. */
  async take(): Promise<boolean> {
    const { connection, statements, holder, leaseMs = clusterLimits.leaseMs } = this.#options;
    const [row] = await connection.query(statements.take, holder, this.address, leaseMs);
    if (row === undefined) return false;
    this.#epoch = Number(row["epoch"]);
    return true;
  }

  /** Keeps it. `false`: another one has taken it, and it is lost. Throws an `AwayError`. */
  async renew(): Promise<boolean> {
    const { connection, statements, holder, leaseMs = clusterLimits.leaseMs } = this.#options;
    if (this.#epoch === null) return false;
    const [row] = await connection.query(statements.renew, this.#epoch, holder, leaseMs);
    if (row !== undefined) return true;
    this.#epoch = null;
    return false;
  }

  /** Who has it, or had it last; `null` when it was given up, or nobody ever had it. Throws an `AwayError`. */
  async holder(): Promise<LeaseHolder | null> {
    const { connection, statements, holder } = this.#options;
    const [row] = await connection.query(statements.lease);
    if (row === undefined || row["held"] !== true) return null;
    return {
      epoch: Number(row["epoch"]),
      address: String(row["address"]),
      isThis: row["holder"] === holder,
      leftMs: Number(row["left_ms"]),
    };
  }

  /** Leaves it to others, at once. It ends by itself where that cannot be said. */
  async release(): Promise<void> {
    const epoch = this.#epoch;
    this.#epoch = null;
    if (epoch === null) return;
    const { connection, statements, holder } = this.#options;
    try {
      await connection.query(statements.release, epoch, holder);
    } catch (error) {
      if (!(error instanceof AwayError)) throw error;
    }
  }
}
