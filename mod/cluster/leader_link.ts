/** A follower's link to the leader: one reconnecting connection for calls, and one for each forwarded connection. */
import { setTimeout as wait } from "node:timers/promises";
import { closeQuietly } from "../kit/local_socket.ts";
import type { Log } from "../kit/log.ts";
import { sendHello } from "./handshake.ts";
import type { LeaderCalls } from "./leader_calls.ts";
import { LeaderConnection } from "./leader_connection.ts";
import { linkLimits } from "./limits.ts";
import type { LinkConn } from "./link.ts";
import { relay } from "./relay.ts";
import type { LeaderRooms } from "./leader_rooms.ts";
import { connectTls } from "./tls.ts";

/** The leader, as the cluster publishes it. */
export interface LeadingServer {
  /** `host:port` for links. */
  readonly address: string;
  /** PEM text of the certificate with which it answers. */
  readonly certificate: string;
  readonly epoch: number;
}

export interface LeaderLinkOptions {
  /** Name of this server in the leader's log. */
  readonly name: string;
  readonly secret: string;
  readonly calls: LeaderCalls;
  readonly rooms?: LeaderRooms;
  readonly log: Log;
}

interface KnownLeader extends LeadingServer {
  /** Aborted when another server leads, or none. */
  readonly gone: AbortController;
  /** Whether it stops soon. Requests then wait for the next leader. */
  leaving: boolean;
}

export class LeaderLink implements AsyncDisposable {
  readonly #options: LeaderLinkOptions;
  #leader: KnownLeader | null = null;
  /** Newest epoch of a known leader. An older leader is never followed again. */
  #newestEpoch = -Infinity;
  /** Resolved when the leader changes. */
  #changed = Promise.withResolvers<void>();
  /** Loops that keep the links open, also of leaders that stop. None rejects. */
  readonly #loops = new Map<KnownLeader, Promise<void>>();
  /** Leaders that stop and still answer. */
  readonly #stopping = new Set<AbortController>();
  /** Connects to this server's own HTTP layer while it leads. */
  #local: (() => Promise<Deno.Conn>) | null = null;
  readonly #forwarding = new Set<Promise<void>>();
  #closed = false;

  constructor(options: LeaderLinkOptions) {
    this.#options = options;
  }

  /** Follows a leader (`null`: calls wait). Closes earlier connections, except one that still answers before its stop. */
  follow(leader: LeadingServer | null): void {
    if (this.#closed) return;
    this.#local = null;
    const known = this.#leader;
    if (known?.epoch === leader?.epoch && known?.address === leader?.address) return;
    if (leader !== null) {
      if (leader.epoch < this.#newestEpoch) return;
      this.#newestEpoch = leader.epoch;
    }
    if (known?.leaving === true) this.#closeLater(known);
    else known?.gone.abort();
    const next = this.#leader = leader === null
      ? null
      : { ...leader, gone: new AbortController(), leaving: false };
    this.#notifyChange();
    if (next !== null) this.#loops.set(next, this.#keepOpen(next).finally(() => this.#loops.delete(next)));
  }

  /** This server leads: waiting requests use `connect`. */
  leadHere(connect: () => Promise<Deno.Conn>): void {
    this.follow(null);
    this.#local = connect;
    this.#notifyChange();
  }

  /** Forwards the connections of a listener until it is closed. Never rejects. */
  async forward(listener: Deno.Listener): Promise<void> {
    try {
      for await (const near of listener) {
        if (this.#closed || this.#forwarding.size >= linkLimits.tunnelsOfFollowerMax) {
          closeQuietly(near);
          continue;
        }
        const forwarding = this.#forward(near).finally(() => this.#forwarding.delete(forwarding));
        this.#forwarding.add(forwarding);
      }
    } catch (error) {
      if (!this.#closed) {
        this.#options.log("error", "Cannot forward requests to the leader. Restart the server", { error });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.follow(null);
    this.#closed = true;
    for (const { gone } of this.#loops.keys()) gone.abort();
    for (const gone of this.#stopping) gone.abort();
    this.#changed.resolve();
    await Promise.all(this.#loops.values());
    await Promise.all(this.#forwarding);
  }

  /** Gives a stopping leader a bounded time for its answers. */
  #closeLater({ gone }: KnownLeader): void {
    this.#stopping.add(gone);
    wait(linkLimits.leaveMs, undefined, { signal: gone.signal }).then(() => gone.abort(), () => {})
      .finally(() => this.#stopping.delete(gone));
  }

  #notifyChange(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #keepOpen(leader: KnownLeader): Promise<void> {
    const { address, gone: { signal } } = leader;
    const { name, secret, calls, rooms, log } = this.#options;
    let logged = false;
    for (let tries = 0; !signal.aborted && this.#leader === leader && !leader.leaving; tries++) {
      try {
        const conn = await connectTls(leader, signal);
        const isCurrent = () => this.#leader === leader;
        const hello = { name, commits: false };
        const connection = await LeaderConnection.open({ conn, secret, hello, calls, isCurrent });
        tries = 0;
        const close = () => connection.close();
        signal.addEventListener("abort", close, { once: true });
        if (signal.aborted) close();
        connection.listen({
          leaving: () => void (leader.leaving = true),
          ...rooms && { rooms: rooms.use(connection) },
        });
        connection.ready();
        await connection.ended;
        signal.removeEventListener("abort", close);
      } catch (error) {
        // A new leader does not accept links before it serves.
        if (!signal.aborted && !logged && tries >= LOGGED_AFTER) {
          logged = true;
          log("warn", "The leader of the cluster is unreachable at its --cluster-address: writes wait", {
            code: "cluster",
            address,
            error,
          });
        }
      }
      const { retryMsMin, retryMsMax } = linkLimits;
      const pauseMs = Math.min(retryMsMax / 4, retryMsMin * 2 ** Math.min(tries, 8));
      await wait(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Never rejects. The client sees a closed connection if this server stops leading. */
  async #answerHere(near: Deno.Conn, connect: () => Promise<Deno.Conn>): Promise<void> {
    try {
      await relay(near, await connect());
    } catch {
      closeQuietly(near);
    }
  }

  /** Waits for a leader as long as a call does. Never rejects. */
  async #forward(near: Deno.Conn): Promise<void> {
    const until = performance.now() + linkLimits.leaderWaitMs;
    for (let leader = this.#leader; performance.now() < until && !this.#closed; leader = this.#leader) {
      if (this.#local !== null) return await this.#answerHere(near, this.#local);
      if (leader === null || leader.leaving) {
        await Promise.race([this.#changed.promise, wait(linkLimits.retryMsMax)]);
        continue;
      }
      const { gone: { signal } } = leader;
      let far: LinkConn;
      try {
        far = await this.#connect(leader);
      } catch {
        await wait(linkLimits.retryMsMin, undefined, { signal }).catch(() => {});
        continue;
      }
      return await relay(near, far, signal);
    }
    closeQuietly(near);
  }

  /** Opens a connection for requests. */
  async #connect({ address, certificate, gone: { signal } }: KnownLeader): Promise<LinkConn> {
    const { name, secret } = this.#options;
    const conn = await connectTls({ address, certificate }, signal);
    const close = () => closeQuietly(conn);
    const late = setTimeout(close, linkLimits.handshakeMs);
    signal.addEventListener("abort", close, { once: true });
    try {
      await sendHello(conn, secret, { name, commits: false, requests: true });
      return conn;
    } catch (error) {
      close();
      throw error;
    } finally {
      clearTimeout(late);
      signal.removeEventListener("abort", close);
    }
  }
}

/** Failed attempts before a warning is logged. */
const LOGGED_AFTER = 20;
