/**
 * The sync hub: all sockets and shared queries of the server. Commits invalidate queries, refresh batches run them again, and
 * sockets advance to the new results (ARCHITECTURE.md, "Path of a Transition"). The server passes it sockets (`accept`) and
 * one-shot queries (`query`), and the function host reports commits. Changes of one task are handled together in a microtask.
 * Sockets with mutations in flight advance in a later task. The number of sockets and their buffers are bounded.
 */
import { setImmediate } from "node:timers";
import type { FunctionCall, FunctionHost } from "../functions/host_port.ts";
import type { Log } from "../kit/log.ts";
import type { Identity } from "../functions/identity.ts";
import type { Outcome } from "../functions/outcome.ts";
import { httpLimits, socketLimits } from "../limits.ts";
import { sharedQueryLimits } from "./limits.ts";
import { canonicalJson } from "../protocol/canonical_json.ts";
import { type Authenticator, guestCaller, type SessionEnd } from "./authenticator.ts";
import {
  acceptSocket,
  type Channel,
  closeCodes,
  type SocketConnection,
  type SocketHandle,
} from "./sockets/socket.ts";
import { type Clock, systemClock, type Timer } from "../kit/clock.ts";
import { type ConnectionPort, SyncConnection } from "./sockets/sync_connection.ts";
import { TimerWheel } from "./sockets/heartbeat.ts";
import { DiffCache, FrameMemo } from "./sockets/transition_frame.ts";
import { refuseCall } from "./refuse_call.ts";
import { type QueryWork, SharedQueries } from "./queries/shared_queries.ts";
import type { SharedQuery } from "./queries/shared_query.ts";
import { InboundQuota } from "./sockets/inbound_frames.ts";
import { type OutboundAccount, OutboundQuota } from "./sockets/outbound_quota.ts";

export interface HubOptions {
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  /** Sends full error texts and log lines to clients. */
  readonly dev: boolean;
  /** The newest ts that the committing process has included in an answer, if that is another process. It may not be known here yet. */
  readonly newest?: NewestCommit;
  readonly clock?: Clock;
  /** Called with the function path when a result is served from cache. Optional. */
  readonly onCacheHit?: (udfPath: string) => void;
  readonly log?: Log;
  /** Memory from which the quotas of all sockets are derived. */
  readonly memoryBytes?: number;
  /** Sockets the system has capacity for. */
  readonly socketsMax?: number;
  /** Runs a function in a later task. For tests. */
  readonly later?: (run: () => void) => void;
}

export interface NewestCommit {
  readonly ts: number;
  /** Resolves when commits up to `ts` have arrived here, or after a bounded time. */
  waitFor(ts: number): Promise<void>;
}

/** Default memory budget. */
const MEMORY_BYTES = 1024 ** 3;

/** Stuck sockets considered when a batch is planned. */
const STUCK_VIEWS_MAX = 32;

export class Hub {
  readonly #clock: Clock;
  readonly #shared: SharedQueries;
  readonly #memo: FrameMemo;
  readonly #port: ConnectionPort;
  readonly #host: FunctionHost;
  readonly #newest: NewestCommit | null;
  readonly #connections = new Set<SyncConnection>();
  /** Sockets without a close event so far, including those of ended connections. */
  #openSockets = 0;
  readonly #socketsMax: number;
  readonly #outbound: OutboundQuota;
  readonly #inbound: InboundQuota;
  /** Sockets of ended connections, with the time at which they are aborted. */
  readonly #closing = new Map<OutboundAccount, number>();
  #abortedCount = 0;
  #abortLoggedAt = -Infinity;
  /** Sockets accepted since the start. */
  #acceptedCount = 0;
  /** Transitions sent to all sockets. Never decreases. */
  #transitionCount = 0;
  /** Sockets to advance at the next flush. */
  readonly #toAdvance = new Set<SyncConnection>();
  readonly #slow = new Set<SyncConnection>();
  /** Sockets that lag behind the newest commit because results are missing, by the time they fell behind. */
  readonly #behind = new Map<SyncConnection, number>();
  /** Sockets waiting for commits that have not arrived here, by the time they began to wait. */
  readonly #awaitingTs = new Map<SyncConnection, number>();
  readonly #bySession = new Map<string, Set<SyncConnection>>();
  /** Connections that are verifying a token. They receive every session end in the meantime. */
  readonly #verifying = new Set<SyncConnection>();
  readonly #wheel: TimerWheel<SyncConnection>;
  #ticking: Timer | null = null;
  #polling: Timer | null = null;
  readonly #later: (run: () => void) => void;
  #flushScheduled = false;
  /** Whether a flush of the sockets with mutations in flight is scheduled. */
  #lateFlushScheduled = false;
  #shutDown = false;
  #onAllClosed: (() => void) | null = null;

  constructor(options: HubOptions) {
    const {
      host,
      authenticator,
      dev,
      clock = systemClock,
      onCacheHit,
      log = () => {},
      memoryBytes = MEMORY_BYTES,
      later = setImmediate,
    } = options;
    this.#later = later;
    const { outboundQuotaShare, outboundQuotaBytesMin, outboundQuotaBytesMax } = socketLimits;
    const { inboundQuotaShare, inboundQuotaCharsMin, inboundQuotaCharsMax } = socketLimits;
    this.#socketsMax = Math.min(socketLimits.socketsMax, options.socketsMax ?? Infinity);
    this.#outbound = new OutboundQuota({
      bytesMax: Math.min(
        Math.max(memoryBytes * outboundQuotaShare, outboundQuotaBytesMin),
        outboundQuotaBytesMax,
      ),
      now: () => clock.now(),
      onCut: (bytes) => this.#logAborted(log, bytes),
    });
    this.#inbound = new InboundQuota(
      Math.min(Math.max(memoryBytes * inboundQuotaShare, inboundQuotaCharsMin), inboundQuotaCharsMax),
    );
    this.#host = host;
    this.#newest = options.newest ?? null;
    this.#clock = clock;
    this.#wheel = new TimerWheel(clock.now(), socketLimits.tickMs);
    this.#memo = new FrameMemo(new DiffCache(), { dev });
    this.#shared = new SharedQueries({
      host,
      dev,
      onWork: () => this.#schedule(),
      stuck: () => this.#stuckViews(),
      ...(onCacheHit && { onCacheHit }),
      ...(dev && { onVolatile: volatileNotice(log) }),
    });
    this.#port = {
      host,
      authenticator,
      shared: this.#shared,
      memo: this.#memo,
      clock,
      dev,
      needsAdvance: (connection) => {
        this.#toAdvance.add(connection);
        this.#schedule();
      },
      slow: (connection) => this.#pollUntilDrained(connection),
      deadlinesChanged: (connection) => this.#wheel.schedule(connection, connection.nextDeadline),
      identityChanged: (connection, before) => {
        this.#unindex(connection, before);
        this.#indexSession(connection);
      },
      verifying: (connection, active) => {
        if (active) this.#verifying.add(connection);
        else this.#verifying.delete(connection);
      },
      transitionSent: () => {
        this.#transitionCount++;
      },
      outbound: this.#outbound,
      inbound: this.#inbound,
      ended: (connection, closeMs) => {
        this.#closing.set(connection.outbound, clock.now() + closeMs);
        this.#remove(connection);
      },
      closed: ({ outbound }) => {
        this.#outbound.close(outbound);
        this.#closing.delete(outbound);
        this.#stopTimersIfIdle();
        this.#openSockets--;
        if (this.#openSockets === 0) this.#onAllClosed?.();
      },
    };
    host.onCommits((entries) => {
      this.#shared.commits(entries);
      this.#advanceAwaitingTs();
    }, (group) => {
      const skipped = this.#shared.skipIfUnaffected(group);
      if (skipped) this.#advanceAwaitingTs();
      return skipped;
    });
    host.onReload(() => {
      this.#shared.reload();
      this.#advanceAwaitingTs();
    });
    host.readers.onFree(() => this.#schedule());
    authenticator.onSessionEnd((ended) => this.#sessionEnded(ended));
  }

  /** Newest commit known here. */
  get ts(): number {
    return this.#shared.ts;
  }

  /** Sockets open now, without those being closed. */
  get socketCount(): number {
    return this.#connections.size;
  }

  /** Distinct queries, including cached ones. */
  get queryCount(): number {
    return this.#shared.size;
  }

  get subscriptionCount(): number {
    return this.#shared.subscriptionCount;
  }

  /** Current load, and totals since the start. */
  get work(): QueryWork {
    return this.#shared.work;
  }

  /** Transitions sent since the start. */
  get transitionCount(): number {
    return this.#transitionCount;
  }

  /** Whether work is pending. Includes sockets whose client reads slowly. */
  get busy(): boolean {
    return this.#flushScheduled || this.#toAdvance.size > 0 || this.#slow.size > 0 || this.#shared.busy;
  }

  /** Throws if the state is inconsistent. For tests. */
  validate(): void {
    let subscriptions = 0;
    for (const { state } of this.#connections) {
      state.validate();
      for (const query of state.queries) if (query.refusal === null) subscriptions++;
    }
    if (subscriptions !== this.#shared.subscriptionCount) {
      throw new Error(
        `Sockets show ${subscriptions} queries, ${this.#shared.subscriptionCount} are subscribed`,
      );
    }
    this.#shared.validate();
  }

  /** Serves an upgraded WebSocket, open or connecting. */
  accept(
    socket: WebSocket,
    { connection, address = "local" }: { readonly connection: SocketConnection; readonly address?: string },
  ): void {
    acceptSocket(socket, { connection, connect: (channel) => this.connect(channel, { address }) });
  }

  /** Serves a channel. Closes it and returns `null` if no more sockets are accepted. */
  connect(
    channel: Channel,
    { address = "local" }: { readonly address?: string } = {},
  ): SocketHandle | null {
    if (this.#shutDown) {
      channel.close(closeCodes.restart, "server restart");
      return null;
    }
    if (this.#openSockets >= this.#socketsMax) {
      channel.close(closeCodes.overloaded, "too many sockets");
      return null;
    }
    const connection = new SyncConnection(this.#outbound.open(channel), this.#port, {
      guest: guestCaller(address, ++this.#acceptedCount),
      ts: Math.max(this.#shared.ts, this.#newest?.ts ?? 0),
    });
    this.#connections.add(connection);
    this.#openSockets++;
    this.#wheel.schedule(connection, connection.nextDeadline);
    this.#ticking ??= this.#clock.every(socketLimits.tickMs, () => this.#tick());
    return connection;
  }

  /** Runs a query once, or answers it from a cached result valid at the newest commit. Never rejects. */
  query({ udfPath, args, identity, origin, caller, request }: FunctionCall): Promise<Outcome> {
    const refusal = refuseCall({ udfPath, args });
    if (refusal !== null) return Promise.resolve(refusal);
    // A public function gives the same result for any origin.
    const isPublic = this.#host.info(udfPath)?.visibility === "public";
    const spec = { udfPath, args, canonicalArgs: canonicalJson(args), origin: isPublic ? "client" : origin };
    const requester = { identity, ...(caller && { caller }), ...(request !== undefined && { request }) };
    const newestTs = this.#newest?.ts ?? 0;
    return this.#newest === null || newestTs <= this.#shared.ts
      ? this.#shared.query(spec, requester)
      : this.#newest.waitFor(newestTs).then(() => this.#shared.query(spec, requester));
  }

  /** Closes sockets with 1012. Resolves when close frames are answered, when answers stop, or after `httpLimits.drainMs`. */
  async shutdown(): Promise<void> {
    this.#shutDown = true;
    for (const connection of [...this.#connections]) connection.close(closeCodes.restart, "server restart");
    if (this.#openSockets > 0) await this.#allClosed();
    for (const account of this.#closing.keys()) this.#outbound.cut(account);
    this.#closing.clear();
    this.#stopTimersIfIdle();
  }

  async #allClosed(): Promise<void> {
    await new Promise<void>((resolve) => {
      const endAt = this.#clock.now() + httpLimits.drainMs;
      let openBefore = this.#openSockets;
      const timer = this.#clock.every(httpLimits.closeQuietMs, () => {
        if (this.#openSockets === openBefore || this.#clock.now() >= endAt) this.#onAllClosed?.();
        openBefore = this.#openSockets;
      });
      this.#onAllClosed = () => {
        timer.cancel();
        this.#onAllClosed = null;
        resolve();
      };
    });
  }

  /** Schedules one flush for all changes of this task. */
  #schedule(): void {
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    queueMicrotask(() => this.#flush());
  }

  /** Sockets with mutations in flight advance later: clients expect the response before the Transition with its writes. */
  #flush(): void {
    this.#flushScheduled = false;
    this.#advanceSockets(({ mutationsInFlight }) => mutationsInFlight === 0);
    if (this.#toAdvance.size === 0 || this.#lateFlushScheduled) return;
    this.#lateFlushScheduled = true;
    this.#later(() => {
      this.#lateFlushScheduled = false;
      this.#advanceSockets(() => true);
    });
  }

  #advanceSockets(isDue: (connection: SyncConnection) => boolean): void {
    for (const connection of this.#toAdvance) {
      if (!isDue(connection)) continue;
      this.#toAdvance.delete(connection);
      connection.advance();
      this.#trackBehind(connection);
      this.#trackAwaitedTs(connection);
    }
    this.#memo.clear();
    this.#shared.startBatches();
  }

  #trackBehind(connection: SyncConnection): void {
    const { reachableTs: reach } = connection;
    if (!this.#connections.has(connection) || (reach !== null && reach >= this.#shared.ts)) {
      this.#behind.delete(connection);
    } else if (!this.#behind.has(connection) || (reach !== null && reach > connection.lastReachableTs)) {
      // Progress was made: it counts as behind from now, at the end of the map.
      this.#behind.delete(connection);
      this.#behind.set(connection, this.#clock.now());
    }
    connection.lastReachableTs = reach ?? connection.lastReachableTs;
  }

  #trackAwaitedTs(connection: SyncConnection): void {
    const { awaitedTs } = connection.state;
    if (awaitedTs === null || awaitedTs <= this.#shared.ts || !this.#connections.has(connection)) {
      this.#awaitingTs.delete(connection);
    } else if (!this.#awaitingTs.has(connection)) {
      this.#awaitingTs.set(connection, this.#clock.now());
    }
  }

  /** Advances sockets that wait for a ts that has now been reached. */
  #advanceAwaitingTs(): void {
    for (const connection of this.#awaitingTs.keys()) {
      if ((connection.state.awaitedTs ?? 0) <= this.#shared.ts) connection.needsAdvance();
    }
  }

  *#stuckViews(): Generator<SyncConnection> {
    const since = this.#clock.now() - sharedQueryLimits.stuckSocketMs;
    let count = 0;
    for (const [connection, behindSince] of this.#behind) {
      if (behindSince > since || ++count > STUCK_VIEWS_MAX) return;
      yield connection;
    }
  }

  #tick(): void {
    const now = this.#clock.now();
    for (const connection of this.#wheel.advance(now)) {
      connection.checkDeadlines(now);
      if (this.#connections.has(connection)) this.#wheel.schedule(connection, connection.nextDeadline);
    }
    this.#outbound.tick();
    for (const [connection, since] of this.#awaitingTs) {
      if (since + socketLimits.observedTsWaitMs <= now) connection.lowerMinTs();
    }
    for (const [account, cutAt] of this.#closing) {
      if (cutAt > now) continue;
      this.#closing.delete(account);
      this.#outbound.cut(account);
    }
    this.#stopTimersIfIdle();
  }

  #logAborted(log: Log, bytes: number): void {
    this.#abortedCount++;
    const now = this.#clock.now();
    if (now - this.#abortLoggedAt < socketLimits.terminationLogMs) return;
    this.#abortLoggedAt = now;
    log("warn", "Aborted sockets that do not read their data", { bytes, count: this.#abortedCount });
  }

  #pollUntilDrained(connection: SyncConnection): void {
    this.#slow.add(connection);
    this.#polling ??= this.#clock.every(socketLimits.drainPollMs, () => this.#pollSlow());
  }

  #pollSlow(): void {
    const now = this.#clock.now();
    for (const connection of this.#slow) {
      connection.checkDeadlines(now);
      if (connection.slow) continue;
      this.#slow.delete(connection);
      connection.needsAdvance();
    }
    if (this.#slow.size === 0) {
      this.#polling?.cancel();
      this.#polling = null;
    }
  }

  #sessionEnded(ended: SessionEnd): void {
    const key = "sessionId" in ended ? `s${ended.sessionId}` : `p${ended.principal}`;
    for (const connection of [...this.#bySession.get(key) ?? []]) connection.sessionEnded(ended);
    for (const connection of [...this.#verifying]) connection.sessionEnded(ended);
  }

  #indexSession(connection: SyncConnection): void {
    for (const key of sessionKeys(connection.state.identity)) {
      const connections = this.#bySession.get(key);
      if (connections === undefined) this.#bySession.set(key, new Set([connection]));
      else connections.add(connection);
    }
  }

  #unindex(connection: SyncConnection, identity: Identity): void {
    for (const key of sessionKeys(identity)) {
      const connections = this.#bySession.get(key);
      if (connections?.delete(connection) && connections.size === 0) this.#bySession.delete(key);
    }
  }

  #remove(connection: SyncConnection): void {
    this.#connections.delete(connection);
    this.#toAdvance.delete(connection);
    this.#slow.delete(connection);
    this.#behind.delete(connection);
    this.#awaitingTs.delete(connection);
    this.#verifying.delete(connection);
    this.#wheel.remove(connection);
    this.#unindex(connection, connection.state.identity);
    this.#stopTimersIfIdle();
  }

  #stopTimersIfIdle(): void {
    if (this.#connections.size > 0 || this.#closing.size > 0) return;
    this.#ticking?.cancel();
    this.#ticking = null;
    this.#polling?.cancel();
    this.#polling = null;
  }
}

function* sessionKeys({ sessionId, principal }: Identity): Generator<string> {
  if (sessionId !== null) yield `s${sessionId}`;
  if (principal !== null) yield `p${principal}`;
}

/** Warns once for each function of the app. */
function volatileNotice(log: Log): (query: SharedQuery) => void {
  const noted = new Set<string>();
  return ({ spec: { udfPath }, newest }) => {
    // Runs that were stopped do not report what they read.
    if (newest?.outcome.ok !== true || udfPath.startsWith("_") || noted.has(udfPath)) return;
    noted.add(udfPath);
    log(
      "warn",
      `The live query ${udfPath} reads the clock or random values. Its result changes when data changes, not as time passes: ` +
        "pass the time as an argument, or store what changes with time",
      { code: "time" },
    );
  };
}
