/**
 * A server's part in a cluster over PostgreSQL, for as long as the server runs. Who the leader is changes meanwhile: then what
 * is behind the server's port is ended and started anew in the other role.
 *
 *     begin --> follower --lease ended, taken--> applies the log to its end --> renewed --> leader
 *        |         ^                                                                         |
 *        +---------+<------------------------- the lease is another's ----------------------+
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Log } from "../../kit/log.ts";
import type { JournalRow } from "../../engine/mod.ts";
import type { RowKeeper } from "../../functions/host/mod.ts";
import type { MakeBackup } from "../../ops/backups/mod.ts";
import {
  BringError,
  type CommitLog,
  fetchInProcess,
  type LogPosition,
  type TargetPlace,
} from "../../ops/replication/mod.ts";
import { clusterSource } from "../../engine/mod.ts";
import type { LeadingServer } from "../mod.ts";
import { ClusterError } from "./cluster_error.ts";
import { AwayError, codeOf, Connection } from "./connection.ts";
import {
  canCreate,
  createCluster,
  type Identity,
  linkSecretOf,
  readIdentity,
  refusal,
  updateCluster,
} from "./identity.ts";
import { Lease, type LeaseHolder } from "./lease.ts";
import { clusterLimits } from "./limits.ts";
import { beginHistory, inspectDatabase, type LocalMember, undoHistory } from "./local_database.ts";
import { type Member, readMembers } from "./members.ts";
import { Notifications } from "./notifications.ts";
import { placeOf, type PostgresPlace } from "./place.ts";
import { PostgresLog } from "./postgres_log.ts";
import { PostgresRows, warmRows } from "./postgres_rows.ts";
import { SharedVersions } from "./shared_versions.ts";
import { listSnapshots, type Snapshot, Snapshots } from "./snapshots.ts";
import { channelsOf, type Statements, statementsFor } from "./statements.ts";

export interface ClusterOptions {
  readonly place: PostgresPlace;
  readonly secret: string;
  readonly snapshots: TargetPlace;
  readonly dataDir: string;
  /** Where this server is reached, for people. */
  readonly address: string;
  /** Text of the service's key file, which is made where there is none. */
  readonly serviceKey: () => Promise<string>;
  /** Writes it where the cluster's is another one. */
  readonly useServiceKey: (text: string) => Promise<void>;
  readonly log: Log;
  readonly leaseMs?: number;
  /** How long the database, and the first snapshot, are waited for. */
  readonly startMs?: number;
}

export type ClusterRole = "leader" | "follower";

/** What the cluster has to know of what is served. */
export interface ServedState {
  /** Where the database stands. */
  readonly position: () => Pick<LogPosition, "seq" | "ts">;
  readonly sockets: () => number;
  /** Since when something may be in the log that is not shown, in ms; `null`: that is not known, or it leads. */
  readonly lagMs: () => number | null;
  readonly makeBackup: MakeBackup;
  /** Ends what runs here because only the leader may: another server may lead from now on. */
  readonly lapsed: () => Promise<void>;
  /** Has what is served ended and started anew, in the role that `begin` then gives. */
  readonly renew: () => void;
}

/** What is told of it. */
export interface ClusterFigures {
  readonly role: ClusterRole;
  readonly epoch: number | null;
  /** Since when the database has not answered, in ms; `null`: it does. */
  readonly awayMs: number | null;
  readonly takeovers: number;
  /** How long a follower has had no link to the leader, in ms; `null`: it has one, or leads. */
  readonly unlinkedMs: number | null;
}

export class PostgresCluster implements AsyncDisposable {
  readonly #options: ClusterOptions;
  readonly #statements: Statements;
  /** Rows go by a connection of their own: nothing stands before them. */
  readonly #rowsConnection: Connection;
  /** So do the lease and what is asked with it, all of it small; notices come here, too. */
  readonly #leaseConnection: Connection;
  /** What may take seconds: the log as it is read and trimmed, snapshots, versions. */
  readonly #connection: Connection;
  readonly #notifications = new Notifications();
  readonly #holder = crypto.randomUUID();
  readonly #lease: Lease;
  /** Nothing is waited for any more. */
  readonly #stopping = new AbortController();
  /** What is served is gone: until then a leader keeps its lease. */
  readonly #ended = new AbortController();
  readonly #identity: Identity;
  #role: ClusterRole = "follower";
  #rows: PostgresRows | null = null;
  #snapshots: Snapshots | null = null;
  /** Set by `serve`, `null` while nothing is served. */
  #served: ServedState | null = null;
  /** What was served last: while it ends it may still run what only the leader does. */
  #newest: ServedState | null = null;
  /** Whether the database has to begin with a snapshot. */
  #anew = false;
  /** Whether this server began as the leader and has not served yet. */
  #unproven = false;
  /** Set while this server is ready to lead: told when it has the lease and has applied everything, or another one has. */
  #ready: { readonly after: number | null; readonly tell: (outcome: "taken" | "another's") => void } | null =
    null;
  /** When the lease of another server ends, as far as it is known, by `performance.now()`. */
  #endsAt = Infinity;
  /** Under which epoch that has it. */
  #epochOfOther: number | null = null;
  /** Until when the lease is left to others, by `performance.now()`. */
  #holdOffUntil = 0;
  /** Where it stood, and when it came there, while it has the lease and does not lead. */
  #nearing: { readonly seq: number; readonly at: number } | null = null;
  #awaySince: number | null = null;
  /** Why what it notes of itself was refused last, which was told; `null`: it was taken. */
  #refusedNote: string | null = null;
  /** Links that other servers have to this one; `null` before they can, and while it does not lead. */
  #links: () => number | null = () => null;
  #unlinkedMs: () => number | null = () => null;
  /** Since when it has led several others of which none has a link here, by `performance.now()`; `null`: it does not. */
  #unreachedSince: number | null = null;
  /** Whether it leaves the lease for that: once, until it was reached. Where no server reaches another the lease stays. */
  #mayYield = true;
  /** Told of who leads, if not this server; each time it was looked at. */
  #onLeader: (leader: LeadingServer | null) => void = () => {};
  /** Where the log ends since this server has the lease of this epoch: nobody else adds rows. */
  #endOfTaken: { readonly epoch: number | null; readonly end: LogPosition } | null = null;
  /** The row behind which what is served began. */
  #beganAt = 0;
  #takeovers = 0;
  /** Never rejects. */
  #loop: Promise<void> = Promise.resolve();

  private constructor(
    options: ClusterOptions,
    parts: {
      readonly identity: Identity;
      readonly connection: Connection;
      readonly statements: Statements;
    },
  ) {
    this.#options = options;
    this.#identity = parts.identity;
    this.#statements = parts.statements;
    this.#rowsConnection = parts.connection;
    const { log, lease } = channelsOf(options.place.schema);
    this.#connection = new Connection({ place: options.place });
    this.#leaseConnection = new Connection({
      place: options.place,
      use: "lease",
      first: () => [`listen ${lease}`, ...this.#role === "leader" ? [] : [`listen ${log}`]],
      onNotice: (channel) => this.#notifications.notify(channel),
    });
    this.#lease = new Lease({
      connection: this.#leaseConnection,
      second: this.#rowsConnection,
      fresh: () => new Connection({ place: options.place, use: "lease" }),
      statements: this.#statements,
      holder: this.#holder,
      ...(options.leaseMs !== undefined && { leaseMs: options.leaseMs }),
      onLapse: () => this.#lapsed(),
    });
  }

  /**
   * Finds the cluster, or makes it of this server's data. Throws a `ClusterError` when this server cannot be part of it;
   * nothing is written then.
   */
  static async join(options: ClusterOptions): Promise<PostgresCluster> {
    const { place } = options;
    const connection = new Connection({ place, use: "rows" });
    const statements = statementsFor(place.schema);
    try {
      const identity = await findOrMake(options, { connection, statements });
      const [disk] = await connection.query(statements.fsync);
      if (disk?.["fsync"] === "off") {
        options.log(
          "warn",
          "The cluster's database does not sync its disk: a power failure there loses commits",
          { code: "cluster", place: placeOf(place), setting: "fsync = off" },
        );
      }
      const cluster = new PostgresCluster(options, { identity, connection, statements });
      cluster.#loop = cluster.#run();
      return cluster;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      if (error instanceof ClusterError) throw error;
      const known = refusal(error, place);
      if (!(known instanceof AwayError)) throw known;
      throw new ClusterError(
        `The cluster's database at ${placeOf(place)} cannot be reached: ${known.message}`,
        { cause: error },
      );
    }
  }

  /** Names this server among the others. */
  get name(): string {
    return this.#holder;
  }

  /** What links between the cluster's servers are opened and sealed with. */
  get linkSecret(): string {
    return linkSecretOf(this.#options.secret, this.#identity.id);
  }

  /** Sets how other servers reach this one while it leads. Call it before `begin`. */
  publish(
    published: { readonly address: string; readonly certificate: string },
    { links, unlinkedMs }: {
      /** Number of links from other servers; `null` while this server does not accept any. */
      readonly links: () => number | null;
      /** Time without a link to a leader; `null` while there is one or this server leads. */
      readonly unlinkedMs: () => number | null;
    },
  ): void {
    this.#lease.published = published;
    this.#links = links;
    this.#unlinkedMs = unlinkedMs;
  }

  /** Calls the listener with whoever leads, again and again, beside this server; `null`: nobody does. */
  onLeader(listener: (leader: LeadingServer | null) => void): void {
    this.#onLeader = listener;
  }

  /** Of the server that leads, or led last, as far as this one knows; `null`: it does not. */
  get epochOfLeader(): number | null {
    return this.#epochOfOther;
  }

  /** Whether this server has the lease, as far as it knows: it leads, or is about to. */
  get hasLease(): boolean {
    return this.#lease.epoch !== null;
  }

  /** Whether it leads, is about to go on doing so, and nobody else can by now, wherever the database is. */
  get leadsSurely(): boolean {
    const isLeaving = performance.now() < this.#holdOffUntil;
    return this.#role === "leader" && this.#lease.isSure && !isLeaving;
  }

  get place(): string {
    return placeOf(this.#options.place);
  }

  get id(): string {
    return this.#identity.id;
  }

  get role(): ClusterRole {
    return this.#role;
  }

  /** Keeps the rows of the leader; `null` on a follower. */
  get rows(): RowKeeper | null {
    return this.#rows;
  }

  get figures(): ClusterFigures {
    const away = this.#rows?.awaySince ?? this.#awaySince;
    return {
      role: this.#role,
      epoch: this.#lease.epoch,
      awayMs: away === null ? null : performance.now() - away,
      takeovers: this.#takeovers,
      unlinkedMs: this.#role === "follower" ? this.#unlinkedMs() : null,
    };
  }

  /** The rows of the leader that this server is about to be. */
  get rowsLater(): RowKeeper {
    const none = { message: "This server does not lead its cluster", known: true };
    return {
      waitMs: clusterLimits.writeWaitMs,
      keep: (row) => this.#rows?.keep(row) ?? Promise.resolve(none),
      begins: (at) => this.#rows?.begins(at) ?? Promise.resolve(none),
    };
  }

  /**
   * This server is ready to lead: when the lease is free it takes it. Resolves when it has, and everything is applied, with
   * what the database says then; what is served is not renewed. Rejects when another one was quicker to follow the leader of
   * the epoch `after`, when it is not free for long, or the server stops.
   */
  async nextLease(after: number | null): Promise<Pick<LocalMember, "position" | "version">> {
    if (this.#isPast(after, this.#epochOfOther)) throw new Error("Another server leads by now");
    // Whose first statement would take longer, with everybody waiting.
    void warmRows(this.#rowsConnection, this.#statements);
    const { promise, resolve } = Promise.withResolvers<"taken" | "another's">();
    this.#ready = { after, tell: resolve };
    try {
      const late = new AbortController();
      const signal = AbortSignal.any([this.#stopping.signal, late.signal]);
      const taken = await Promise.race([
        promise,
        wait(clusterLimits.handOverMs, "late" as const, { signal }).catch(() => "stopping" as const),
      ]);
      late.abort();
      if (taken !== "taken") throw new Error("The lease was not left to this server");
    } finally {
      this.#ready = null;
    }
    const found = await inspectDatabase(this.#options.dataDir);
    if (found.kind !== "member") throw new ClusterError("The database is not one of this cluster any more");
    return found;
  }

  /** Leads from now on, behind {@linkcode nextLease}. Throws a `ClusterError` when the lease may be another's by now. */
  lead(position: LogPosition): void {
    const taken = this.#endOfTaken;
    const has = this.#lease.isSure && taken !== null && taken.epoch === this.#lease.epoch;
    if (!has || taken.end.seq !== position.seq || taken.end.sum !== position.sum) {
      throw new ClusterError("The lease is another server's");
    }
    this.#beganAt = position.seq;
    this.#role = "leader";
    void this.#hear();
    this.#lead(position);
  }

  /** Leaves the lease to another server, at once: nothing is committed here any more. */
  async handOver(): Promise<void> {
    this.#rows?.close();
    await this.#lease.release();
    this.#notifications.notify(channelsOf(this.#options.place.schema).lease);
  }

  /**
   * Makes the database of the data folder ready, which nobody has open, and decides the role. Throws a `ClusterError`, also
   * when no snapshot could be had.
   */
  async begin(): Promise<ClusterRole> {
    if (this.#unproven) {
      this.#holdOffUntil = performance.now() + clusterLimits.holdOffMs;
      await this.#lease.release();
      this.#unproven = false;
    }
    // Until it is known that it leads.
    this.#role = "follower";
    const position = await this.#makeReady();
    this.#beganAt = position.seq;
    const free = performance.now() >= this.#holdOffUntil;
    const isLeader = free &&
      await this.#askAgain(async () => {
        const has = this.#lease.epoch !== null
          ? await this.#lease.renew() !== null
          : await this.#isAtEnd(position) && await this.#lease.take();
        return has && await this.#isAtEnd(position);
      }) && this.#lease.epoch !== null;
    this.#role = isLeader ? "leader" : "follower";
    void this.#hear();
    if (isLeader) this.#lead(position);
    return this.#role;
  }

  /** The versions of the app's code that were deployed to the cluster. */
  get versions(): SharedVersions {
    return new SharedVersions({ connection: this.#connection, statements: this.#statements });
  }

  /** The log as followers read it. */
  openLog(): CommitLog<JournalRow> {
    const { log } = channelsOf(this.#options.place.schema);
    return new PostgresLog({
      connection: this.#connection,
      statements: this.#statements,
      place: this.place,
      generation: this.#identity.generation,
      more: () => this.#notifications.since(log),
      gathers: true,
    });
  }

  /** What is served is there; until `unserve` it is renewed when the role changes. */
  serve(served: ServedState): void {
    this.#unproven = false;
    this.#served = this.#newest = served;
    // Who leads is looked for at once.
    this.#notifications.notify(channelsOf(this.#options.place.schema).lease);
    const epoch = this.#lease.epoch;
    const rows = this.#rows;
    if (this.#role === "leader" && rows !== null && epoch !== null) {
      const { dataDir, snapshots: place, log } = this.#options;
      this.#snapshots = new Snapshots({
        connection: this.#connection,
        statements: this.#statements,
        clusterId: this.#identity.id,
        generation: this.#identity.generation,
        epoch,
        dataDir,
        place,
        makeBackup: served.makeBackup,
        kept: () => ({ seq: Math.max(rows.kept.seq, served.position().seq), bytes: rows.kept.bytes }),
        log,
      });
    }
    // What was lost while it was started.
    if (this.#role === "leader" && (epoch === null || rows?.isLost === true)) served.renew();
  }

  /** What is served ends, if it is this: rows that wait are refused, and no snapshot is made any more. */
  async unserve(served: ServedState | null = this.#served): Promise<void> {
    if (this.#served !== served) return;
    this.#served = null;
    this.#rows?.close();
    this.#rows = null;
    const snapshots = this.#snapshots;
    this.#snapshots = null;
    await snapshots?.[Symbol.asyncDispose]();
  }

  /** Where the leader's database stands. */
  leaderPosition(ts: number): Pick<LogPosition, "seq" | "ts"> {
    return { seq: Math.max(this.#beganAt, this.#rows?.kept.seq ?? 0), ts };
  }

  /** The next `begin` takes the newest snapshot: the log does not go on from what is there. */
  beginAnew(): void {
    this.#anew = true;
  }

  /** Where the log ends; `null` when that cannot be asked now. */
  async end(): Promise<Pick<LogPosition, "seq" | "ts"> | null> {
    try {
      return await this.#end(this.#connection);
    } catch (error) {
      if (error instanceof AwayError) return null;
      throw error;
    }
  }

  /** The servers of the cluster, with how far they are. Throws an `AwayError`. */
  async members(): Promise<readonly Member[]> {
    return await readMembers(this.#connection, this.#statements);
  }

  /** The server stops: what waits for the database gives up. The lease is kept until nothing is served. */
  stopping(): void {
    this.#stopping.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#ended.abort();
    await this.#loop;
    await this.unserve();
    // It ends by itself, and so does what is noted of this server.
    await this.#lease.release().catch(() => {});
    await this.#leaseConnection.query(this.#statements.forget, this.#holder, clusterLimits.memberMs).catch(
      () => {},
    );
    await this.#leaseConnection[Symbol.asyncDispose]();
    await this.#connection[Symbol.asyncDispose]();
    await this.#rowsConnection[Symbol.asyncDispose]();
  }

  #lead(at: LogPosition): void {
    const epoch = this.#lease.epoch;
    if (epoch === null) throw new Error("A leader has a lease");
    this.#takeovers++;
    this.#unproven = true;
    this.#rows = new PostgresRows({
      connection: this.#rowsConnection,
      statements: this.#statements,
      epoch,
      firstSeq: this.#identity.first.seq,
      at,
      onLost: (reason) => {
        this.#options.log("warn", "This server is not the leader of its cluster any more", {
          code: "cluster",
          reason,
        });
        // What the log has beyond this server is applied as a follower, also when the lease is still ours.
        if (this.#served === null) this.#rows?.close();
        else this.#served.renew();
      },
    });
    this.#options.log("info", "This server is the leader of its cluster", {
      epoch,
      cluster: this.#identity.id,
    });
  }

  /** Followers are told of rows; who leads would be woken by each of its own. Never rejects. */
  async #hear(): Promise<void> {
    const { listen, unlisten } = this.#statements;
    const hears = this.#role === "follower";
    try {
      await this.#leaseConnection.query(hears ? listen : unlisten);
      // What came before nobody was told of.
      if (hears) this.#notifications.notify(channelsOf(this.#options.place.schema).log);
    } catch {
      // The next connection begins with it; without it there is a look each second.
    }
  }

  async #makeReady(): Promise<LogPosition> {
    const { dataDir, snapshots: target, log } = this.#options;
    const { id, generation } = this.#identity;
    const local = await inspectDatabase(dataDir);
    const fits = local.kind === "member" && local.position.generation === generation;
    if (local.kind === "member" && fits && !this.#anew && !await this.#lacksVersion(local)) {
      return local.position;
    }
    const { signal } = this.#stopping;
    const { startMs = clusterLimits.startMs } = this.#options;
    for (const until = performance.now() + startMs;;) {
      const newest = await this.#newestSnapshot();
      log("info", "The newest snapshot of the cluster is fetched, which may take a while", { ts: newest.ts });
      try {
        await fetchInProcess({ dataDir, target, name: newest.name, place: clusterSource(id), signal });
        break;
      } catch (error) {
        if (!(error instanceof BringError) || signal.aborted) throw error;
        if (performance.now() > until) {
          throw new ClusterError(`The cluster's newest snapshot cannot be had: ${error.message}`, {
            cause: error,
          });
        }
        // It may have been removed meanwhile, for there is a newer one.
        log("warn", "The newest snapshot of the cluster could not be fetched; it is tried again", {
          code: "cluster",
          reason: error.message,
        });
        await wait(clusterLimits.snapshotFetchRetryMs, undefined, { signal });
      }
    }
    this.#anew = false;
    const fetched = await inspectDatabase(dataDir);
    if (fetched.kind !== "member") throw new ClusterError("The newest snapshot is not one of this cluster");
    return fetched.position;
  }

  /**
   * Whether a database may have come by the row that names what was deployed without noting that: a server of the format before
   * could not read it. One for which that row is still to come goes on with the log, and needs no snapshot.
   */
  async #lacksVersion({ version, position }: LocalMember): Promise<boolean> {
    if (version !== null) return false;
    const deployed = await this.#askAgain(() => this.versions.list());
    const named = deployed.filter(({ replaced }) => !replaced);
    if (named.length === 0) return false;
    for (const { hash } of named) {
      // Where that cannot be told a snapshot is right in any case.
      const comes = await this.versions.isNamedBehind(position.seq, hash).catch((error) => {
        if (error instanceof AwayError) return false;
        throw error;
      });
      if (comes) return false;
    }
    return (await this.#newestSnapshot()).seq !== position.seq;
  }

  /** A cluster that was made a moment ago has its first one soon, or when its data are copied. */
  async #newestSnapshot(): Promise<Snapshot> {
    const { startMs = clusterLimits.firstSnapshotMs, log } = this.#options;
    let waits = false;
    for (const until = performance.now() + startMs;;) {
      const [newest] = await this.#askAgain(() => listSnapshots(this.#connection, this.#statements));
      if (newest !== undefined) return newest;
      if (!waits) log("info", "The cluster has no snapshot yet: this server waits for the one of its leader");
      waits = true;
      if (performance.now() > until) {
        throw new ClusterError(
          "The cluster has no snapshot to begin with yet: its first server makes one when it serves",
        );
      }
      await wait(clusterLimits.firstSnapshotCheckMs, undefined, { signal: this.#stopping.signal });
    }
  }

  async #end(connection = this.#leaseConnection): Promise<LogPosition> {
    const { generation, first } = this.#identity;
    const [row] = await connection.query(this.#statements.end);
    if (row === undefined) return { generation, ...first };
    return { generation, seq: Number(row["seq"]), ts: Number(row["ts"]), sum: String(row["sum"]) };
  }

  async #isAtEnd({ seq, sum }: LogPosition): Promise<boolean> {
    const end = await this.#end();
    return end.seq === seq && end.sum === sum;
  }

  /** For what cannot go on without the database. */
  async #askAgain<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    let since: number | null = null;
    for (;;) {
      try {
        const answer = await ask();
        if (since !== null) this.#tellBack(since);
        return answer;
      } catch (error) {
        if (!(error instanceof AwayError) || this.#stopping.signal.aborted) throw error;
        if (since === null) tellAway(this.#options, error);
        since ??= performance.now();
        await wait(clusterLimits.reconnectMs, undefined, { signal: this.#stopping.signal });
      }
    }
  }

  #tellBack(since: number): void {
    const forMs = Math.round(performance.now() - since);
    this.#options.log("info", "The cluster's database answers again", { forMs });
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    const channel = channelsOf(this.#options.place.schema).lease;
    const renewMs = Math.min(clusterLimits.renewMs, (this.#options.leaseMs ?? clusterLimits.leaseMs) / 3);
    while (!signal.aborted) {
      let notice = this.#notifications.since(channel);
      let pauseMs = renewMs;
      const begunAt = performance.now();
      try {
        await this.#tend();
        // A renewal that took long is followed by the next one sooner.
        pauseMs = Math.max(clusterLimits.reconnectMs, renewMs - (performance.now() - begunAt));
        if (this.#awaySince !== null) this.#tellBack(this.#awaySince);
        this.#awaySince = null;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof AwayError) {
          if (this.#awaySince === null) tellAway(this.#options, error);
          // It may be the connection alone, and there is still time to renew the lease on another one.
          if (this.#lease.isSure) pauseMs = clusterLimits.reconnectMs;
        } else {
          this.#options.log("error", "The cluster's database refused what every server asks of it", {
            code: "cluster",
            error,
          });
        }
        this.#awaySince ??= performance.now();
        // Nothing was told meanwhile.
        this.#unreachedSince = null;
        // A new connection counts as a notice: one that was made in vain is no reason to try again at once.
        notice = (wait) => this.#notifications.next(channel, wait);
      }
      // As soon as the lease of another server may have ended.
      const ms = Math.min(pauseMs, Math.max(0, this.#endsAt - performance.now()) + clusterLimits.endedMs);
      // Once: who took it does not look at it any more, nor does anybody while the database is away.
      this.#endsAt = Infinity;
      await notice({ ms, signal });
    }
  }

  async #tend(): Promise<void> {
    const served = this.#served;
    let looked = false;
    if (this.#isStuck()) {
      this.#options.log(
        "warn",
        "This server does not come to the end of the log: the lease is left to others",
      );
      this.#holdOffUntil = performance.now() + clusterLimits.holdOffMs;
      await this.#lease.release();
    }
    if (this.#lease.epoch !== null) {
      const kept = await this.#lease.renew();
      if (kept === null) {
        this.#options.log("warn", "Another server has taken the lease of the cluster", { code: "cluster" });
        if (this.#role === "leader") served?.renew();
        return;
      }
      if (served !== null && this.#isUnreached(kept.others)) return await this.#yield(served);
      if (this.#role === "follower" && served !== null) await this.#takeOver(served);
    } else if (this.#mayTake(served)) {
      // Asked at once where clients wait.
      const [isFree, isNear] = this.#ready === null
        ? [await this.#isFree(), null]
        : await Promise.all([this.#isFree(), this.#isNearEnd(served)]);
      looked = !isFree;
      // It may have been told to stop meanwhile.
      if (
        isFree && (isNear ?? await this.#isNearEnd(served)) && this.#mayTake(served) &&
        await this.#lease.take()
      ) {
        this.#options.log("info", "The lease of the cluster had ended and was taken", {
          epoch: this.#lease.epoch,
        });
        await this.#takeOver(served);
      }
    }
    if (served === null) return;
    if (this.#lease.epoch === null && !looked) this.#lookAt(await this.#lease.holder());
    const { seq, ts } = served.position();
    // Not waited for: the lease is to be renewed meanwhile.
    this.#leaseConnection.query(
      this.#statements.note,
      this.#holder,
      this.#options.address,
      this.#role,
      ts,
      seq,
      served.sockets(),
      served.lagMs(),
    ).then(() => this.#refusedNote = null, (error) => this.#notNoted(error));
    void this.#snapshots?.tend();
  }

  #notNoted(error: unknown): void {
    // Whether the database answers is seen by the lease.
    if (error instanceof AwayError) return;
    const reason = codeOf(error) ?? String(error);
    if (reason === this.#refusedNote) return;
    this.#refusedNote = reason;
    this.#options.log("error", "The cluster's database refused what this server notes of itself", {
      code: "cluster",
      error,
    });
  }

  /** Another server may lead from now on, and does soon unless the database is away for all. */
  #lapsed(): void {
    if (this.#role !== "leader") return;
    void this.#newest?.lapsed().catch((error) =>
      this.#options.log("error", "What only the leader may run could not be ended", { error })
    );
  }

  /** Whether several others reach the database, and for some time none of them has reached this server, which leads. */
  #isUnreached(others: number): boolean {
    const links = this.#role === "leader" ? this.#links() : null;
    if (links !== null && links > 0) this.#mayYield = true;
    else if (links !== null && others >= clusterLimits.othersMin && this.#mayYield) {
      this.#unreachedSince ??= performance.now();
      return performance.now() - this.#unreachedSince > clusterLimits.unreachedMs;
    }
    this.#unreachedSince = null;
    return false;
  }

  /** Leaves the lease to those that do not reach this server. */
  async #yield(served: ServedState): Promise<void> {
    const { log } = this.#options;
    log("warn", "No other server reaches this one, which leads the cluster: the lease is left to them", {
      code: "cluster",
    });
    this.#mayYield = false;
    this.#unreachedSince = null;
    this.#holdOffUntil = performance.now() + clusterLimits.holdOffMs;
    await served.lapsed();
    // What is committed until another one has taken it counts.
    await this.#lease.release();
    served.renew();
  }

  #isPast(after: number | null, epoch: number | null): boolean {
    return after !== null && epoch !== null && epoch > after;
  }

  #lookAt(holder: LeaseHolder | null): void {
    const leader = holder === null || holder.isThis ? null : holder;
    if (leader !== null && this.#ready !== null && this.#isPast(this.#ready.after, leader.epoch)) {
      this.#ready.tell("another's");
    }
    this.#epochOfOther = leader?.epoch ?? this.#epochOfOther;
    // One that has ended and was not taken is looked for as ever.
    this.#endsAt = leader === null || leader.leftMs < 0 ? Infinity : performance.now() + leader.leftMs;
    this.#onLeader(leader);
  }

  #mayTake(served: ServedState | null): served is ServedState {
    return this.#role === "follower" && served !== null && !this.#stopping.signal.aborted &&
      performance.now() >= this.#holdOffUntil;
  }

  /** Whether it has the lease to no purpose: it has not come nearer to the end of the log for long. */
  #isStuck(): boolean {
    if (this.#lease.epoch === null || this.#role === "leader") {
      this.#nearing = null;
      return false;
    }
    const seq = this.#served?.position().seq ?? 0;
    const now = performance.now();
    if (this.#nearing === null || seq > this.#nearing.seq) this.#nearing = { seq, at: now };
    return now - this.#nearing.at > clusterLimits.stuckMs;
  }

  /** Whether nobody has the lease. Of those who are told so at once one that is ready comes first, or else any one. */
  async #isFree(): Promise<boolean> {
    const holder = await this.#lease.holder();
    this.#lookAt(holder);
    if (holder !== null && holder.leftMs >= 0) return false;
    const { signal } = this.#ended;
    if (this.#ready === null) {
      // Who was quicker tells so.
      const { lease } = channelsOf(this.#options.place.schema);
      await this.#notifications.next(lease, { ms: (0.5 + Math.random()) * clusterLimits.jitterMs, signal });
    }
    return !signal.aborted;
  }

  /** Who is far from the end would have the lease for long before anybody commits. */
  async #isNearEnd(served: ServedState): Promise<boolean> {
    const { seq } = await this.#end();
    return seq - served.position().seq < clusterLimits.takeRowsMax;
  }

  /** With the lease nobody else adds rows: what is there is the end. */
  async #takeOver(served: ServedState): Promise<void> {
    const { epoch } = this.#lease;
    const end = await this.#end();
    const { seq } = end;
    this.#endOfTaken = { epoch, end };
    const until = performance.now() + clusterLimits.renewMs;
    while (served.position().seq < seq) {
      // The lease has to be renewed meanwhile.
      if (performance.now() > until || this.#stopping.signal.aborted) return;
      this.#notifications.notify(channelsOf(this.#options.place.schema).log);
      await wait(clusterLimits.applyCheckMs);
    }
    if (this.#served !== served) return;
    if (this.#ready !== null) this.#ready.tell("taken");
    else served.renew();
  }
}

/** Whoever waits is told for what, once. */
function tellAway({ place, log }: Pick<ClusterOptions, "place" | "log">, { message }: AwayError): void {
  log("warn", "The cluster's database cannot be reached now, and is tried again", {
    code: "cluster",
    place: placeOf(place),
    reason: message,
  });
}

async function findOrMake(
  options: ClusterOptions,
  { connection, statements }: { readonly connection: Connection; readonly statements: Statements },
): Promise<Identity> {
  const { place, secret, dataDir, serviceKey, useServiceKey } = options;
  const asked = { place, secret, statements };
  const until = performance.now() + (options.startMs ?? clusterLimits.startMs);
  for (let tries = 0;; tries++) {
    try {
      await connection.open();
      break;
    } catch (error) {
      if (!(error instanceof AwayError) || performance.now() > until) throw error;
      if (tries === 0) tellAway(options, error);
      await wait(clusterLimits.reconnectMs);
    }
  }
  const known = await readIdentity(connection, asked);
  const local = await inspectDatabase(dataDir);
  if (known !== null) {
    refuseOthers(options, { known, local });
    await updateCluster(connection, asked);
    await useServiceKey(known.serviceKey);
    return known;
  }
  if (local.kind === "member" && local.position.seq > 0) {
    throw new ClusterError(
      `The data in "${dataDir}" are of cluster ${local.clusterId}, which is not at ${placeOf(place)}`,
    );
  }
  if (!await canCreate(connection, place)) return await foundAfterAll(options, { connection, statements });
  const text = await serviceKey();
  const made = local.kind === "none";
  const id = local.kind === "member" ? local.clusterId : crypto.randomUUID();
  const { generation, seq, ts, sum } = local.kind === "member" ? local.position : beginHistory(dataDir, id);
  if (generation === null) throw new Error("A history that has begun has a name");
  const identity = { id, generation, first: { seq, ts, sum }, serviceKey: text };
  try {
    if (await createCluster(connection, identity, { place, secret })) return identity;
  } catch (error) {
    if (await isSurelyNotThere(error, { connection, asked, id })) await undoHistory(dataDir, { made });
    throw error;
  }
  await undoHistory(dataDir, { made });
  return await foundAfterAll(options, { connection, statements });
}

/** What was in the way is another server's cluster, which it made at the same moment; or it is nobody's. */
async function foundAfterAll(
  options: ClusterOptions,
  { connection, statements }: { readonly connection: Connection; readonly statements: Statements },
): Promise<Identity> {
  const { place, secret, dataDir, useServiceKey } = options;
  const known = await readIdentity(connection, { place, secret, statements });
  if (known === null) {
    throw new ClusterError(
      `The schema at ${placeOf(place)} holds other tables: name another one with ?schema=name`,
    );
  }
  refuseOthers(options, { known, local: await inspectDatabase(dataDir) });
  // Its maker may be of the version before this one.
  await updateCluster(connection, { place, statements });
  await useServiceKey(known.serviceKey);
  return known;
}

/** After a cluster could not be made: where the answer was lost it may have been made all the same. */
async function isSurelyNotThere(
  error: unknown,
  { connection, asked, id }: {
    readonly connection: Connection;
    readonly asked: Parameters<typeof readIdentity>[1];
    readonly id: string;
  },
): Promise<boolean> {
  if (!(error instanceof AwayError)) return true;
  try {
    // Waits for the transaction that may still be at its end.
    if (await canCreate(connection, asked.place)) return true;
    const known = await readIdentity(connection, asked);
    return known !== null && known.id !== id;
  } catch {
    return false;
  }
}

function refuseOthers(
  { dataDir, place }: ClusterOptions,
  { known, local }: { readonly known: Identity; readonly local: Awaited<ReturnType<typeof inspectDatabase>> },
): void {
  if (local.kind === "own") {
    throw new ClusterError(
      `There is a cluster at ${
        placeOf(place)
      } already, and the data in "${dataDir}" are a server's own: name an empty ` +
        "folder with --data, or another schema",
    );
  }
  if (
    local.kind === "member" &&
    (local.clusterId !== known.id || local.position.generation !== known.generation)
  ) {
    throw new ClusterError(
      `The data in "${dataDir}" are of cluster ${local.clusterId}, and at ${
        placeOf(place)
      } is cluster ${known.id}`,
    );
  }
}
