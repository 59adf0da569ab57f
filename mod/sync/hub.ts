/**
 * The sync hub: creates the sockets and shared queries of one server process and connects their parts (README.md). The server
 * passes it sockets (`accept`) and one-shot queries (`query`), and the function host reports commits.
 */
import { setImmediate } from "node:timers";
import type { RequestSpans } from "../functions/call_trace.ts";
import type { FunctionCall, FunctionHost } from "../functions/host_port.ts";
import type { Outcome } from "../functions/outcome.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { socketLimits } from "../limits.ts";
import type { Rooms } from "../presence/mod.ts";
import { canonicalJson } from "../protocol/canonical_json.ts";
import { type Authenticator, guestCaller } from "./authenticator.ts";
import { sharedQueryLimits } from "./limits.ts";
import { type QueryLoad, SharedQueries } from "./queries/shared_queries.ts";
import type { SharedQuery } from "./queries/shared_query.ts";
import { refuseCall } from "./refuse_call.ts";
import { AdvanceSchedule } from "./sockets/advance_schedule.ts";
import { InboundQuota } from "./sockets/inbound_frames.ts";
import { OpenSockets } from "./sockets/open_sockets.ts";
import { OutboundQuota } from "./sockets/outbound_quota.ts";
import { SessionIndex } from "./sockets/session_index.ts";
import { acceptSocket, type Channel, type SocketConnection, type SocketHandle } from "./sockets/socket.ts";
import { SocketProgress } from "./sockets/socket_progress.ts";
import { SocketTimers } from "./sockets/socket_timers.ts";
import { type SocketContext, SyncConnection } from "./sockets/sync_connection.ts";
import { DiffCache, FrameMemo } from "./sockets/transition_frame.ts";

export interface HubOptions {
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  /** Sends full error texts and log lines to clients. */
  readonly dev: boolean;
  /**
   * The newest ts that the committing process has included in an answer, if that is another process. It may not be known here
   * yet.
   */
  readonly newest?: NewestCommit;
  /** Rooms that sockets may join. None without it. */
  readonly rooms?: Rooms;
  readonly clock?: Clock;
  /** Called with the function path when a result is served from cache. Optional. */
  readonly onCacheHit?: (udfPath: string) => void;
  /** Records spans of the calls of sockets. Optional. */
  readonly spans?: RequestSpans;
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

/** Load of a hub now, and totals since its start. */
export interface HubLoad extends QueryLoad {
  /** Sockets open now, without those being closed. */
  readonly sockets: number;
  readonly transitions: number;
}

/** Default memory budget. */
const MEMORY_BYTES = 1024 ** 3;

export class Hub {
  readonly #context: SocketContext;
  readonly #sockets: OpenSockets<SyncConnection>;
  readonly #newest: NewestCommit | null;
  /** Sockets accepted since the start. */
  #acceptedCount = 0;
  #transitionCount = 0;

  constructor(options: HubOptions) {
    const { host, authenticator, dev, newest = null, rooms, onCacheHit, spans } = options;
    const { clock = systemClock, log = () => {}, memoryBytes = MEMORY_BYTES, later = setImmediate } = options;
    const now = () => clock.now();
    const memo = new FrameMemo(new DiffCache(), { dev });
    const shared: SharedQueries = new SharedQueries({
      host,
      dev,
      onWork: () => advances.schedule(),
      stuck: () => progress.stuck(),
      cachedCharsMax: cachedChars(memoryBytes),
      ...(onCacheHit && { onCacheHit }),
      ...(dev && { onVolatile: volatileNotice(log) }),
    });
    const progress = new SocketProgress(now, shared);
    const advances = new AdvanceSchedule({
      later,
      progress,
      onAdvanced: () => {
        memo.clear();
        shared.startBatches();
      },
    });
    const outbound = new OutboundQuota({ bytesMax: outboundQuotaBytes(memoryBytes), now, log });
    const sockets = new OpenSockets<SyncConnection>({
      outbound,
      clock,
      socketsMax: Math.min(socketLimits.socketsMax, options.socketsMax ?? Infinity),
    });
    const timers = new SocketTimers({
      clock,
      onTick: (now) => {
        outbound.tick();
        progress.tick(now);
        sockets.tick(now);
        this.#stopTimersIfIdle();
      },
    });
    const sessions = new SessionIndex(authenticator);
    this.#newest = newest;
    this.#sockets = sockets;
    this.#context = {
      ...{ host, clock, dev, shared, memo, outbound, advances, timers, sessions },
      ...(spans && { spans }),
      presence: rooms === undefined ? null : { rooms, clock, dev },
      query: (call) => this.query(call),
      inbound: new InboundQuota(inboundQuotaChars(memoryBytes)),
      transitionSent: () => {
        this.#transitionCount++;
      },
      ended: (socket, closeMs) => {
        sockets.ended(socket, closeMs);
        advances.remove(socket);
        timers.remove(socket);
        sessions.remove(socket, socket.requested.identity);
      },
      closed: (socket) => {
        sockets.closed(socket);
        this.#stopTimersIfIdle();
      },
    };
    host.onCommits((entries) => {
      shared.commits(entries);
      progress.commitsArrived();
    }, (group) => {
      const skipped = shared.skipIfUnaffected(group);
      if (skipped) progress.commitsArrived();
      return skipped;
    });
    host.onReload(() => {
      shared.reload();
      progress.commitsArrived();
    });
    host.readers.onFree(() => advances.schedule());
  }

  /** Newest commit known here. */
  get ts(): number {
    return this.#context.shared.ts;
  }

  get load(): HubLoad {
    const { shared } = this.#context;
    return { ...shared.load, sockets: this.#sockets.size, transitions: this.#transitionCount };
  }

  /** Whether work is pending. Includes sockets whose client reads slowly. */
  get busy(): boolean {
    const { advances, timers, shared } = this.#context;
    return advances.busy || timers.polls || shared.busy;
  }

  /** Throws if the state is inconsistent. For tests. */
  validate(): void {
    const { shared } = this.#context;
    let subscriptions = 0;
    for (const socket of this.#sockets) subscriptions += socket.validate();
    if (subscriptions !== shared.subscriptionCount) {
      throw new Error(`Sockets show ${subscriptions} queries, ${shared.subscriptionCount} are subscribed`);
    }
    shared.validate();
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
    const { refusal } = this.#sockets;
    if (refusal !== null) {
      channel.close(refusal.code, refusal.reason);
      return null;
    }
    this.#context.host.readers.prepare?.();
    const socket = new SyncConnection(channel, this.#context, {
      guest: guestCaller(address, ++this.#acceptedCount),
      ts: Math.max(this.ts, this.#newest?.ts ?? 0),
    });
    this.#sockets.add(socket);
    this.#context.timers.schedule(socket);
    return socket;
  }

  /**
   * Waits for the commits up to `newest`, for a bounded time, then runs a query once or answers it from a cached result valid
   * at the newest commit known here. Never rejects.
   */
  query({ udfPath, args, identity, origin, caller, request, trace }: FunctionCall): Promise<Outcome> {
    const refusal = refuseCall({ udfPath, args });
    if (refusal !== null) return Promise.resolve(refusal);
    const { host, shared } = this.#context;
    // A public function gives the same result for any origin.
    const isPublic = host.info(udfPath)?.visibility === "public";
    const spec = { udfPath, args, canonicalArgs: canonicalJson(args), origin: isPublic ? "client" : origin };
    const requester = {
      identity,
      ...(caller && { caller }),
      ...(request !== undefined && { request }),
      ...(trace && { trace }),
    };
    const newestTs = this.#newest?.ts ?? 0;
    return this.#newest === null || newestTs <= shared.ts
      ? shared.query(spec, requester)
      : this.#newest.waitFor(newestTs).then(() => shared.query(spec, requester));
  }

  /** Closes sockets with 1012. Resolves when close frames are answered, when answers stop, or after `httpLimits.drainMs`. */
  async shutdown(): Promise<void> {
    await this.#sockets.shutdown();
    this.#stopTimersIfIdle();
  }

  #stopTimersIfIdle(): void {
    if (this.#sockets.isIdle) this.#context.timers.stop();
  }
}

function outboundQuotaBytes(memoryBytes: number): number {
  const { outboundQuotaShare, outboundQuotaBytesMin, outboundQuotaBytesMax } = socketLimits;
  return Math.min(Math.max(memoryBytes * outboundQuotaShare, outboundQuotaBytesMin), outboundQuotaBytesMax);
}

function cachedChars(memoryBytes: number): number {
  const { cachedCharsShare, cachedCharsMax } = sharedQueryLimits;
  // A cache of size 0 would have no limit.
  return Math.max(1, Math.min(Math.floor(memoryBytes * cachedCharsShare), cachedCharsMax));
}

function inboundQuotaChars(memoryBytes: number): number {
  const { inboundQuotaShare, inboundQuotaCharsMin, inboundQuotaCharsMax } = socketLimits;
  return Math.min(Math.max(memoryBytes * inboundQuotaShare, inboundQuotaCharsMin), inboundQuotaCharsMax);
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
