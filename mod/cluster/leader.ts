/** The leader's side of links: accepts followers, and sends commits in order, after the responses of their calls. */
import { setImmediate } from "node:timers";
import type { CommitEntry } from "../engine/types.ts";
import { type IsolateHost, packedEntries, type PeerReaders } from "../functions/host/mod.ts";
import { type Clock, steadyClock } from "../kit/clock.ts";
import { closeQuietly } from "../kit/local_socket.ts";
import { FollowerConnection, type FollowerOptions } from "./follower_connection.ts";
import { receiveHello } from "./handshake.ts";
import { linkLimits } from "./limits.ts";
import { frameBody, Link, type LinkConn } from "./link.ts";
import type { FromLeader, Welcome } from "./messages.ts";
import { relay } from "./relay.ts";

/** The part of a host that followers need. */
export interface LeaderHost extends Pick<IsolateHost, "ts" | "mutate" | "act" | "onCommits" | "onReload"> {
  readonly commits: Pick<IsolateHost["commits"], "onGroup">;
  readonly code: Pick<IsolateHost["code"], "app">;
  readonly swaps: Pick<IsolateHost["swaps"], "setPeers">;
}

export interface LeaderOptions extends FollowerOptions {
  readonly host: LeaderHost;
  /** Shared by leader and followers. */
  readonly secret: string;
  readonly onFollower?: (follower: FollowerConnection) => void;
  readonly clock?: Clock;
  /** Time for a follower to pause its queries. Then its link is closed. */
  readonly pauseMs?: number;
  /** Connects to the server that answers forwarded HTTP requests. Absent if they use another connection. */
  readonly requestsTo?: () => Promise<Deno.Conn>;
}

const PAUSE_MS = 10_000;

/** A connection that carries forwarded HTTP requests. */
interface RequestConnection {
  /** Name of the follower. */
  readonly name: string;
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

export class Leader implements PeerReaders, AsyncDisposable {
  readonly #options: LeaderOptions;
  readonly #clock: Clock;
  readonly #followers = new Set<FollowerConnection>();
  readonly #handshakes = new Set<LinkConn>();
  readonly #requests = new Set<RequestConnection>();
  readonly #listeners = new Set<Deno.Listener>();
  readonly #accepting: Promise<void>[] = [];
  /** Commits to send, and the ts that they lead to. */
  #entries: CommitEntry[] = [];
  #ts: number;
  #sentTs: number;
  #sendScheduled = false;
  #pauses = 0;
  /** Number of the current pause of queries; `null` if there is none. */
  #pause: number | null = null;
  #leaving = false;
  #closed = false;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    const { host } = options;
    this.#ts = this.#sentTs = host.ts;
    host.onCommits((entries) => void this.#entries.push(...entries), () => this.#readers.length === 0);
    // Called after the commits of a group in the same tick, also for groups without commits.
    host.commits.onGroup(() => this.#scheduleSend());
    host.onReload(() => this.#sendMissed());
    host.swaps.setPeers(this);
  }

  get followers(): ReadonlySet<FollowerConnection> {
    return this.#followers;
  }

  /** Accepts followers on a listener, which is closed with the leader. */
  listen(listener: Deno.Listener): void {
    this.#listeners.add(listener);
    this.#accepting.push(this.#acceptAll(listener));
  }

  accept(conn: LinkConn): void {
    if (this.#closed || !this.#hasRoomFor(conn)) return closeQuietly(conn);
    this.#handshakes.add(conn);
    void this.#welcome(conn).catch((error) => {
      closeQuietly(conn);
      if (!this.#leaving) this.#options.log("warn", "Refused a follower", { error });
    }).finally(() => this.#handshakes.delete(conn));
  }

  /** Asks followers to keep calls for the next leader. Resolves when earlier ones are answered, or after a timeout. */
  async leave(): Promise<void> {
    this.#leaving = true;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const late = this.#clock.after(linkLimits.leaveMs, resolve);
    await Promise.race([Promise.all([...this.#followers].map((follower) => follower.leave())), over]);
    late.cancel();
  }

  /** Resolves when no connection carries forwarded requests. */
  async requestsEnded(): Promise<void> {
    await Promise.all([...this.#requests].map(({ ended }) => ended));
  }

  send(message: FromLeader): void {
    this.#sendCommits();
    for (const follower of this.#followers) follower.send(message);
  }

  async hold(): Promise<void> {
    this.#sendCommits();
    const n = this.#pause = ++this.#pauses;
    const { pauseMs: timeoutMs = PAUSE_MS } = this.#options;
    const pause = (follower: FollowerConnection) =>
      follower.pauseQueries(n, { clock: this.#clock, timeoutMs });
    await Promise.all(this.#readers.map(pause));
  }

  release(app: Parameters<PeerReaders["release"]>[0]): void {
    this.#sendCommits();
    this.#pause = null;
    for (const follower of this.#readers) follower.send({ t: "release", app });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const listener of this.#listeners) closeQuietly(listener);
    for (const conn of this.#handshakes) closeQuietly(conn);
    for (const follower of this.#followers) follower.close();
    for (const { end } of this.#requests) end.abort();
    await Promise.all(this.#accepting);
  }

  async #acceptAll(listener: Deno.Listener): Promise<void> {
    const { log } = this.#options;
    try {
      for await (const conn of listener) this.accept(conn);
    } catch (error) {
      if (!this.#closed) log("error", "Cannot accept followers. Restart the server", { error });
    }
  }

  #hasRoomFor(conn: LinkConn): boolean {
    const { handshakesMax, handshakesOfAddressMax } = linkLimits;
    const address = addressOf(conn);
    const ofAddress = [...this.#handshakes].filter((other) =>
      address !== null && addressOf(other) === address
    );
    return this.#handshakes.size < handshakesMax && ofAddress.length < handshakesOfAddressMax;
  }

  async #welcome(conn: LinkConn): Promise<void> {
    const { secret, host, onFollower } = this.#options;
    const { handshakeMs, remoteHandshakeMs } = linkLimits;
    const ms = addressOf(conn) === null ? handshakeMs : remoteHandshakeMs;
    const late = this.#clock.after(ms, () => closeQuietly(conn));
    try {
      // A refused request waits at the follower for the next leader.
      const { hello, reader } = await receiveHello(conn, {
        secret,
        accepts: ({ requests }) => requests !== true || !this.#leaving,
      });
      if (this.#closed) return closeQuietly(conn);
      if (hello.requests === true) return void this.#forward(hello.name, conn);
      const link = new Link({ conn, reader, clock: this.#clock });
      const follower = new FollowerConnection(link, { hello, options: this.#options });
      // In one tick: the follower receives every commit after this ts, and none before.
      this.#sendCommits();
      const welcome: Welcome = { ts: host.ts, app: hello.commits ? host.code.app : null };
      link.send({ t: "welcome", ...welcome });
      // The functions are being replaced now.
      if (hello.commits && this.#pause !== null) follower.send({ t: "hold", n: this.#pause });
      if (this.#leaving) follower.send({ t: "leaving" });
      this.#followers.add(follower);
      link.ended.then(() => this.#onEnd(follower));
      onFollower?.(follower);
      follower.serve();
    } finally {
      late.cancel();
    }
  }

  #onEnd(follower: FollowerConnection): void {
    this.#followers.delete(follower);
    // It has reconnected. Its requests continue.
    if ([...this.#followers].some(({ name }) => name === follower.name)) return;
    // A machine without power does not close its connections.
    for (const { name, end } of this.#requests) if (name === follower.name) end.abort();
  }

  /** Never rejects. */
  async #forward(name: string, conn: LinkConn): Promise<void> {
    const { requestsTo, log } = this.#options;
    const { tunnelsMax, tunnelsOfFollowerMax } = linkLimits;
    const own = [...this.#requests].filter((other) => other.name === name);
    const isFull = this.#requests.size >= tunnelsMax || own.length >= tunnelsOfFollowerMax;
    if (requestsTo === undefined || isFull) return closeQuietly(conn);
    const ended = Promise.withResolvers<void>();
    const connection = { name, end: new AbortController(), ended: ended.promise };
    this.#requests.add(connection);
    try {
      await relay(await requestsTo(), conn, connection.end.signal);
    } catch (error) {
      closeQuietly(conn);
      if (!this.#closed) log("warn", "Cannot accept a forwarded request", { error });
    } finally {
      this.#requests.delete(connection);
      ended.resolve();
    }
  }

  /** Followers that read the database of this host. */
  get #readers(): FollowerConnection[] {
    return [...this.#followers].filter(({ readsHere }) => readsHere);
  }

  /**
   * Followers expect the response of a mutation before its commit: their sockets send it before the Transition with its
   * writes. The host answers the mutations of a group in the task in which it publishes the group.
   */
  #scheduleSend(): void {
    this.#ts = this.#options.host.ts;
    if (this.#sendScheduled) return;
    this.#sendScheduled = true;
    setImmediate(() => {
      this.#sendScheduled = false;
      this.#sendCommits();
    });
  }

  #sendCommits(): void {
    const entries = this.#entries;
    const ts = this.#ts;
    if (ts === this.#sentTs && entries.length === 0) return;
    this.#entries = [];
    this.#sentTs = ts;
    const readers = this.#readers;
    if (readers.length === 0) return;
    const body = frameBody(
      { t: "commits", ts } satisfies FromLeader,
      entries.length === 0 ? "" : packedEntries(entries),
    );
    for (const follower of readers) follower.sendBody(body);
  }

  /** A reload may have skipped commits. */
  #sendMissed(): void {
    this.#sendCommits();
    const { ts } = this.#options.host;
    if (ts === this.#sentTs) return;
    this.#ts = this.#sentTs = ts;
    for (const follower of this.#readers) follower.send({ t: "missed", ts });
  }
}

/** `null` for a socket of this machine. */
function addressOf({ remoteAddr }: LinkConn): string | null {
  return "hostname" in remoteAddr ? remoteAddr.hostname : null;
}
