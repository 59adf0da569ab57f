/**
 * One server of the simulated cluster: hub, engine, and the cluster's parts in a process, which is stopped and started behind its
 * sockets when its role changes, like by `PostgresCluster` and `Server`.
 */
import { CheckedCalls, LeaderCalls } from "../../../mod/cluster/mod.ts";
import { AwayError } from "../../../mod/cluster/postgres/connection.ts";
import { Lease, type LeaseHolder } from "../../../mod/cluster/postgres/lease.ts";
import { clusterLimits } from "../../../mod/cluster/postgres/limits.ts";
import { Notifications } from "../../../mod/cluster/postgres/database.ts";
import { PostgresLog } from "../../../mod/cluster/postgres/postgres_log.ts";
import { PostgresRows } from "../../../mod/cluster/postgres/postgres_rows.ts";
import { statementsFor } from "../../../mod/cluster/postgres/statements.ts";
import type { Reached } from "../../../mod/functions/wire/messages.ts";
import type { Clock } from "../../../mod/kit/clock.ts";
import { socketLimits } from "../../../mod/limits.ts";
import { caughtUpWith } from "../../../mod/server/features/cluster.ts";
import { Hub } from "../../../mod/sync/hub.ts";
import type { Authenticator } from "../../../mod/sync/authenticator.ts";
import type { Random } from "../support/random.ts";
import type { SimClient } from "../support/sim_client.ts";
import { ClusterHost, type ClusterHostOptions } from "./cluster_host.ts";
import { type SharedLog, SimConnection } from "./shared_log.ts";
import { SimLink } from "./sim_link.ts";

export interface SimServerOptions extends Pick<ClusterHostOptions, "onPrepared" | "onRefused" | "path"> {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: SharedLog;
  readonly authenticator: Authenticator;
  /** Its initial position, which is that of the log. */
  readonly generation: string;
  readonly firstSeq: number;
  /** Whether sockets wait for data that their clients may have seen elsewhere. False for a planted bug. */
  readonly waits: boolean;
}

const LOG = "log";
const statements = statementsFor("sim");

/** The served backend, until the role changes. */
interface Served {
  readonly role: "leader" | "follower";
  readonly host: ClusterHost;
  readonly hub: Hub;
  readonly rows: PostgresRows | null;
  readonly caughtUp: () => Promise<void>;
}

/** A process of a server: it has the lease, the connections, and the calls that wait for a leader. */
class Process {
  readonly lease: Lease;
  readonly calls: LeaderCalls;
  readonly notifications: Notifications;
  readonly log: PostgresLog;
  readonly stopping = new AbortController();
  tending = false;
  pulling = false;

  constructor(
    { clock, generation }: SimServerOptions,
    { connection, holder }: { readonly connection: SimConnection; readonly holder: string },
  ) {
    this.lease = new Lease({ connection, statements, holder, clock });
    this.calls = new LeaderCalls({ ts: () => 0, clock });
    this.notifications = new Notifications(clock);
    this.log = new PostgresLog({
      connection,
      statements,
      location: "sim",
      generation,
      more: () => this.notifications.since(LOG),
      now: () => clock.now(),
    });
  }
}

export class SimServer implements Disposable {
  readonly options: SimServerOptions;
  readonly connection: SimConnection;
  /** Rows have a separate connection. */
  readonly rowsConnection: SimConnection;
  #process: Process | null = null;
  #served: Served | null = null;
  #processes = 0;
  #wantsRenewal = false;
  link: SimLink | null = null;
  /** The other leader according to the last report. */
  leader: LeaseHolder | null = null;
  /** Errors outside of a step. */
  failure: unknown = null;

  constructor(options: SimServerOptions) {
    this.options = options;
    this.connection = new SimConnection(options.log);
    this.rowsConnection = new SimConnection(options.log);
  }

  get name(): string {
    return this.options.name;
  }

  /** `null` while it is down. */
  get served(): Served | null {
    return this.#served;
  }

  get leads(): boolean {
    return this.#served?.role === "leader";
  }

  get epoch(): number | null {
    return this.#process?.lease.epoch ?? null;
  }

  get position() {
    return this.#served?.host.position ?? null;
  }

  get callsWaiting(): number {
    return this.#process?.calls.waiting ?? 0;
  }

  /** Starts its process, as a follower. */
  start(): void {
    if (this.#process !== null) return;
    const holder = `${this.name} ${++this.#processes}`;
    this.#process = new Process(this.options, { connection: this.connection, holder });
    this.#serve("follower", null);
  }

  /** Kills its process. */
  kill(): void {
    const process = this.#process;
    if (process === null) return;
    this.#process = null;
    process.stopping.abort();
    process.calls.close();
    this.#endServed();
    this.link?.cut();
    this.link = null;
  }

  [Symbol.dispose](): void {
    this.kill();
  }

  /** Notifies about new rows, like the database's listeners. */
  notice(): void {
    this.#process?.notifications.notify(LOG);
  }

  /** Breaks the connections, so that notifications may be missed. */
  cut(late: (run: () => void) => void): void {
    this.connection.cut(late);
    this.rowsConnection.cut(late);
    this.#process?.notifications.notify(null);
  }

  /** Restarts it as a follower behind its sockets, after the loss of leadership. */
  renewIfWanted(): void {
    if (!this.#wantsRenewal || this.#process === null) return;
    this.#renew("follower");
  }

  /** Accepts a client when the server's state is as new as the client may have seen. */
  async accept(client: SimClient): Promise<void> {
    const served = this.#served;
    const { clock, waits } = this.options;
    if (served === null) return;
    const since = clock.now();
    if (waits) await served.caughtUp();
    if (this.#served !== served || client.connection !== null) return;
    const at = clock.now();
    // Without the database the state may be older. The server waits if the client reports its ts.
    const older = client.options.reportsObserved === false
      ? () => at - since >= clusterLimits.socketWaitMs
      : () => clock.now() - at >= socketLimits.observedTsWaitMs;
    client.connect(served.hub, { older });
  }

  /** Renews or checks the lease once, unless it is doing so. */
  tend(): void {
    const process = this.#process;
    if (process === null || process.tending) return;
    process.tending = true;
    this.#own(process, this.#tend(process).finally(() => process.tending = false));
  }

  /** Reads and applies the next rows, unless it is doing so. */
  pull(): void {
    const process = this.#process;
    const served = this.#served;
    if (process === null || served?.role !== "follower" || process.pulling) return;
    process.pulling = true;
    this.#own(process, this.#pull(process, served).finally(() => process.pulling = false));
  }

  #own(process: Process, work: Promise<unknown>): void {
    work.catch((error) => {
      const expected = error instanceof AwayError || this.#process !== process;
      if (!expected) this.failure ??= error;
    });
  }

  async #tend(process: Process): Promise<void> {
    const { lease } = process;
    const isHere = () => this.#process === process;
    if (lease.epoch !== null) {
      const kept = await lease.renew();
      if (!isHere()) return;
      if (kept === null) {
        if (this.leads) this.#renew("follower");
        return;
      }
      if (!this.leads && await this.#isAtEnd() && isHere() && lease.epoch !== null) this.#renew("leader");
      return;
    }
    const holder = await lease.holder();
    if (!isHere()) return;
    this.leader = holder?.isThis === true ? null : holder;
    if (this.#served?.role === "follower" && (holder === null || holder.leftMs < 0)) await lease.take();
  }

  /** Later calls go to this server. */
  follow(leader: SimServer): void {
    const process = this.#process;
    const { served } = leader;
    if (process === null || this.leads || served === null) return;
    if (this.link?.open === true && this.link.leader === served.host) return;
    this.link?.cut();
    this.link = new SimLink({ calls: process.calls, leader: served.host });
  }

  async #end() {
    const [row] = await this.connection.query(statements.end);
    return row === undefined
      ? this.options.log.end
      : { seq: Number(row["seq"]), ts: Number(row["ts"]), sum: String(row["sum"]) };
  }

  async #isAtEnd(): Promise<boolean> {
    const end = await this.#end();
    return this.position?.seq === end.seq && this.position.sum === end.sum;
  }

  async #pull(process: Process, served: Served): Promise<void> {
    const { signal } = process.stopping;
    const { items } = await process.log.read(served.host.position, { signal });
    if (items.length === 0 || this.#served !== served) return;
    await served.host.apply(items);
  }

  #renew(role: Served["role"]): void {
    const process = this.#process;
    if (process === null) return;
    this.link?.cut();
    this.link = null;
    process.calls.use(null);
    const at = this.position;
    this.#endServed();
    this.#serve(role, at);
  }

  #endServed(): void {
    const served = this.#served;
    this.#served = null;
    this.#wantsRenewal = false;
    if (served === null) return;
    void served.hub.shutdown();
    served.rows?.close();
    served.host[Symbol.dispose]();
  }

  #serve(role: Served["role"], at: Reached | null): void {
    const process = this.#process;
    if (process === null) return;
    const { path, clock, random, authenticator, firstSeq, onPrepared, onRefused } = this.options;
    const { epoch } = process.lease;
    const rows = role === "leader" && epoch !== null && at !== null
      ? new PostgresRows({
        connection: this.rowsConnection,
        statements,
        epoch,
        firstSeq,
        at,
        onLost: () => this.#wantsRenewal = true,
        clock,
      })
      : null;
    const host = new ClusterHost({
      path,
      random,
      readers: 1 + random.below(2),
      clock,
      rows,
      toLeader: process.calls,
      onPrepared,
      onRefused,
    });
    const hub = new Hub({ host, authenticator, dev: false, clock, later: queueMicrotask });
    const caughtUp = caughtUpWith(
      {
        end: () => this.#end().catch((error) => error instanceof AwayError ? null : Promise.reject(error)),
      },
      { host, stuck: () => false, clock },
    );
    this.#served = { role: rows === null ? "follower" : "leader", host, hub, rows, caughtUp };
    if (rows === null) return;
    process.calls.use(new CheckedCalls({ host }));
  }
}
