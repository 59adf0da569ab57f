/** One connection of a follower to its leader: the handshake, and the messages that the leader sends. */
import type { CommitEntry } from "../engine/types.ts";
import { entriesOf, type ServedApp } from "../functions/host/mod.ts";
import { type Clock, steadyClock } from "../kit/clock.ts";
import type { RoomChange, RoomLinkEvents } from "../presence/mod.ts";
import { closeQuietly } from "../kit/local_socket.ts";
import { HandshakeError, type Hello, sendHello } from "./handshake.ts";
import type { LeaderCalls } from "./leader_calls.ts";
import { linkLimits } from "./limits.ts";
import { type Frame, Link, type LinkConn, type LinkEnd } from "./link.ts";
import type { FollowerFigures, FollowerReport, FromFollower, FromLeader, Welcome } from "./messages.ts";

/** Called in the order in which the leader sent the messages. */
export interface LeaderEvents {
  commits?(entries: readonly CommitEntry[], ts: number): void;
  /** There are commits up to `ts` that were not sent. */
  missed?(ts: number): void;
  /** Credentials have expired, without a commit. */
  ended?(ended: unknown): void;
  /** Pauses queries until `release`. Resolves when they are paused. */
  hold?(): Promise<void>;
  release?(app: ServedApp | null): void;
  /** Ends this follower. */
  stop?(): void;
  /** The leader stops soon. Further calls go to the next one. */
  leaving?(): void;
  /** Rooms of the leader that sockets of this follower have joined. */
  readonly rooms?: Pick<RoomLinkEvents, "frame" | "full">;
}

export interface LeaderConnectionOptions {
  readonly conn: LinkConn;
  readonly secret: string;
  readonly hello: Hello;
  readonly calls: LeaderCalls;
  /** Returns whether this leader is still the current one after the handshake. Absent: it is. */
  readonly isCurrent?: () => boolean;
  readonly clock?: Clock;
}

export class LeaderConnection {
  readonly #link: Link;
  readonly #calls: LeaderCalls;
  readonly welcome: Welcome;
  /** Messages received before `listen`. */
  #early: Frame[] | null = [];
  #earlyChars = 0;
  #events: LeaderEvents = {};
  /** Whether the leader paused queries before `listen`. */
  #pausedEarly = false;

  private constructor(link: Link, { welcome, calls }: {
    readonly welcome: Welcome;
    readonly calls: LeaderCalls;
  }) {
    this.#link = link;
    this.#calls = calls;
    this.welcome = welcome;
  }

  /** Connects and receives the leader's state. @throws a `HandshakeError`, also if another server leads by now. */
  static async open(
    { conn, secret, hello, calls, isCurrent = () => true, clock = steadyClock }: LeaderConnectionOptions,
  ): Promise<LeaderConnection> {
    const late = clock.after(linkLimits.handshakeMs, () => closeQuietly(conn));
    try {
      const reader = await sendHello(conn, secret, hello);
      const link = new Link({ conn, reader, clock });
      const { promise, resolve, reject } = Promise.withResolvers<LeaderConnection>();
      let connection: LeaderConnection | null = null;
      link.receive((frame) => {
        if (connection !== null) return connection.#handle(frame);
        // The connection to the next leader may be in use already.
        if (!isCurrent()) throw new HandshakeError("Another server leads");
        connection = new LeaderConnection(link, { welcome: frame.message as Welcome, calls });
        // In this task: the leader's next message may announce its stop.
        calls.use(link);
        link.ended.then(() => calls.linkEnded(link));
        resolve(connection);
      });
      link.ended.then(({ detail }) => reject(new HandshakeError(`The link ended: ${detail}`)));
      return await promise;
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

  /** Handles the leader's messages with `events`, starting with those that have arrived. */
  listen(events: LeaderEvents): void {
    this.#events = events;
    const early = this.#early ?? [];
    this.#early = null;
    if (this.#pausedEarly) void events.hold?.().catch(() => {});
    for (const frame of early) this.#handle(frame);
  }

  /** Reports that this follower serves. */
  ready(): void {
    this.#send({ t: "ready" });
  }

  report(report: FollowerReport): void {
    this.#send({ t: "runs", ...report });
  }

  figures(figures: FollowerFigures): void {
    this.#send({ t: "figures", figures });
  }

  /** Sends changes of this follower's members in rooms. Returns `false` if the link has ended. */
  changeRooms(changes: readonly RoomChange[]): boolean {
    return this.#send({ t: "rooms", changes });
  }

  /** Bytes that the leader has not accepted yet. */
  get unsentBytes(): number {
    return this.#link.unsentBytes;
  }

  close(): void {
    this.#link.close();
  }

  #send(message: FromFollower): boolean {
    return this.#link.send(message);
  }

  #handle(frame: Frame): void {
    const message = frame.message as FromLeader;
    if (message.t === "mutated" || message.t === "acted" || message.t === "verified") {
      return this.#calls.answered(message, frame.text);
    }
    if (message.t === "leaving") {
      this.#calls.keep(this.#link);
      return this.#events.leaving?.();
    }
    if (this.#early === null) return this.#dispatch(message, frame.text);
    // No query runs yet.
    if (message.t === "hold") {
      this.#pausedEarly = true;
      return void this.#send({ t: "held", n: message.n });
    }
    this.#earlyChars += frame.text.length;
    if (this.#earlyChars > linkLimits.unsentBytesMax) {
      throw new RangeError("Too much data arrived before this follower was ready");
    }
    this.#early.push(frame);
  }

  #dispatch(
    message: Exclude<FromLeader, { readonly t: "mutated" | "acted" | "verified" | "leaving" }>,
    text: string,
  ): void {
    const events = this.#events;
    switch (message.t) {
      case "commits":
        return events.commits?.(text === "" ? [] : entriesOf(text), message.ts);
      case "missed":
        return events.missed?.(message.ts);
      case "ended":
        return events.ended?.(message.ended);
      case "room":
        return events.rooms?.frame(message.room, message.kind, text);
      case "full":
        return events.rooms?.full(message.room, message.id);
      case "hold": {
        const { n } = message;
        return void (events.hold?.() ?? Promise.resolve()).then(() => this.#send({ t: "held", n }), () => {});
      }
      case "release":
        return events.release?.(message.app);
      case "stop":
        return events.stop?.();
      default:
        message satisfies never;
        throw new TypeError("The leader sent an unknown message");
    }
  }
}
