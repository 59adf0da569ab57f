/**
 * The sync hub: all sockets and all shared queries of the server. Commits mark queries, waves run them, sockets whose
 * queries changed move (ARCHITECTURE.md, "The way of one transition"). What happens within one turn of the event
 * loop is answered together at its end.
 */
import type { FunctionCall, FunctionHost } from "../functions/host_port.ts";
import type { Log } from "../kit/log.ts";
import type { Identity } from "../functions/identity.ts";
import type { Outcome } from "../functions/outcome.ts";
import { httpLimits, socketLimits } from "../limits.ts";
import { sharedQueryLimits } from "./limits.ts";
import { canonicalJson } from "../protocol/canonical_json.ts";
import type { Authenticator, SessionEnd } from "./authenticator.ts";
import { guestOf } from "./caller.ts";
import type { Channel } from "./sockets/channel.ts";
import { type Clock, systemClock, type Timer } from "../kit/clock.ts";
import { closeCodes } from "./sockets/close_codes.ts";
import { Connection, type ConnectionPort } from "./sockets/connection.ts";
import { DeadlineWheel } from "./sockets/deadline_wheel.ts";
import { DiffCache } from "./sockets/diff_cache.ts";
import { FrameMemo } from "./sockets/frame_memo.ts";
import { refuseCall } from "./refuse_call.ts";
import { type QueryWork, SharedQueries } from "./queries/shared_queries.ts";
import { HeldBudget } from "./sockets/held_budget.ts";
import { acceptSocket, type SocketConnection, type SocketHandle } from "./sockets/socket.ts";
import { type UnsentAccount, UnsentBudget } from "./sockets/unsent_budget.ts";

export interface HubOptions {
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  /** Shows real error texts and log lines to clients. */
  readonly dev: boolean;
  /** Where another process commits: the newest ts it has answered for, which may not be known here yet. */
  readonly newest?: NewestCommit;
  readonly clock?: Clock;
  /** Told of each call or subscription that was answered without a run, by its function; nobody has to be. */
  readonly onCacheHit?: (udfPath: string) => void;
  readonly log?: Log;
  /** Memory that the budgets of all sockets are shares of. */
  readonly memoryBytes?: number;
  /** Sockets that the system has room for. */
  readonly socketsMax?: number;
}

export interface NewestCommit {
  readonly ts: number;
  /** Resolves when commits up to a ts are known here, or after a bounded time. */
  reached(ts: number): Promise<void>;
}

/** What is planned with when nobody says how much there is. */
const MEMORY_BYTES = 1024 ** 3;

/** Sockets that are looked at when a wave is planned, at most. */
const STUCK_VIEWS_MAX = 32;

export class Hub {
  readonly #clock: Clock;
  readonly #shared: SharedQueries;
  readonly #memo: FrameMemo;
  readonly #port: ConnectionPort;
  readonly #host: FunctionHost;
  readonly #newest: NewestCommit | null;
  readonly #connections = new Set<Connection>();
  /** Sockets whose close event has not come yet, ended connections included. */
  #openSockets = 0;
  readonly #socketsMax: number;
  readonly #unsent: UnsentBudget;
  readonly #held: HeldBudget;
  /** Sockets whose connections have ended, with the time at which they are cut off. */
  readonly #closing = new Map<UnsentAccount, number>();
  readonly #accounts = new Map<Connection, UnsentAccount>();
  #cutCount = 0;
  #cutToldAt = -Infinity;
  /** Sockets there have been. */
  #socketCount = 0;
  /** Transitions sent to all sockets; never falls. */
  #transitionCount = 0;
  readonly #touched = new Set<Connection>();
  readonly #slow = new Set<Connection>();
  /** Sockets that show less than the newest commit because results are missing, with the time since they stand still. */
  readonly #behind = new Map<Connection, number>();
  /** Sockets that wait for commits this server has not reached, with the time since they wait. */
  readonly #awaitingTs = new Map<Connection, number>();
  readonly #bySession = new Map<string, Set<Connection>>();
  /** Connections that verify a token: told of every session that ends meanwhile. */
  readonly #verifying = new Set<Connection>();
  readonly #wheel: DeadlineWheel<Connection>;
  #ticking: Timer | null = null;
  #polling: Timer | null = null;
  #flushing = false;
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
    } = options;
    const { unsentShare, unsentBytesMin, unsentBytesMax } = socketLimits;
    const { heldShare, heldCharsOfAllMin, heldCharsOfAllMax } = socketLimits;
    this.#socketsMax = Math.min(socketLimits.socketsMax, options.socketsMax ?? Infinity);
    this.#unsent = new UnsentBudget({
      bytesMax: Math.min(Math.max(memoryBytes * unsentShare, unsentBytesMin), unsentBytesMax),
      now: () => clock.now(),
      onCut: (bytes) => this.#tellOfCut(log, bytes),
    });
    this.#held = new HeldBudget(
      Math.min(Math.max(memoryBytes * heldShare, heldCharsOfAllMin), heldCharsOfAllMax),
    );
    this.#host = host;
    this.#newest = options.newest ?? null;
    this.#clock = clock;
    this.#wheel = new DeadlineWheel(clock.now(), socketLimits.tickMs);
    this.#memo = new FrameMemo(new DiffCache(), { dev });
    this.#shared = new SharedQueries({
      host,
      dev,
      onWork: () => this.#schedule(),
      stuck: () => this.#stuckViews(),
      ...(onCacheHit && { onCacheHit }),
    });
    this.#port = {
      host,
      authenticator,
      shared: this.#shared,
      memo: this.#memo,
      clock,
      dev,
      touched: (connection) => {
        this.#touched.add(connection);
        this.#schedule();
      },
      slow: (connection) => this.#watchSlow(connection),
      retimed: (connection) => this.#wheel.schedule(connection, connection.nextAt),
      identityChanged: (connection, before) => {
        this.#unindex(connection, before);
        this.#indexSession(connection);
      },
      verifying: (connection, underWay) => {
        if (underWay) this.#verifying.add(connection);
        else this.#verifying.delete(connection);
      },
      transitionSent: () => {
        this.#transitionCount++;
      },
      unsent: this.#unsent,
      held: this.#held,
      ended: (connection, closeMs) => {
        const account = this.#accounts.get(connection);
        if (account !== undefined) this.#closing.set(account, clock.now() + closeMs);
        this.#forget(connection);
      },
    };
    host.onCommits((entries) => {
      this.#shared.commits(entries);
      this.#tsReached();
    }, (group) => {
      const passes = this.#shared.passes(group);
      if (passes) this.#tsReached();
      return passes;
    });
    host.onReload(() => {
      this.#shared.reload();
      this.#tsReached();
    });
    host.onReaderFree(() => this.#schedule());
    authenticator.onSessionEnd((ended) => this.#sessionEnded(ended));
  }

  /** Newest commit known here. */
  get ts(): number {
    return this.#shared.ts;
  }

  /** Sockets that are connected. */
  get socketCount(): number {
    return this.#connections.size;
  }

  /** Distinct queries known, subscribed to or kept for one-shot calls. */
  get queryCount(): number {
    return this.#shared.size;
  }

  /** Subscriptions of all sockets. */
  get subscriptionCount(): number {
    return this.#shared.subscriptionCount;
  }

  /** Runs of queries under way, waiting and done. */
  get work(): QueryWork {
    return this.#shared.work;
  }

  /** Transitions sent since the start. */
  get transitionCount(): number {
    return this.#transitionCount;
  }

  /** Whether anything is left to do that does not wait for somebody else. */
  get working(): boolean {
    return this.#flushing || this.#touched.size > 0 || this.#slow.size > 0 || this.#shared.working;
  }

  /** Throws when the state of the hub contradicts itself. For tests. */
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

  /** For a hub that was there before its host had begun: what it shows is of the ts at which that stands. */
  begin(): void {
    this.#shared.reload();
    this.#tsReached();
  }

  /** Serves an upgraded WebSocket, open or about to open. */
  accept(
    socket: WebSocket,
    { connection, address = "local" }: { readonly connection: SocketConnection; readonly address?: string },
  ): void {
    acceptSocket(socket, { connection, connect: (channel) => this.connect(channel, { address }) });
  }

  /** Serves a socket of any kind, of a client at an address. `null` when no more are taken: the channel is closed then. */
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
    const account = this.#unsent.open(channel);
    const connection = new Connection(account, this.#port, {
      guest: guestOf(address, ++this.#socketCount),
      ts: Math.max(this.#shared.ts, this.#newest?.ts ?? 0),
    });
    this.#connections.add(connection);
    this.#accounts.set(connection, account);
    this.#openSockets++;
    this.#wheel.schedule(connection, connection.nextAt);
    this.#ticking ??= this.#clock.every(socketLimits.tickMs, () => this.#tick());
    let open = true;
    return {
      receive: (text) => connection.receive(text),
      refuse: (fault, closeCode) => connection.fatal(fault, closeCode),
      closed: () => {
        this.#accounts.delete(connection);
        connection.end();
        if (!open) return;
        open = false;
        this.#unsent.close(account);
        this.#closing.delete(account);
        this.#rest();
        this.#openSockets--;
        if (this.#openSockets === 0) this.#onAllClosed?.();
      },
    };
  }

  /** Runs a query once, or answers from a result that holds at the newest commit. Never rejects. */
  query({ udfPath, args, identity, origin, caller, request }: FunctionCall): Promise<Outcome> {
    const refusal = refuseCall({ udfPath, args });
    if (refusal !== null) return Promise.resolve(refusal);
    // What everybody may call is the same query whoever asks.
    const isPublic = this.#host.info(udfPath)?.visibility === "public";
    const spec = { udfPath, args, canonicalArgs: canonicalJson(args), origin: isPublic ? "client" : origin };
    const asker = { identity, ...(caller && { caller }), ...(request !== undefined && { request }) };
    const newestTs = this.#newest?.ts ?? 0;
    return this.#newest === null || newestTs <= this.#shared.ts
      ? this.#shared.query(spec, asker)
      : this.#newest.reached(newestTs).then(() => this.#shared.query(spec, asker));
  }

  /**
   * Closes every socket with 1012. Resolves when the close frames have been answered, when answers have stopped coming
   * (one dead peer must not keep all others from their restarted server), or after `httpLimits.drainMs`.
   */
  async shutdown(): Promise<void> {
    this.#shutDown = true;
    for (const connection of [...this.#connections]) connection.close(closeCodes.restart, "server restart");
    if (this.#openSockets > 0) await this.#allClosed();
    for (const account of this.#closing.keys()) this.#unsent.cut(account);
    this.#closing.clear();
    this.#rest();
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

  /** Everything that happened in this turn is answered together. */
  #schedule(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    for (const connection of this.#touched) {
      this.#touched.delete(connection);
      connection.advance();
      this.#noteReach(connection);
      this.#noteAwaited(connection);
    }
    this.#memo.clear();
    this.#shared.startWaves();
  }

  #noteReach(connection: Connection): void {
    const { reach } = connection;
    if (!this.#connections.has(connection) || (reach !== null && reach >= this.#shared.ts)) {
      this.#behind.delete(connection);
    } else if (!this.#behind.has(connection) || (reach !== null && reach > connection.lastReach)) {
      // Behind again from now on, at the end of the line.
      this.#behind.delete(connection);
      this.#behind.set(connection, this.#clock.now());
    }
    connection.lastReach = reach ?? connection.lastReach;
  }

  #noteAwaited(connection: Connection): void {
    const { awaitedTs } = connection.state;
    if (awaitedTs === null || awaitedTs <= this.#shared.ts || !this.#connections.has(connection)) {
      this.#awaitingTs.delete(connection);
    } else if (!this.#awaitingTs.has(connection)) {
      this.#awaitingTs.set(connection, this.#clock.now());
    }
  }

  /** The newest known ts has changed: what touched no query of a socket may be what it waits for. */
  #tsReached(): void {
    for (const connection of this.#awaitingTs.keys()) {
      if ((connection.state.awaitedTs ?? 0) <= this.#shared.ts) connection.touch();
    }
  }

  *#stuckViews(): Generator<Connection> {
    const since = this.#clock.now() - sharedQueryLimits.stuckSocketMs;
    let count = 0;
    for (const [connection, stoodSince] of this.#behind) {
      if (stoodSince > since || ++count > STUCK_VIEWS_MAX) return;
      yield connection;
    }
  }

  #tick(): void {
    const now = this.#clock.now();
    for (const connection of this.#wheel.turn(now)) {
      connection.watch(now);
      if (this.#connections.has(connection)) this.#wheel.schedule(connection, connection.nextAt);
    }
    this.#unsent.tick();
    for (const [connection, since] of this.#awaitingTs) {
      if (since + socketLimits.observedTsWaitMs <= now) connection.lowerFloor();
    }
    for (const [account, cutAt] of this.#closing) {
      if (cutAt > now) continue;
      this.#closing.delete(account);
      this.#unsent.cut(account);
    }
    this.#rest();
  }

  #tellOfCut(log: Log, bytes: number): void {
    this.#cutCount++;
    const now = this.#clock.now();
    if (now - this.#cutToldAt < socketLimits.cutToldMs) return;
    this.#cutToldAt = now;
    log("warn", "Sockets are cut off that do not read what they asked for", { bytes, count: this.#cutCount });
  }

  #watchSlow(connection: Connection): void {
    this.#slow.add(connection);
    this.#polling ??= this.#clock.every(socketLimits.drainPollMs, () => this.#pollSlow());
  }

  #pollSlow(): void {
    const now = this.#clock.now();
    for (const connection of this.#slow) {
      connection.watch(now);
      if (connection.slow) continue;
      this.#slow.delete(connection);
      connection.touch();
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

  #indexSession(connection: Connection): void {
    for (const key of sessionKeys(connection.state.identity)) {
      const connections = this.#bySession.get(key);
      if (connections === undefined) this.#bySession.set(key, new Set([connection]));
      else connections.add(connection);
    }
  }

  #unindex(connection: Connection, identity: Identity): void {
    for (const key of sessionKeys(identity)) {
      const connections = this.#bySession.get(key);
      if (connections?.delete(connection) && connections.size === 0) this.#bySession.delete(key);
    }
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    this.#touched.delete(connection);
    this.#slow.delete(connection);
    this.#behind.delete(connection);
    this.#awaitingTs.delete(connection);
    this.#verifying.delete(connection);
    this.#wheel.remove(connection);
    this.#unindex(connection, connection.state.identity);
    this.#rest();
  }

  /** Nothing ticks when there is nothing to look after. */
  #rest(): void {
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
