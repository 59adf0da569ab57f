/** The PostgreSQL database of a cluster: three connections, notifications, and log messages about outages. */
import { setTimeout as wait } from "node:timers/promises";
import { type Clock, steadyClock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { LogPosition } from "../../ops/replication/mod.ts";
import { AwayError, PostgresConnection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import { addressText, type PostgresAddress } from "./postgres_address.ts";
import { channelsOf, type Statements, statementsFor } from "./statements.ts";

export class ClusterDatabase implements AsyncDisposable {
  readonly address: PostgresAddress;
  readonly statements: Statements;
  readonly channels: ReturnType<typeof channelsOf>;
  readonly notifications = new Notifications();
  /** For the leader's rows, which must not wait for other statements. */
  readonly rows: PostgresConnection;
  /** For the lease and other small statements, and for notifications. */
  readonly lease: PostgresConnection;
  /** For statements that may take seconds: reading and trimming the log, snapshots, versions. */
  readonly slow: PostgresConnection;
  readonly #log: Log;
  /** Whether this server receives notifications of rows. */
  #listens = true;

  constructor(address: PostgresAddress, log: Log) {
    this.address = address;
    this.#log = log;
    this.statements = statementsFor(address.schema);
    const channels = this.channels = channelsOf(address.schema);
    this.rows = new PostgresConnection({ address, use: "rows" });
    this.slow = new PostgresConnection({ address });
    this.lease = new PostgresConnection({
      address,
      use: "lease",
      first: () => [`listen ${channels.lease}`, ...this.#listens ? [`listen ${channels.log}`] : []],
      onNotice: (channel) => this.notifications.notify(channel),
    });
  }

  /** The address for messages. */
  get text(): string {
    return addressText(this.address);
  }

  /** Returns the last row of the log; `first` if there is none. Throws an `AwayError`. */
  async end(first: LogPosition, connection = this.lease): Promise<LogPosition> {
    const [row] = await connection.query(this.statements.end);
    if (row === undefined) return first;
    const { generation } = first;
    return { generation, seq: Number(row["seq"]), ts: Number(row["ts"]), sum: String(row["sum"]) };
  }

  /** Followers listen for rows. The leader does not, because its own rows would wake it. Never rejects. */
  async listenForRows(listens: boolean): Promise<void> {
    this.#listens = listens;
    const { listen, unlisten } = this.statements;
    try {
      await this.lease.query(listens ? listen : unlisten);
      // Rows may have arrived before.
      if (listens) this.notifications.notify(this.channels.log);
    } catch {
      // The next connection starts with the statement. Until then, this server polls.
    }
  }

  /** Repeats a query while the database is unreachable. Rejects when the signal is aborted. */
  async retry<Answer>(ask: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    let since: number | null = null;
    for (;;) {
      try {
        const answer = await ask();
        if (since !== null) this.logRecovery(since);
        return answer;
      } catch (error) {
        if (!(error instanceof AwayError) || signal.aborted) throw error;
        if (since === null) this.logOutage(error);
        since ??= performance.now();
        await wait(clusterLimits.reconnectMs, undefined, { signal });
      }
    }
  }

  logOutage({ message }: AwayError): void {
    this.#log("warn", "The cluster's database is unreachable; retrying", {
      code: "cluster",
      database: this.text,
      reason: message,
    });
  }

  /** @param since Start of the outage, by performance.now(). */
  logRecovery(since: number): void {
    const forMs = Math.round(performance.now() - since);
    this.#log("info", "The cluster's database is reachable again", { forMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lease[Symbol.asyncDispose]();
    await this.slow[Symbol.asyncDispose]();
    await this.rows[Symbol.asyncDispose]();
  }
}

/** Waits for notifications of the database: new rows, or a free lease. */
export class Notifications {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #counts = new Map<string, number>();
  /** How often notifications may have been missed on all channels. */
  #missed = 0;

  constructor(clock: Clock = steadyClock) {
    this.#clock = clock;
  }

  /** Wakes the waiting callers of a channel; `null`: of all, because notifications may have been missed. */
  notify(channel: string | null): void {
    const channels = channel === null ? [...this.#waiting.keys()] : [channel];
    if (channel === null) this.#missed++;
    else this.#counts.set(channel, (this.#counts.get(channel) ?? 0) + 1);
    for (const name of channels) {
      const waiting = this.#waiting.get(name);
      this.#waiting.delete(name);
      for (const wake of waiting ?? []) wake();
    }
  }

  /** Call before a read. The result waits like `next`, or resolves at once if a notification arrived since. */
  since(channel: string): (wait: { readonly ms: number; readonly signal: AbortSignal }) => Promise<void> {
    const count = () => this.#missed + (this.#counts.get(channel) ?? 0);
    const before = count();
    return (wait) => count() > before ? Promise.resolve() : this.next(channel, wait);
  }

  /** Resolves with the next notification, after a timeout, or on an abort. */
  async next(
    channel: string,
    { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(channel) ?? new Set();
    this.#waiting.set(channel, waiting.add(resolve));
    const timer = this.#clock.after(ms, resolve);
    const aborted = () => resolve();
    signal.addEventListener("abort", aborted, { once: true });
    await promise;
    signal.removeEventListener("abort", aborted);
    timer.cancel();
    waiting.delete(resolve);
  }
}
