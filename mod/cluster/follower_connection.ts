/** The leader's end of the link to one follower: runs its calls, with the limits of local calls, and sends it events. */
import type { ActionAnswer, RunObserver } from "../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { failed, type Outcome, outcomeUnknown } from "../functions/outcome.ts";
import type { Clock } from "../kit/clock.ts";
import { forwardLine, type Log } from "../kit/log.ts";
import { presenceLimits } from "../presence/limits.ts";
import type { RoomFollower, RoomHub } from "../presence/mod.ts";
import type { Hello } from "./handshake.ts";
import { linkLimits } from "./limits.ts";
import type { Link, LinkEnd } from "./link.ts";
import {
  type FollowerFigures,
  type FollowerReport,
  type FromFollower,
  type FromLeader,
  parseFromFollower,
  wireEnd,
} from "./messages.ts";

/** The host of the leader, as its followers use it. */
export interface CallHost {
  /** ts of the newest commit. */
  readonly ts: number;
  mutate(call: MutationCall): Promise<MutationAnswer>;
  act(call: FunctionCall): Promise<Outcome>;
}

/** Returns whether the session of a caller is live. */
export type IsLive = (identity: Identity) => Promise<boolean>;

export interface FollowerOptions {
  readonly host: CallHost;
  /** Checks sessions. A follower may not have received the end of one yet. */
  readonly admits?: IsLive;
  /** Verifies a token of an external issuer. May throw. */
  readonly verify?: (token: string) => Promise<unknown>;
  /** Observes the runs of followers like the leader's own. */
  readonly observer?: RunObserver | null;
  /** Called with the function path when a follower answers from its cache. */
  readonly onCacheHit?: (udfPath: string) => void;
  /** Rooms that the sockets of followers may join. Optional. */
  readonly rooms?: RoomHub;
  readonly onRequests?: (url: string, answers: { readonly status: number; readonly count: number }) => void;
  readonly log: Log;
}

/** Runs calls from followers, or that have waited for this leader, in order, after a check of the caller's session. */
export class CheckedCalls {
  readonly #host: CallHost;
  readonly #isLive: IsLive | undefined;
  /** The newest check of each caller. */
  readonly #newest = new Map<string, Promise<Outcome | null>>();

  constructor({ host, admits }: Pick<FollowerOptions, "host" | "admits">) {
    this.#host = host;
    this.#isLive = admits;
  }

  async mutate(call: MutationCall): Promise<MutationAnswer> {
    const refused = await this.#refusalOf(call);
    return refused === null
      ? await this.#host.mutate(call)
      : { outcome: refused, ts: this.#host.ts, replayed: false };
  }

  async act(call: FunctionCall): Promise<ActionAnswer> {
    const outcome = await this.#refusalOf(call) ?? await this.#host.act(call);
    return { outcome, ts: this.#host.ts };
  }

  /** Resolves with the refusal of a call; `null` if it may run. */
  async #refusalOf({ caller, identity, origin }: FunctionCall): Promise<Outcome | null> {
    const queueKey = caller?.queueKey ?? "";
    const before = this.#newest.get(queueKey);
    const isLive = this.#isLive;
    // Anonymous callers have no session.
    const needed = isLive !== undefined && identity.sessionId !== null && origin !== "system";
    if (before === undefined && !needed) return null;
    const check = (before ?? Promise.resolve()).catch(() => {})
      .then(async () => !needed || await isLive(identity) ? null : sessionEnded());
    this.#newest.set(queueKey, check);
    try {
      return await check;
    } finally {
      if (this.#newest.get(queueKey) === check) this.#newest.delete(queueKey);
    }
  }
}

export class FollowerConnection {
  readonly #link: Link;
  readonly #hello: Hello;
  readonly #options: FollowerOptions;
  readonly #ready = Promise.withResolvers<void>();
  /** Resolvers of `pauseQueries`, by number. */
  readonly #pausing = new Map<number, () => void>();
  readonly #checked: CheckedCalls;
  /** Its members in rooms; `null` if it had none so far. */
  #rooms: RoomFollower | null = null;
  #calls = 0;
  /** Resolved when no call is in progress. Set while `leave` waits. */
  #idle: PromiseWithResolvers<void> | null = null;
  /** Newest reported load; `null` before the first report. */
  figures: FollowerFigures | null = null;

  constructor(link: Link, { hello, options }: { readonly hello: Hello; readonly options: FollowerOptions }) {
    this.#link = link;
    this.#hello = hello;
    this.#options = options;
    this.#checked = new CheckedCalls(options);
    this.#ready.promise.catch(() => {});
    link.ended.then(({ detail }) => {
      this.#ready.reject(new Error(`The link ended: ${detail}`));
      for (const done of this.#pausing.values()) done();
      this.#rooms?.close();
    });
  }

  get name(): string {
    return this.#hello.name;
  }

  /** Whether it reads the leader's database. */
  get readsHere(): boolean {
    return this.#hello.commits;
  }

  /** Resolves when it serves. Rejects when its link ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get ended(): Promise<{ readonly end: LinkEnd; readonly detail: string }> {
    return this.#link.ended;
  }

  /** Begins to handle messages. */
  serve(): void {
    this.#link.receive(({ message }) => this.#handle(parseFromFollower(message)));
  }

  send(message: FromLeader, text = ""): void {
    this.#link.send(message, text);
  }

  sendBody(body: Uint8Array): void {
    this.#link.sendBody(body);
  }

  close(): void {
    this.#link.close();
  }

  /** Asks it to keep further calls for the next leader. Resolves when its earlier calls are answered, or the link ends. */
  async leave(): Promise<void> {
    this.send({ t: "leaving" });
    if (this.#calls === 0) return;
    this.#idle ??= Promise.withResolvers();
    await Promise.race([this.#idle.promise, this.#link.ended]);
  }

  /** Resolves when its queries are paused. Closes the link if that takes too long. */
  async pauseQueries(
    n: number,
    { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!this.#link.open) return;
    this.#pausing.set(n, resolve);
    this.send({ t: "hold", n });
    const late = clock.after(timeoutMs, () => this.close());
    await promise;
    late.cancel();
    this.#pausing.delete(n);
  }

  #handle(message: FromFollower): void {
    switch (message.t) {
      case "mutate":
        return void this.#run(message.id, () => this.#mutate(message.id, message.call));
      case "act":
        return void this.#run(message.id, () => this.#act(message.id, message.call));
      case "verify":
        return void this.#run(message.id, () => this.#verify(message.id, message.token));
      case "held":
        return this.#pausing.get(message.n)?.();
      case "ready":
        return this.#ready.resolve();
      case "runs":
        return this.#observe(message);
      case "figures":
        this.figures = message.figures;
        return;
      case "rooms":
        this.#rooms ??= this.#joinRooms();
        return this.#rooms?.receive(message.changes);
      default:
        message satisfies never;
    }
  }

  #joinRooms(): RoomFollower | null {
    return this.#options.rooms?.connect({
      frame: (room, kind, text) => {
        if (this.#link.unsentBytes > presenceLimits.linkBytesMax) return false;
        this.send({ t: "room", room, kind }, text);
        return true;
      },
      full: (room, id) => this.send({ t: "full", room, id }),
    }) ?? null;
  }

  /** Never rejects. Each call is answered, because the follower waits for that. */
  async #run(id: number, work: () => Promise<void>): Promise<void> {
    if (this.#calls >= linkLimits.callsMax) {
      return this.#answer(id, failed("internal", "Too many calls of one server", { retryable: true }));
    }
    this.#calls++;
    try {
      await work();
    } catch (error) {
      this.#options.log("error", "A call of a follower failed", { error });
      this.#answer(id, outcomeUnknown(error instanceof Error ? error.message : String(error)));
    } finally {
      if (--this.#calls === 0) {
        this.#idle?.resolve();
        this.#idle = null;
      }
    }
  }

  async #mutate(id: number, call: MutationCall): Promise<void> {
    const { outcome, ...answer } = await this.#checked.mutate(call);
    const { end, text } = wireEnd(outcome);
    this.send({ t: "mutated", id, end, answer }, text);
  }

  async #act(id: number, call: FunctionCall): Promise<void> {
    const { outcome } = await this.#checked.act(call);
    this.#answer(id, outcome);
  }

  async #verify(id: number, token: string): Promise<void> {
    const { verify } = this.#options;
    if (verify === undefined) throw new Error("The leader does not verify tokens");
    const verification = await verify(token);
    this.send({ t: "verified", id, verification });
  }

  #answer(id: number, outcome: Outcome): void {
    const { end, text } = wireEnd(outcome);
    this.send({ t: "acted", id, end, ts: this.#options.host.ts }, text);
  }

  #observe({ runs, cached, requests, traced, logged }: FollowerReport): void {
    const { observer, onCacheHit, onRequests, log } = this.#options;
    for (const { url, ...answers } of requests) onRequests?.(url, answers);
    for (const { kind, udfPath, identity, error, logLines, trace, ...end } of runs) {
      const outcome: Outcome = error === null
        ? { ok: true, value: "null", logLines }
        : { ok: false, error, logLines };
      observer?.runEnded(kind, {
        ...end,
        call: { udfPath, identity, ...(trace && { trace }) },
        outcome,
      });
    }
    for (const request of traced) observer?.requestEnded?.(request);
    for (const line of logged) forwardLine(log.receivers ?? [], line);
    for (const udfPath of cached) onCacheHit?.(udfPath);
  }
}

function sessionEnded(): Outcome {
  return failed("internal", "The session of the caller has ended", { retryable: true });
}
