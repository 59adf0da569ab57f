/**
 * The ways of a follower to whoever leads at the moment, on a network: a link for calls, which is made anew whenever it
 * breaks, and a connection for each one on which requests are passed on. Both are sealed.
 */
import { setTimeout as wait } from "node:timers/promises";
import { closeQuietly } from "../kit/local_socket.ts";
import type { Log } from "../kit/log.ts";
import { linkLimits } from "./limits.ts";
import { FrameReader } from "./link/frames.ts";
import { greet } from "./link/handshake.ts";
import type { LeaderCalls } from "./leader_calls.ts";
import { LeaderLink } from "./leader_link.ts";
import { carry, type FarSide, join } from "./tunnel.ts";

/** Who leads, as the cluster tells: `host:port` of its links, under an epoch that nobody else has. */
export interface LeadingServer {
  readonly address: string;
  readonly epoch: number;
}

export interface LeaderRoadOptions {
  /** In the leader's log. */
  readonly name: string;
  readonly secret: string;
  readonly calls: LeaderCalls;
  /** Makes this server ready to lead: the leader asks for it, or may be gone. Rejects when it will not be. */
  readonly prepare: () => Promise<void>;
  readonly log: Log;
}

interface Known extends LeadingServer {
  /** Aborted when somebody else leads, or nobody. */
  readonly gone: AbortController;
  /** Whether it has said that it ends: no more requests are passed on to it. */
  leaving: boolean;
}

export class LeaderRoad implements AsyncDisposable {
  readonly #options: LeaderRoadOptions;
  #leader: Known | null = null;
  /** Newest epoch of a known leader. An older leader is never followed again. */
  #newestEpoch = -Infinity;
  /** Resolved when another one leads. */
  #changed = Promise.withResolvers<void>();
  /** The links, also those of leaders that end. None rejects. */
  readonly #keeping = new Map<Known, Promise<void>>();
  /** Of leaders that leave. */
  readonly #fading = new Set<AbortController>();
  /** Leads to this server's own answers, while it leads. */
  #here: (() => Promise<Deno.Conn>) | null = null;
  readonly #carrying = new Set<Promise<void>>();
  #closed = false;

  constructor(options: LeaderRoadOptions) {
    this.#options = options;
  }

  /**
   * From now on this one is asked; `null`: nobody leads, and calls wait. What was on its way to another one is cut off, but
   * for one that has said that it leaves: it answers that before it ends.
   */
  follow(leader: LeadingServer | null): void {
    if (this.#closed) return;
    this.#here = null;
    const known = this.#leader;
    if (known?.epoch === leader?.epoch && known?.address === leader?.address) return;
    if (leader !== null) {
      if (leader.epoch < this.#newestEpoch) return;
      this.#newestEpoch = leader.epoch;
    }
    if (known?.leaving === true) this.#fade(known);
    else known?.gone.abort();
    const next = this.#leader = leader === null
      ? null
      : { ...leader, gone: new AbortController(), leaving: false };
    this.#tellChange();
    if (next !== null) this.#keeping.set(next, this.#keep(next).finally(() => this.#keeping.delete(next)));
  }

  /** This server leads: requests that wait go to what answers them here. */
  leadHere(connect: () => Promise<Deno.Conn>): void {
    this.follow(null);
    this.#here = connect;
    this.#tellChange();
  }

  /** Passes requests on that come on a listener, until that is closed. Never rejects. */
  async passOn(listener: Deno.Listener): Promise<void> {
    try {
      for await (const near of listener) {
        if (this.#closed || this.#carrying.size >= linkLimits.tunnelsOfFollowerMax) {
          closeQuietly(near);
          continue;
        }
        const carrying = this.#carry(near).finally(() => this.#carrying.delete(carrying));
        this.#carrying.add(carrying);
      }
    } catch (error) {
      if (!this.#closed) {
        this.#options.log("error", "No request can be passed on to the leader any more: restart the server", {
          error,
        });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.follow(null);
    this.#closed = true;
    for (const { gone } of this.#keeping.keys()) gone.abort();
    for (const gone of this.#fading) gone.abort();
    this.#changed.resolve();
    await Promise.all(this.#keeping.values());
    await Promise.all(this.#carrying);
  }

  /** What a leader that leaves has not answered by then is cut off. */
  #fade({ gone }: Known): void {
    this.#fading.add(gone);
    wait(linkLimits.leaveMs, undefined, { signal: gone.signal }).then(() => gone.abort(), () => {})
      .finally(() => this.#fading.delete(gone));
  }

  #tellChange(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #keep(leader: Known): Promise<void> {
    const { address, gone: { signal } } = leader;
    const { name, secret, calls, prepare, log } = this.#options;
    let told = false;
    /** Whether there was a link, which nothing has replaced yet. */
    let lost = false;
    for (let tries = 0; !signal.aborted && this.#leader === leader; tries++) {
      let link: LeaderLink | null = null;
      try {
        const conn = await connect(address, signal);
        const isCurrent = () => this.#leader === leader;
        const hello = { name, commits: false };
        link = await LeaderLink.open({ conn, secret, sealed: true, hello, calls, isCurrent });
        tries = 0;
        lost = false;
        const close = () => link?.close();
        signal.addEventListener("abort", close, { once: true });
        if (signal.aborted) close();
        link.tell({ leaving: () => void (leader.leaving = true), prepare });
        link.ready();
        await link.ended;
        signal.removeEventListener("abort", close);
        lost = true;
      } catch (error) {
        // One that is gone is found to be so only when its lease has ended: what that takes is not waited for in vain. One
        // that is there is reached again at once, and nobody has to stand by.
        if (lost && tries >= GONE_AFTER && !signal.aborted) {
          lost = false;
          void prepare().catch(() => {});
        }
        // One that has just been made the leader takes nobody yet.
        if (!signal.aborted && !told && tries >= TOLD_AFTER) {
          told = true;
          log("warn", "The leader of the cluster cannot be reached by its --cluster-address: writes wait", {
            code: "cluster",
            address,
            error,
          });
        }
      }
      const { retryMsMin, retryMsMax } = linkLimits;
      if (leader.leaving) return;
      const pauseMs = Math.min(retryMsMax / 4, retryMsMin * 2 ** Math.min(tries, 8));
      await wait(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Never rejects. */
  async #answerHere(near: Deno.Conn, connect: () => Promise<Deno.Conn>): Promise<void> {
    try {
      await join(near, await connect());
    } catch {
      // Whoever asked finds the connection closed.
      closeQuietly(near);
    }
  }

  /** Waits for a leader as long as a call would. Never rejects. */
  async #carry(near: Deno.Conn): Promise<void> {
    const { name, secret } = this.#options;
    const until = performance.now() + linkLimits.leaderWaitMs;
    for (let leader = this.#leader; performance.now() < until && !this.#closed; leader = this.#leader) {
      if (this.#here !== null) return await this.#answerHere(near, this.#here);
      if (leader === null || leader.leaving) {
        await Promise.race([this.#changed.promise, wait(linkLimits.retryMsMax)]);
        continue;
      }
      const { address, gone: { signal } } = leader;
      let far: FarSide;
      try {
        far = await reach(address, { signal, secret, name });
      } catch {
        await wait(linkLimits.retryMsMin, undefined, { signal }).catch(() => {});
        continue;
      }
      return await carry(near, { far, signal });
    }
    closeQuietly(near);
  }
}

/** Whose link has ended, and who is not reached so often then, is gone, most likely. */
const GONE_AFTER = 2;

/** So many tries in vain are told of. */
const TOLD_AFTER = 20;

/** A connection for requests, with the handshake behind it. */
async function reach(
  address: string,
  { signal, secret, name }: { readonly signal: AbortSignal; readonly secret: string; readonly name: string },
): Promise<FarSide> {
  const conn = await connect(address, signal);
  const close = () => closeQuietly(conn);
  const late = setTimeout(close, linkLimits.handshakeMs);
  signal.addEventListener("abort", close, { once: true });
  try {
    const reader = new FrameReader(conn);
    const hello = { name, commits: false, requests: true };
    const { seal } = await greet({ conn, reader, secret, sealed: true }, hello);
    return { conn, reader, seal };
  } catch (error) {
    close();
    throw error;
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", close);
  }
}

/** Like `Deno.connect`, but for an address that does not answer it ends after a bounded time. */
async function connect(address: string, signal: AbortSignal): Promise<Deno.TcpConn> {
  const end = address.lastIndexOf(":");
  const hostname = address.slice(0, end).replace(/^\[(.*)\]$/, "$1");
  const connecting = Deno.connect({ hostname, port: Number(address.slice(end + 1)) });
  const given = new AbortController();
  const { signal: over } = given;
  try {
    const late = wait(linkLimits.handshakeMs, null, { signal: AbortSignal.any([signal, over]) })
      .catch(() => null);
    const conn = await Promise.race([connecting, late]);
    if (conn === null || signal.aborted) throw new Deno.errors.TimedOut(`${address} does not answer`);
    conn.setNoDelay();
    return conn;
  } catch (error) {
    connecting.then(closeQuietly, () => {});
    throw error;
  } finally {
    given.abort();
  }
}
