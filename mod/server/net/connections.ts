/**
 * The connections of the server's port, beside the runtime's own accounts of them: ends the ones that must not stay, which
 * the runtime would keep for ever. Where the system's calls are not to be had, it does nothing.
 */
import { bodiesBeingRead } from "../../kit/request_text.ts";
import type { Log } from "../../kit/log.ts";
import { connectionLimits } from "../limits.ts";
import type { SocketConnection } from "../../sync/mod.ts";
import { type NativeConnection, type NativeSockets, peerKey } from "./native_sockets.ts";

/** A request that has not been answered yet. */
interface UnderWay {
  readonly request: Request;
  readonly info: Deno.ServeHandlerInfo;
}

/** A connection as it was last seen, and since when nothing has gone over it in either direction. */
interface Seen {
  readonly peer: string;
  acknowledged: number;
  sentAt: number;
  received: number;
  receivedAt: number;
}

/** The connection below a socket, until `closed` is called. */
export interface UpgradedConnection extends SocketConnection {
  closed(): void;
}

export interface ConnectionsOptions {
  /** `null`: nothing can be ended from here. */
  readonly native: NativeSockets | null;
  readonly log: Log;
  /** Milliseconds; only differences count. */
  readonly now?: () => number;
}

/** The files of a process that no connection may take: of the database, the isolates, uploads. */
function reserveOf(filesMax: number): number {
  return Math.min(connectionLimits.filesReservedMax, Math.ceil(filesMax / 4));
}

export class Connections implements Disposable {
  readonly #native: NativeSockets | null;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #underWay = new Set<UnderWay>();
  /** Connections that have become sockets, which look after themselves. */
  readonly #sockets = new Set<string>();
  #seen = new Map<number, Seen>();
  /** Numbers of connections by their other side, as of the last time that one was not found. */
  #numbers = new Map<string, number>();
  #port: number | null = null;
  /** Files looked at, from 0: grows when connections are found near its end. */
  #filesLooked: number = connectionLimits.filesLookedMin;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor({ native, log, now = () => performance.now() }: ConnectionsOptions) {
    this.#native = native;
    this.#log = log;
    this.#now = now;
  }

  /** Connections at once; those that do nothing give way to more. */
  get connectionsMax(): number {
    return this.#native === null ? Infinity : this.#native.filesMax - reserveOf(this.#native.filesMax);
  }

  /** Sockets at once: requests have to come through beside them. */
  get socketsMax(): number {
    return Math.floor(this.connectionsMax * connectionLimits.socketsShare);
  }

  /** Looks after the connections of this port from now on. */
  watch(port: number): void {
    this.#port = port;
    if (this.#native === null) {
      this.#log("debug", "Connections that do nothing stay open: this system has no way to end them");
      return;
    }
    this.#timer ??= setInterval(() => this.look(), connectionLimits.lookMs);
  }

  /** Notes a request whose answer takes a while. */
  requested(request: Request, info: Deno.ServeHandlerInfo): void {
    if (this.#native === null) return;
    const entry = { request, info };
    this.#underWay.add(entry);
    const done = () => this.#underWay.delete(entry);
    // Not when the answer begins: its body may stream for as long as it likes.
    info.completed.then(done, done);
  }

  /** Notes that a connection has become a socket, until `closed`. */
  upgraded(remoteAddr: Deno.Addr): UpgradedConnection {
    const peer = remoteAddr.transport === "tcp" ? peerKey(remoteAddr) : "";
    this.#sockets.add(peer);
    return {
      cut: () => {
        const fd = this.#find(peer);
        if (fd !== null) this.#native?.end(fd);
        return fd !== null;
      },
      acknowledgedBytes: () => {
        const fd = this.#find(peer);
        return fd === null ? null : this.#native?.traffic(fd)?.acknowledged ?? null;
      },
      setReceiveWindow: (size) => {
        const fd = this.#find(peer);
        if (fd !== null) this.#native?.buffer(fd, connectionLimits.receiveWindowBytes[size]);
      },
      closed: () => this.#sockets.delete(peer),
    };
  }

  /** Ends what has done nothing for too long, and what is too much. */
  look(): void {
    const now = this.#now();
    const seen = new Map<number, Seen>();
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
    for (const { fd } of ending) this.#native?.end(fd);
  }

  /** There was no file left for a new connection: those that do nothing give way. Gives how many did. */
  relieve(): number {
    const busy = this.#busy();
    const now = this.#now();
    const idle: IdleConnection[] = [];
    for (const connection of this.#all()) {
      if (this.#sockets.has(connection.peer) || busy.has(connection.peer)) continue;
      const entry = this.#note(connection, now);
      if (entry !== null) idle.push(idleOf(connection, entry));
    }
    const ending = longestIdle(idle, Math.max(connectionLimits.relievedAtOnce, Math.ceil(idle.length / 2)));
    for (const { fd } of ending) this.#native?.end(fd);
    return ending.length;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #note({ fd, peer }: NativeConnection, now: number): Seen | null {
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

  /** Whose requests are under way, and whether the server waits for the rest of one. */
  #busy(): Map<string, "answering" | "reading"> {
    const busy = new Map<string, "answering" | "reading">();
    for (const { request, info } of this.#underWay) {
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
    for (let fd = 0; fd < this.#filesLooked; fd++) {
      const connection = this.#native.connection(fd, this.#port);
      if (connection !== null) connections.push(connection);
      // The lowest free number is given to a new file: where there are some near the end there may be more behind it.
      if (connection !== null && fd > this.#filesLooked / 2 && this.#filesLooked < this.#native.filesMax) {
        this.#filesLooked = Math.min(this.#filesLooked * 2, this.#native.filesMax);
      }
    }
    return connections;
  }

  /** The number of a connection. Numbers are given to others when a connection is gone: each is looked at again. */
  #find(peer: string): number | null {
    if (this.#native === null || this.#port === null) return null;
    const known = this.#numbers.get(peer);
    if (known !== undefined && this.#native.connection(known, this.#port)?.peer === peer) return known;
    this.#numbers = new Map(this.#all().map((connection) => [connection.peer, connection.fd]));
    return this.#numbers.get(peer) ?? null;
  }
}

/** `null` for a request that is over. */
function peerOf(info: Deno.ServeHandlerInfo): string | null {
  try {
    return info.remoteAddr.transport === "tcp" ? peerKey(info.remoteAddr) : null;
  } catch {
    return null;
  }
}

/** A connection on which nothing is under way. */
interface IdleConnection extends NativeConnection {
  readonly since: number;
  /** Whether a request of it was ever answered. */
  readonly answered: boolean;
}

function idleOf(connection: NativeConnection, { sentAt, acknowledged }: Seen): IdleConnection {
  return { ...connection, since: sentAt, answered: acknowledged > 1 };
}

/** Those that never asked for anything first. */
function longestIdle(items: IdleConnection[], count: number): IdleConnection[] {
  return items.sort((a, b) => Number(a.answered) - Number(b.answered) || a.since - b.since).slice(0, count);
}
