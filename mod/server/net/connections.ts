/** Closes idle, stalled and excess connections of the port, which the runtime keeps. Needs native socket calls. */
import { bodiesBeingRead } from "../../kit/request_body.ts";
import type { Log } from "../../kit/log.ts";
import { connectionLimits } from "../limits.ts";
import type { SocketConnection } from "../../sync/mod.ts";
import { type NativeConnection, type NativeSockets, peerKey } from "./native_sockets.ts";

/** A request that has not been answered yet. */
interface PendingRequest {
  readonly request: Request;
  readonly info: Deno.ServeHandlerInfo;
}

/** Traffic of a connection at the last check, and when it last changed in each direction. */
interface ObservedConnection {
  readonly peer: string;
  acknowledged: number;
  sentAt: number;
  received: number;
  receivedAt: number;
}

/** The connection under a WebSocket, until `closed` is called. */
export interface UpgradedConnection extends SocketConnection {
  closed(): void;
}

export interface ConnectionsOptions {
  /** `null`: connections cannot be closed from here. */
  readonly native: NativeSockets | null;
  readonly log: Log;
  /** Monotonic time in milliseconds. */
  readonly now?: () => number;
}

/** Open files reserved for the database, the isolates and uploads. */
function reserveOf(filesMax: number): number {
  return Math.min(connectionLimits.filesReservedMax, Math.ceil(filesMax / 4));
}

export class Connections implements Disposable {
  readonly #native: NativeSockets | null;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #inFlight = new Set<PendingRequest>();
  /** Peers of connections that were upgraded to WebSockets, which have their own limits. */
  readonly #sockets = new Set<string>();
  #seen = new Map<number, ObservedConnection>();
  /** File descriptor by peer. Rebuilt when a peer is missing. */
  #numbers = new Map<string, number>();
  #port: number | null = null;
  /** Number of file descriptors to check. Grows when connections are found near the end. */
  #filesChecked: number = connectionLimits.filesCheckedMin;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor({ native, log, now = () => performance.now() }: ConnectionsOptions) {
    this.#native = native;
    this.#log = log;
    this.#now = now;
  }

  /** Maximum number of connections. Above it, idle ones are closed. */
  get connectionsMax(): number {
    return this.#native === null ? Infinity : this.#native.filesMax - reserveOf(this.#native.filesMax);
  }

  get socketsMax(): number {
    return Math.floor(this.connectionsMax * connectionLimits.socketsShare);
  }

  watch(port: number): void {
    this.#port = port;
    if (this.#native === null) {
      this.#log("debug", "Idle connections stay open: native socket calls are unavailable");
      return;
    }
    this.#timer ??= setInterval(() => this.check(), connectionLimits.checkMs);
  }

  trackRequest(request: Request, info: Deno.ServeHandlerInfo): void {
    if (this.#native === null) return;
    const entry = { request, info };
    this.#inFlight.add(entry);
    const done = () => this.#inFlight.delete(entry);
    // `completed` resolves after the body, which may stream for any time.
    info.completed.then(done, done);
  }

  /** Tracks a connection that was upgraded to a WebSocket, until `closed` is called. */
  trackUpgrade(remoteAddr: Deno.Addr): UpgradedConnection {
    const peer = remoteAddr.transport === "tcp" ? peerKey(remoteAddr) : "";
    this.#sockets.add(peer);
    return {
      cut: () => {
        const fd = this.#find(peer);
        if (fd !== null) this.#native?.reset(fd);
        return fd !== null;
      },
      acknowledgedBytes: () => {
        const fd = this.#find(peer);
        return fd === null ? null : this.#native?.traffic(fd)?.acknowledged ?? null;
      },
      setReceiveWindow: (size) => {
        const fd = this.#find(peer);
        if (fd !== null) this.#native?.setReceiveBuffer(fd, connectionLimits.receiveWindowBytes[size]);
      },
      closed: () => this.#sockets.delete(peer),
    };
  }

  /** Closes idle, stalled and excess connections. */
  check(): void {
    const now = this.#now();
    const seen = new Map<number, ObservedConnection>();
    const ending: NativeConnection[] = [];
    const idle: IdleConnection[] = [];
    const busy = this.#busy();
    const connections = this.#all();
    for (const connection of connections) {
      const { fd, peer } = connection;
      if (this.#sockets.has(peer)) continue;
      const entry = this.#note(connection, now);
      if (entry === null) continue;
      seen.set(fd, entry);
      const work = busy.get(peer);
      if (work === "answering") {
        entry.sentAt = now;
      } else if (work === "reading") {
        entry.sentAt = now;
        if (now - entry.receivedAt >= connectionLimits.bodyStallMs) ending.push(connection);
      } else {
        const idleMs = entry.acknowledged <= 1
          ? connectionLimits.firstRequestMs
          : connectionLimits.keepAliveMs;
        if (now - entry.sentAt >= idleMs) ending.push(connection);
        else idle.push(idleOf(connection, entry));
      }
    }
    this.#seen = seen;
    const excess = connections.length - ending.length - this.connectionsMax;
    if (excess > 0) ending.push(...longestIdle(idle, excess + connectionLimits.relievedAtOnce));
    for (const { fd } of ending) this.#native?.reset(fd);
  }

  /** Closes idle connections when no file descriptor is left for new ones. Returns how many. */
  closeIdle(): number {
    const busy = this.#busy();
    const now = this.#now();
    const idle: IdleConnection[] = [];
    for (const connection of this.#all()) {
      if (this.#sockets.has(connection.peer) || busy.has(connection.peer)) continue;
      const entry = this.#note(connection, now);
      if (entry !== null) idle.push(idleOf(connection, entry));
    }
    const ending = longestIdle(idle, Math.max(connectionLimits.relievedAtOnce, Math.ceil(idle.length / 2)));
    for (const { fd } of ending) this.#native?.reset(fd);
    return ending.length;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #note({ fd, peer }: NativeConnection, now: number): ObservedConnection | null {
    const traffic = this.#native?.traffic(fd) ?? null;
    if (traffic === null) return null;
    const { acknowledged, received } = traffic;
    const known = this.#seen.get(fd);
    const entry = known?.peer === peer
      ? known
      : { peer, acknowledged, received, sentAt: now, receivedAt: now };
    if (acknowledged !== entry.acknowledged) [entry.acknowledged, entry.sentAt] = [acknowledged, now];
    if (received !== entry.received) [entry.received, entry.receivedAt] = [received, now];
    return entry;
  }

  /** Peers with requests in flight, and whether the server waits for the body of one. */
  #busy(): Map<string, "answering" | "reading"> {
    const busy = new Map<string, "answering" | "reading">();
    for (const { request, info } of this.#inFlight) {
      const peer = peerOf(info);
      if (peer === null) continue;
      if (busy.get(peer) !== "answering") {
        busy.set(peer, bodiesBeingRead.has(request) ? "reading" : "answering");
      }
    }
    return busy;
  }

  #all(): NativeConnection[] {
    const connections: NativeConnection[] = [];
    if (this.#native === null || this.#port === null) return connections;
    for (let fd = 0; fd < this.#filesChecked; fd++) {
      const connection = this.#native.connection(fd, this.#port);
      if (connection !== null) connections.push(connection);
      // A new file gets the lowest free descriptor: if some are near the end, there may be more beyond it.
      if (connection !== null && fd > this.#filesChecked / 2 && this.#filesChecked < this.#native.filesMax) {
        this.#filesChecked = Math.min(this.#filesChecked * 2, this.#native.filesMax);
      }
    }
    return connections;
  }

  /** Finds the descriptor of a connection. Descriptors are reused, so each is verified. */
  #find(peer: string): number | null {
    if (this.#native === null || this.#port === null) return null;
    const known = this.#numbers.get(peer);
    if (known !== undefined && this.#native.connection(known, this.#port)?.peer === peer) return known;
    this.#numbers = new Map(this.#all().map((connection) => [connection.peer, connection.fd]));
    return this.#numbers.get(peer) ?? null;
  }
}

/** `null` for a request that has ended. */
function peerOf(info: Deno.ServeHandlerInfo): string | null {
  try {
    return info.remoteAddr.transport === "tcp" ? peerKey(info.remoteAddr) : null;
  } catch {
    return null;
  }
}

/** A connection without a request in flight. */
interface IdleConnection extends NativeConnection {
  readonly since: number;
  /** Whether it has ever received an answer. */
  readonly answered: boolean;
}

function idleOf(connection: NativeConnection, { sentAt, acknowledged }: ObservedConnection): IdleConnection {
  return { ...connection, since: sentAt, answered: acknowledged > 1 };
}

/** Connections that never sent a request come first. */
function longestIdle(items: IdleConnection[], count: number): IdleConnection[] {
  return items.sort((a, b) => Number(a.answered) - Number(b.answered) || a.since - b.since).slice(0, count);
}
