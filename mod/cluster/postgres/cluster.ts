/**
 * Membership of a server in a cluster over PostgreSQL, for as long as the server runs. The server joins once, and calls `begin`
 * before each start of its backend, `serve` when the backend serves, and `unserve` when it ends. When its role may have
 * changed, the server restarts its backend in the role that `begin` returns, which may be "leader" at the first start. A
 * follower continues when another server becomes the leader.
 *
 *     begin ──> follower ── lease taken, log applied to its end ──> restart ──> begin ──> leader
 *                   ^                                                                       |
 *                   └───────── begin <── restart <── lease lost or released, or row refused ┘
 *
 * Each acquisition of the lease in PostgreSQL has a number, its epoch, and rows are accepted only under the newest one. `begin`
 * returns "leader" only with the lease, and if the local database is at the end of the log: same row, same checksum (`sum`).
 */
import type { ObjectLocation } from "../../kit/locations/object_store.ts";
import type { JournalRow } from "../../engine/mod.ts";
import type { CommitAppender } from "../../functions/host/mod.ts";
import type { Log } from "../../kit/log.ts";
import type { CommitLog, LogPosition } from "../../ops/replication/mod.ts";
import type { LeadingServer } from "../mod.ts";
import { ClusterError } from "./cluster_error.ts";
import { AwayError, PostgresConnection } from "./connection.ts";
import { ClusterDatabase } from "./database.ts";
import { type ClusterRole, Election, type LinkState, type ServedState } from "./election.ts";
import { type Identity, linkSecretOf, refusal } from "./identity.ts";
import { findOrCreate, type JoinOptions } from "./join.ts";
import { Lease } from "./lease.ts";
import { prepareDatabase } from "./local_database.ts";
import { type Member, MemberReport, readMembers } from "./members.ts";
import type { PostgresAddress } from "./postgres_address.ts";
import { PostgresLog } from "./postgres_log.ts";
import { PostgresRows } from "./postgres_rows.ts";
import { SharedVersions } from "./shared_versions.ts";
import { Snapshots } from "./snapshots.ts";

export interface ClusterOptions extends JoinOptions {
  readonly database: PostgresAddress;
  readonly snapshots: ObjectLocation;
  /** URL of this server, for administrators. */
  readonly address: string;
  readonly log: Log;
  readonly leaseMs?: number;
}

/** State for status and metrics. */
export interface ClusterFigures {
  readonly role: ClusterRole;
  readonly epoch: number | null;
  /** Duration of the current outage of PostgreSQL, in milliseconds; `null` while it answers. */
  readonly awayMs: number | null;
  /** How often `begin` returned "leader", including restarts that kept the lease. */
  readonly takeovers: number;
  /** Time without a link to the leader, in milliseconds; `null` while there is one, or on the leader. */
  readonly unlinkedMs: number | null;
}

export class PostgresCluster implements AsyncDisposable {
  readonly #options: ClusterOptions;
  readonly #database: ClusterDatabase;
  readonly #identity: Identity;
  /** Identifies this process. */
  readonly #holder = crypto.randomUUID();
  readonly #lease: Lease;
  readonly #election: Election;
  readonly #report: MemberReport;
  /** Aborted when the server stops. */
  readonly #stopping = new AbortController();
  #role: ClusterRole = "follower";
  /** Appends rows while this server leads. */
  #rows: PostgresRows | null = null;
  #snapshots: Snapshots | null = null;
  /** The served backend, and the newest one, which may still be stopping. */
  #served: { readonly current: ServedState | null; readonly newest: ServedState | null } = {
    current: null,
    newest: null,
  };
  /**
   * State of the next `begin`: whether it needs a snapshot, and whether leading is unconfirmed. The latter is set until the
   * backend serves; if it is still set at `begin`, the start failed.
   */
  #next = { fromSnapshot: false, leadUnconfirmed: false };
  /** Row at which the backend started. */
  #startSeq = 0;
  #takeovers = 0;

  private constructor(
    options: ClusterOptions,
    { database, identity }: { readonly database: ClusterDatabase; readonly identity: Identity },
  ) {
    const { database: address, leaseMs, log } = options;
    this.#options = options;
    this.#identity = identity;
    this.#database = database;
    const { lease: connection, rows: second, statements } = database;
    this.#lease = new Lease({
      connection,
      second,
      fresh: () => new PostgresConnection({ address, use: "lease" }),
      statements,
      holder: this.#holder,
      ...(leaseMs !== undefined && { leaseMs }),
      onLapse: () => this.#onLapse(),
    });
    this.#report = new MemberReport({
      connection,
      statements,
      holder: this.#holder,
      address: options.address,
      log,
    });
    this.#election = new Election({
      database,
      lease: this.#lease,
      ...(leaseMs !== undefined && { leaseMs }),
      logEnd: () => this.#logEnd(),
      state: () => ({ role: this.#role, served: this.#served.current }),
      onChecked: (served) => {
        // Not awaited, because the lease must be renewed in the meantime.
        void this.#report.send(served, this.#role);
        void this.#snapshots?.tend();
      },
      stopping: this.#stopping.signal,
      log,
    });
  }

  /** Joins the cluster, or creates it from this server's data. Throws a `ClusterError` if that is not possible. */
  static async join(options: ClusterOptions): Promise<PostgresCluster> {
    const { database: address, log } = options;
    const database = new ClusterDatabase(address, log);
    try {
      const identity = await findOrCreate(options, database);
      const [disk] = await database.rows.query(database.statements.fsync);
      if (disk?.["fsync"] === "off") {
        log("warn", "The cluster's database does not sync its disk: a power failure there loses commits", {
          code: "cluster",
          database: database.text,
          setting: "fsync = off",
        });
      }
      return new PostgresCluster(options, { database, identity });
    } catch (error) {
      await database[Symbol.asyncDispose]();
      if (error instanceof ClusterError) throw error;
      const known = refusal(error, address);
      if (!(known instanceof AwayError)) throw known;
      throw new ClusterError(`The cluster's database at ${database.text} is unreachable: ${known.message}`, {
        cause: error,
      });
    }
  }

  /** Name of this server among the others. */
  get name(): string {
    return this.#holder;
  }

  get linkSecret(): string {
    return linkSecretOf(this.#options.secret, this.#identity.id);
  }

  /** Sets how other servers reach this one while it leads. Call it before `begin`. */
  setLinkAddress(
    published: { readonly address: string; readonly certificate: string },
    linkState: LinkState,
  ): void {
    this.#lease.published = published;
    this.#election.linkState = linkState;
  }

  /**
   * Sets the listener, which replaces the previous one. It receives the last holder of the lease repeatedly, even if the lease
   * expired; `null` if there is none or it is this server.
   */
  onLeader(listener: (leader: LeadingServer | null) => void): void {
    this.#election.onLeader = listener;
  }

  /** Whether this server has the lease, as far as it knows. */
  get hasLease(): boolean {
    return this.#lease.epoch !== null;
  }

  /** Whether this server leads and no other one can, also while PostgreSQL is unreachable, unless its clock jumps. */
  get leadsSurely(): boolean {
    return this.#role === "leader" && this.#lease.isSure && !this.#election.isHoldingOff;
  }

  /** Address of PostgreSQL, for messages. */
  get location(): string {
    return this.#database.text;
  }

  get id(): string {
    return this.#identity.id;
  }

  get role(): ClusterRole {
    return this.#role;
  }

  /** Stores the leader's rows in PostgreSQL before their groups commit locally; `null` unless this server leads. */
  get rows(): CommitAppender | null {
    return this.#rows;
  }

  get figures(): ClusterFigures {
    const away = this.#rows?.awaySince ?? this.#election.awaySince;
    return {
      role: this.#role,
      epoch: this.#lease.epoch,
      awayMs: away === null ? null : performance.now() - away,
      takeovers: this.#takeovers,
      unlinkedMs: this.#role === "follower" ? this.#election.linkState.unlinkedMs() : null,
    };
  }

  /** The deployed versions of the app's code. */
  get versions(): SharedVersions {
    const { slow: connection, statements } = this.#database;
    return new SharedVersions({ connection, statements });
  }

  /**
   * Prepares the local database, which must not be open, and decides the role. Throws a `ClusterError`, for example if no
   * snapshot is usable. Rejects with another error if `stopping` is called while it waits for PostgreSQL.
   */
  async begin(): Promise<ClusterRole> {
    if (this.#next.leadUnconfirmed) await this.#election.holdOff();
    this.#next.leadUnconfirmed = false;
    this.#role = "follower";
    const { dataDir, snapshots, startMs, log } = this.#options;
    const { signal } = this.#stopping;
    const position = await prepareDatabase({
      database: this.#database,
      identity: this.#identity,
      dataDir,
      snapshots,
      fromSnapshot: this.#next.fromSnapshot,
      ...(startMs !== undefined && { startMs }),
      signal,
      log,
    });
    this.#next.fromSnapshot = false;
    this.#startSeq = position.seq;
    const isLeader = !this.#election.isHoldingOff &&
      await this.#database.retry(() => this.#takesLease(position), signal);
    this.#role = isLeader ? "leader" : "follower";
    void this.#database.listenForRows(!isLeader);
    if (isLeader) this.#lead(position);
    return this.#role;
  }

  openLog(): CommitLog<JournalRow> {
    const { slow: connection, statements, text: location, notifications, channels } = this.#database;
    const { generation } = this.#identity;
    const more = () => notifications.since(channels.log);
    return new PostgresLog({ connection, statements, location, generation, more, gathers: true });
  }

  /** Called when the backend serves. It is restarted when the role changes, until `unserve`. */
  serve(served: ServedState): void {
    this.#next.leadUnconfirmed = false;
    this.#served = { current: served, newest: served };
    this.#election.check();
    if (this.#role !== "leader") return;
    const { epoch } = this.#lease;
    const rows = this.#rows;
    // The lease or the log was lost during the start.
    if (epoch === null || rows?.isLost !== false) return served.restart();
    const { dataDir, snapshots: target, log } = this.#options;
    const { slow: connection, statements } = this.#database;
    const { id: clusterId, generation } = this.#identity;
    this.#snapshots = new Snapshots({
      connection,
      statements,
      clusterId,
      generation,
      epoch,
      dataDir,
      target,
      makeBackup: served.makeBackup,
      appended: () => ({
        seq: Math.max(rows.appended.seq, served.position().seq),
        bytes: rows.appended.bytes,
      }),
      log,
    });
  }

  /** Called when a backend ends. Refuses waiting rows and ends a snapshot in progress. Does nothing for another backend. */
  async unserve(served: ServedState | null = this.#served.current): Promise<void> {
    if (this.#served.current !== served) return;
    this.#served = { ...this.#served, current: null };
    this.#rows?.close();
    this.#rows = null;
    const snapshots = this.#snapshots;
    this.#snapshots = null;
    await snapshots?.[Symbol.asyncDispose]();
  }

  /** Returns the position of this server as the leader: `ts` is its newest commit. */
  leaderPosition(ts: number): Pick<LogPosition, "seq" | "ts"> {
    return { seq: Math.max(this.#startSeq, this.#rows?.appended.seq ?? 0), ts };
  }

  /** The next `begin` downloads the newest snapshot: the log does not continue from the local database. */
  requireSnapshot(): void {
    this.#next.fromSnapshot = true;
  }

  /** Returns the position of the newest row in PostgreSQL; `null` while PostgreSQL is unreachable. */
  async end(): Promise<Pick<LogPosition, "seq" | "ts"> | null> {
    try {
      return await this.#logEnd(this.#database.slow);
    } catch (error) {
      if (error instanceof AwayError) return null;
      throw error;
    }
  }

  /** Returns the servers of the cluster with their positions. Throws an `AwayError`. */
  async members(): Promise<readonly Member[]> {
    return await readMembers(this.#database.slow, this.#database.statements);
  }

  /** Call when the server begins to stop. Aborts waits for PostgreSQL in `begin`, and keeps the lease until disposal. */
  stopping(): void {
    this.#stopping.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#election.end();
    await this.unserve();
    // If PostgreSQL is unreachable, both expire.
    await this.#lease.release().catch(() => {});
    await this.#report.remove();
    await this.#database[Symbol.asyncDispose]();
  }

  #logEnd(connection?: PostgresConnection): Promise<LogPosition> {
    const { generation, first } = this.#identity;
    return this.#database.end({ generation, ...first }, connection);
  }

  async #isAtEnd({ seq, sum }: LogPosition): Promise<boolean> {
    const end = await this.#logEnd();
    return end.seq === seq && end.sum === sum;
  }

  /** Renews or takes the lease. Returns whether this server has it, and the whole log. */
  async #takesLease(position: LogPosition): Promise<boolean> {
    const hasLease = this.#lease.epoch !== null
      ? await this.#lease.renew() !== null
      : await this.#isAtEnd(position) && await this.#lease.take();
    return hasLease && await this.#isAtEnd(position) && this.#lease.epoch !== null;
  }

  #lead(at: LogPosition): void {
    const { epoch } = this.#lease;
    if (epoch === null) throw new Error("A leader must have the lease");
    const { log } = this.#options;
    this.#takeovers++;
    this.#next.leadUnconfirmed = true;
    this.#rows = new PostgresRows({
      connection: this.#database.rows,
      statements: this.#database.statements,
      epoch,
      firstSeq: this.#identity.first.seq,
      at,
      onLost: (reason) => {
        log("warn", "This server no longer leads its cluster", { code: "cluster", reason });
        // As a follower, it applies the rows that it lacks, even if it still has the lease.
        if (this.#served.current === null) this.#rows?.close();
        else this.#served.current.restart();
      },
    });
    log("info", "This server is the leader of its cluster", { epoch, cluster: this.#identity.id });
  }

  /** Another server may lead from now on. */
  #onLapse(): void {
    if (this.#role !== "leader") return;
    void this.#served.newest?.lapsed().catch((error) =>
      this.#options.log("error", "Cannot end work that only the leader may run", { error })
    );
  }
}
