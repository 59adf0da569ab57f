/** A follower's way to its leader: one connection, its handshake, and what the leader tells on it. */
import { entriesOf, type ServedApp } from "../functions/host/mod.ts";
import type { CommitEntry } from "../engine/types.ts";
import { type Clock, steadyClock } from "../kit/clock.ts";
import { closeQuietly } from "../kit/local_socket.ts";
import { linkLimits } from "./limits.ts";
import { type Frame, FrameReader } from "./link/frames.ts";
import { greet, HandshakeError } from "./link/handshake.ts";
import { Link, type LinkEnd } from "./link/link.ts";
import type { LeaderCalls } from "./leader_calls.ts";
import type {
  FollowerFigures,
  FollowerReport,
  FromFollower,
  FromLeader,
  Hello,
  Welcome,
} from "./messages.ts";

/** What a follower does with what the leader tells. Each is called in the order in which it was said. */
export interface Told {
  commits?(entries: readonly CommitEntry[], ts: number): void;
  missed?(ts: number): void;
  /** A session or a principal's credentials have ended, which no commit tells. */
  ended?(ended: unknown): void;
  /** Queries are to wait, until `release`. Resolves when they do. */
  hold?(): Promise<void>;
  release?(app: ServedApp | null): void;
  /** The leader wants this follower to end. */
  stop?(): void;
  /** This follower is to make ready to lead. Resolves when it is; rejects when it will not be. */
  prepare?(): Promise<void>;
  /** The leader ends soon: nothing more is to be asked of it. */
  leaving?(): void;
}

export interface LeaderLinkOptions {
  readonly conn: Deno.Conn;
  readonly secret: string;
  readonly sealed: boolean;
  readonly hello: Hello;
  readonly calls: LeaderCalls;
  /** Whether this leader is still the one to follow, asked when the handshake has ended. Absent: it is. */
  readonly isCurrent?: () => boolean;
  readonly clock?: Clock;
}

export class LeaderLink {
  readonly #link: Link;
  readonly #calls: LeaderCalls;
  readonly welcome: Welcome;
  /** What came before somebody took it. */
  #early: Frame[] | null = [];
  #earlyChars = 0;
  #told: Told = {};
  /** Whether queries were to wait before there were any. */
  #heldEarly = false;

  private constructor(link: Link, { welcome, calls }: {
    readonly welcome: Welcome;
    readonly calls: LeaderCalls;
  }) {
    this.#link = link;
    this.#calls = calls;
    this.welcome = welcome;
  }

  /**
   * Shows the leader who this is and hears where it stands; calls go by this link from then on. Throws a `HandshakeError`, also
   * when another server leads by then, or what the connection came to; it is closed then.
   */
  static async open(
    { conn, secret, sealed, hello, calls, isCurrent = () => true, clock = steadyClock }: LeaderLinkOptions,
  ): Promise<LeaderLink> {
    const late = clock.after(linkLimits.handshakeMs, () => closeQuietly(conn));
    const reader = new FrameReader(conn);
    try {
      const { seal } = await greet({ conn, reader, secret, sealed }, hello);
      const link = new Link({ conn, reader, seal, clock });
      const welcomed = Promise.withResolvers<Welcome>();
      let opened: LeaderLink | null = null;
      link.ended.then(({ detail }) => welcomed.reject(new HandshakeError(`The link ended: ${detail}`)));
      const first: Frame[] = [];
      link.receive((frame) => {
        if (opened !== null) return opened.#take(frame);
        const message = frame.message as { readonly t?: unknown };
        if (message.t === "welcome") welcomed.resolve(frame.message as Welcome);
        else first.push(frame);
      });
      const welcome = await welcomed.promise;
      // The link to the next leader may be in use already.
      if (!isCurrent()) throw new HandshakeError("Another server leads");
      opened = new LeaderLink(link, { welcome, calls });
      calls.use(link);
      // Behind that: it may be told at once that the leader ends.
      for (const frame of first) opened.#take(frame);
      link.ended.then(() => calls.left(link));
      return opened;
    } catch (error) {
      closeQuietly(conn);
      throw error;
    } finally {
      late.cancel();
    }
  }

  /** Never rejects. */
  get ended(): Promise<{ readonly end: LinkEnd; readonly detail: string }> {
    return this.#link.ended;
  }

  /** From now on this is told; first what came meanwhile. */
  tell(told: Told): void {
    this.#told = told;
    const early = this.#early ?? [];
    this.#early = null;
    if (this.#heldEarly) void told.hold?.().catch(() => {});
    for (const frame of early) this.#take(frame);
  }

  ready(): void {
    this.#say({ t: "ready" });
  }

  report(report: FollowerReport): void {
    this.#say({ t: "runs", ...report });
  }

  figures(figures: FollowerFigures): void {
    this.#say({ t: "figures", figures });
  }

  /** Bytes that the leader has not taken yet. */
  get unsentBytes(): number {
    return this.#link.unsentBytes;
  }

  close(): void {
    this.#link.close();
  }

  #say(message: FromFollower): void {
    this.#link.send(message);
  }

  #take(frame: Frame): void {
    const message = frame.message as FromLeader;
    if (message.t === "mutated" || message.t === "acted" || message.t === "verified") {
      return this.#calls.answered(message, frame.text);
    }
    if (message.t === "leaving") {
      this.#calls.keep(this.#link);
      return this.#told.leaving?.();
    }
    if (this.#early === null) return this.#hear(message, frame.text);
    // Nothing runs yet that would have to wait.
    if (message.t === "hold") {
      this.#heldEarly = true;
      return this.#say({ t: "held", n: message.n });
    }
    this.#earlyChars += frame.text.length;
    if (this.#earlyChars > linkLimits.unsentBytesMax) {
      throw new RangeError("Too much came before this follower had begun");
    }
    this.#early.push(frame);
  }

  #hear(
    message: Exclude<FromLeader, { readonly t: "mutated" | "acted" | "verified" | "leaving" }>,
    text: string,
  ): void {
    const told = this.#told;
    switch (message.t) {
      case "commits":
        return told.commits?.(text === "" ? [] : entriesOf(text), message.ts);
      case "missed":
        return told.missed?.(message.ts);
      case "ended":
        return told.ended?.(message.ended);
      case "hold": {
        const { n } = message;
        return void (told.hold?.() ?? Promise.resolve()).then(() => this.#say({ t: "held", n }), () => {});
      }
      case "prepare":
        return void (told.prepare?.() ?? Promise.reject(new Error("It leads nothing"))).then(
          () => this.#say({ t: "prepared", ok: true }),
          () => this.#say({ t: "prepared", ok: false }),
        );
      case "release":
        return told.release?.(message.app);
      case "stop":
        return told.stop?.();
      default:
        message satisfies never;
        throw new TypeError("The leader said something unknown");
    }
  }
}
