/**
 * The leader's side: it runs what its followers send, as if it had been asked itself, and tells those that read its
 * database of every commit, in order and before the answer of the call that made it.
 */
import type { CommitEntry } from "../engine/types.ts";
import { type Companions, type IsolateHost, packedEntries, type RunObserver } from "../functions/host/mod.ts";
import type { FunctionCall, MutationCall } from "../functions/host_port.ts";
import { failed, type Outcome, outcomeUnknown } from "../functions/outcome.ts";
import { type Clock, steadyClock, type Timer } from "../kit/clock.ts";
import { closeQuietly } from "../kit/local_socket.ts";
import type { Log } from "../kit/log.ts";
import { Admissions, type Admits } from "./admissions.ts";
import { linkLimits } from "./limits.ts";
import { type Greeted, greetFollower } from "./greeting.ts";
import { frameBody } from "./link/frames.ts";
import { Link, type LinkEnd } from "./link/link.ts";
import { carry, type FarSide } from "./tunnel.ts";
import {
  type FollowerFigures,
  type FollowerReport,
  type FromFollower,
  type FromLeader,
  type Hello,
  parseFromFollower,
  type Welcome,
  wireEnd,
} from "./messages.ts";

/** What of a host its followers need. */
export type LeaderHost = Pick<
  IsolateHost,
  "ts" | "answeredTs" | "app" | "mutate" | "act" | "onCommits" | "onGroup" | "onReload" | "accompany"
>;

export interface LeaderOptions {
  readonly host: LeaderHost;
  /** What both sides have to know. */
  readonly secret: string;
  /** Whether links lead over a network. */
  readonly sealed: boolean;
  /** Whether the session of a caller lives, as the leader knows it: a follower may not have heard of its end yet. */
  readonly admits?: Admits;
  /** Checks a token of another issuer. May throw. */
  readonly verify?: (token: string) => Promise<unknown>;
  /** Told of the runs of followers, as of the leader's own. */
  readonly observer?: RunObserver | null;
  /** Told of answers of followers that took no run, by function. */
  readonly onCacheHit?: (udfPath: string) => void;
  /** Told of requests that followers have answered themselves. */
  readonly onRequests?: (url: string, answers: { readonly status: number; readonly count: number }) => void;
  readonly onFollower?: (follower: Follower) => void;
  readonly clock?: Clock;
  readonly log: Log;
  /** How long a follower may take to have its queries wait, before it is cut off. */
  readonly holdMs?: number;
  /** Connects to whoever answers requests that followers pass on; absent: they pass none on this way. */
  readonly requestsTo?: () => Promise<Deno.Conn>;
}

const HOLD_MS = 10_000;

/** A connection on which requests come. */
interface Tunnel {
  /** Of the follower. */
  readonly name: string;
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

export class Leader implements Companions, AsyncDisposable {
  readonly #options: LeaderOptions;
  readonly #clock: Clock;
  readonly #followers = new Set<Follower>();
  readonly #handshakes = new Set<Deno.Conn>();
  readonly #tunnels = new Set<Tunnel>();
  readonly #listeners = new Set<Deno.Listener>();
  readonly #accepting: Promise<void>[] = [];
  /** Entries of the group that is being told. */
  #entries: readonly CommitEntry[] = [];
  /** ts of the newest group that followers were told of. */
  #toldTs: number;
  #holds = 0;
  /** Number of the hold that is not released yet. */
  #holding: number | null = null;
  #leaving = false;
  #closed = false;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
    const { host } = options;
    this.#toldTs = host.ts;
    host.onCommits((entries) => void (this.#entries = entries), () => this.#hearing.length === 0);
    // Follows the commits of a group in the same turn, also where there are none.
    host.onGroup(() => this.#tellGroup());
    host.onReload(() => this.#tellMissed());
    host.accompany(this);
  }

  get followers(): ReadonlySet<Follower> {
    return this.#followers;
  }

  /** Takes followers on a listener until it is disposed of, which closes it. */
  listen(listener: Deno.Listener): void {
    this.#listeners.add(listener);
    this.#accepting.push(this.#accept(listener));
  }

  /** Takes whoever has connected, like those of a listener; with `greeted` who is let in already, or is about to be. */
  take(conn: Deno.Conn, greeted?: Promise<Greeted>): void {
    if (this.#closed || !this.#hasRoomFor(conn)) return closeQuietly(conn);
    this.#handshakes.add(conn);
    void this.#welcome(conn, greeted).catch((error) => {
      closeQuietly(conn);
      if (!this.#leaving) this.#options.log("warn", "A follower was refused", { error });
    }).finally(() => this.#handshakes.delete(conn));
  }

  /** Has one follower make ready to lead. Resolves with whether one has, after a bounded time. */
  async prepareNext(): Promise<boolean> {
    const over = Promise.withResolvers<boolean>();
    const late = this.#clock.after(linkLimits.prepareMs, () => over.resolve(false));
    const find = async () => {
      for (const follower of [...this.#followers]) if (await follower.prepare()) return true;
      return false;
    };
    const found = await Promise.race([find(), over.promise]);
    late.cancel();
    return found;
  }

  /**
   * What followers ask from now on they keep for the next leader. Resolves when the calls that were taken are answered, or
   * after a bounded time.
   */
  async leave(): Promise<void> {
    this.#leaving = true;
    let late: Timer | null = null;
    const over = new Promise<void>((resolve) => late = this.#clock.after(linkLimits.leaveMs, resolve));
    const left = [...this.#followers].map((follower) => follower.leave());
    await Promise.race([Promise.all(left), over]);
    (late as Timer | null)?.cancel();
  }

  /** Resolves when nothing is on the connections any more on which requests came. */
  async carried(): Promise<void> {
    await Promise.all([...this.#tunnels].map(({ ended }) => ended));
  }

  /** Something that followers are told as it happens, such as the end of an external identity. */
  tell(message: FromLeader): void {
    for (const follower of this.#followers) follower.tell(message);
  }

  async hold(): Promise<void> {
    const n = this.#holding = ++this.#holds;
    const { holdMs = HOLD_MS } = this.#options;
    await Promise.all(
      [...this.#followers].filter(({ readsHere }) => readsHere).map((follower) =>
        follower.hold(n, { clock: this.#clock, holdMs })
      ),
    );
  }

  release(app: Parameters<Companions["release"]>[0]): void {
    this.#holding = null;
    for (const follower of this.#followers) {
      if (follower.readsHere) follower.tell({ t: "release", app });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const listener of this.#listeners) closeQuietly(listener);
    for (const conn of this.#handshakes) closeQuietly(conn);
    for (const follower of this.#followers) follower.close();
    for (const { end } of this.#tunnels) end.abort();
    await Promise.all(this.#accepting);
  }

  async #accept(listener: Deno.Listener): Promise<void> {
    const { log } = this.#options;
    try {
      for await (const conn of listener) this.take(conn);
    } catch (error) {
      if (!this.#closed) log("error", "No follower can connect any more: restart the server", { error });
    }
  }

  #hasRoomFor(conn: Deno.Conn): boolean {
    const { handshakesMax, handshakesOfAddressMax } = linkLimits;
    const address = addressOf(conn);
    const ofAddress = [...this.#handshakes].filter((other) =>
      address !== null && addressOf(other) === address
    );
    return this.#handshakes.size < handshakesMax && ofAddress.length < handshakesOfAddressMax;
  }

  async #welcome(conn: Deno.Conn, early?: Promise<Greeted>): Promise<void> {
    const { secret, sealed, host, onFollower } = this.#options;
    const { handshakeMs, strangerMs } = linkLimits;
    const ms = addressOf(conn) === null ? handshakeMs : strangerMs;
    const late = this.#clock.after(ms, () => closeQuietly(conn));
    // It is told before anything is sent: the request waits for the next leader.
    const passes = ({ requests }: Hello) => {
      if (requests === true && this.#leaving) throw new Error("This server ends");
    };
    try {
      const { hello, reader, seal } = await (early ?? greetFollower(conn, { secret, sealed, passes }));
      if (this.#closed) return closeQuietly(conn);
      if (hello.requests === true) return void this.#carry(hello.name, { conn, reader, seal });
      const link = new Link({ conn, reader, seal, clock: this.#clock });
      const follower = new Follower(link, { hello, options: this.#options });
      // In one turn: from this ts on it is told of everything.
      const welcome: Welcome = { ts: host.ts, app: hello.commits ? host.app : null };
      link.send({ t: "welcome", ...welcome });
      // Of the app it was just told, which is being exchanged.
      if (hello.commits && this.#holding !== null) follower.tell({ t: "hold", n: this.#holding });
      // It came too late to be told with the others.
      if (this.#leaving) follower.tell({ t: "leaving" });
      this.#followers.add(follower);
      link.ended.then(() => {
        this.#followers.delete(follower);
        // Its link was made anew: what goes on beside it goes on.
        if ([...this.#followers].some(({ name }) => name === follower.name)) return;
        // A machine that is gone closes nothing itself.
        for (const { name, end } of this.#tunnels) if (name === follower.name) end.abort();
      });
      onFollower?.(follower);
      follower.serve();
    } finally {
      late.cancel();
    }
  }

  /** Never rejects. */
  async #carry(name: string, far: FarSide): Promise<void> {
    const { requestsTo, log } = this.#options;
    const { tunnelsMax, tunnelsOfFollowerMax } = linkLimits;
    const own = [...this.#tunnels].filter((tunnel) => tunnel.name === name);
    const isFull = this.#tunnels.size >= tunnelsMax || own.length >= tunnelsOfFollowerMax;
    if (requestsTo === undefined || isFull) {
      return closeQuietly(far.conn);
    }
    const ended = Promise.withResolvers<void>();
    const tunnel = { name, end: new AbortController(), ended: ended.promise };
    this.#tunnels.add(tunnel);
    try {
      await carry(await requestsTo(), { far, signal: tunnel.end.signal });
    } catch (error) {
      closeQuietly(far.conn);
      if (!this.#closed) log("warn", "A request of a follower could not be taken", { error });
    } finally {
      this.#tunnels.delete(tunnel);
      ended.resolve();
    }
  }

  /** Those who read the database of this host. */
  get #hearing(): Follower[] {
    return [...this.#followers].filter(({ readsHere }) => readsHere);
  }

  #tellGroup(): void {
    const entries = this.#entries;
    this.#entries = [];
    const { ts } = this.#options.host;
    this.#toldTs = ts;
    const hearing = this.#hearing;
    if (hearing.length === 0) return;
    const body = frameBody(
      { t: "commits", ts } satisfies FromLeader,
      entries.length === 0 ? "" : packedEntries(entries),
    );
    for (const follower of hearing) follower.tellBody(body);
  }

  /** After a reload there may be commits that nobody was told of. */
  #tellMissed(): void {
    const { ts } = this.#options.host;
    if (ts === this.#toldTs) return;
    this.#toldTs = ts;
    for (const follower of this.#followers) {
      if (follower.readsHere) follower.tell({ t: "missed", ts });
    }
  }
}

/** One follower, as long as its link lasts. */
export class Follower {
  readonly #link: Link;
  readonly #hello: Hello;
  readonly #options: LeaderOptions;
  readonly #ready = Promise.withResolvers<void>();
  readonly #held = new Map<number, () => void>();
  readonly #admissions: Admissions;
  #calls = 0;
  /** Settled when it says whether it is ready to lead. */
  #prepared: PromiseWithResolvers<boolean> | null = null;
  /** Resolved when it has no calls under way, if somebody waits for that. */
  #idle: PromiseWithResolvers<void> | null = null;
  /** What it last told of itself; `null` before. */
  figures: FollowerFigures | null = null;

  constructor(link: Link, { hello, options }: { readonly hello: Hello; readonly options: LeaderOptions }) {
    this.#link = link;
    this.#hello = hello;
    this.#options = options;
    this.#admissions = new Admissions(options.admits);
    this.#ready.promise.catch(() => {});
    link.ended.then(({ detail }) => {
      this.#ready.reject(new Error(`The link ended: ${detail}`));
      for (const done of this.#held.values()) done();
    });
  }

  get name(): string {
    return this.#hello.name;
  }

  /** Whether it reads the leader's database. */
  get readsHere(): boolean {
    return this.#hello.commits;
  }

  /** Resolves when it serves; rejects when its link ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get ended(): Promise<{ readonly end: LinkEnd; readonly detail: string }> {
    return this.#link.ended;
  }

  serve(): void {
    this.#link.receive(({ message }) => this.#handle(parseFromFollower(message)));
  }

  tell(message: FromLeader, text = ""): void {
    this.#link.send(message, text);
  }

  tellBody(body: Uint8Array): void {
    this.#link.sendBody(body);
  }

  close(): void {
    this.#link.close();
  }

  /** Has it make ready to lead. Resolves with whether it is; never rejects. */
  async prepare(): Promise<boolean> {
    this.#prepared = Promise.withResolvers();
    this.tell({ t: "prepare" });
    return await Promise.race([this.#prepared.promise, this.#link.ended.then(() => false)]);
  }

  /** Has it keep what it asks from now on. Resolves when nothing of what it asked before is under way, or it is gone. */
  async leave(): Promise<void> {
    this.tell({ t: "leaving" });
    if (this.#calls === 0) return;
    this.#idle ??= Promise.withResolvers();
    await Promise.race([this.#idle.promise, this.#link.ended]);
  }

  /** Resolves when its queries wait, or it is cut off because they do not. */
  async hold(
    n: number,
    { clock, holdMs }: { readonly clock: Clock; readonly holdMs: number },
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!this.#link.open) return;
    this.#held.set(n, resolve);
    this.tell({ t: "hold", n });
    const late = clock.after(holdMs, () => this.close());
    await promise;
    late.cancel();
    this.#held.delete(n);
  }

  #handle(message: FromFollower): void {
    switch (message.t) {
      case "mutate":
        return void this.#take(message.id, () => this.#mutate(message.id, message.call));
      case "act":
        return void this.#take(message.id, () => this.#act(message.id, message.call));
      case "verify":
        return void this.#take(message.id, () => this.#verify(message.id, message.token));
      case "held":
        return this.#held.get(message.n)?.();
      case "ready":
        return this.#ready.resolve();
      case "runs":
        return this.#observe(message);
      case "figures":
        this.figures = message.figures;
        return;
      case "prepared":
        return this.#prepared?.resolve(message.ok);
      default:
        message satisfies never;
    }
  }

  /** Nothing of it rejects, whatever fails: the follower would wait for ever. */
  async #take(id: number, work: () => Promise<void>): Promise<void> {
    if (this.#calls >= linkLimits.callsMax) {
      const { end } = wireEnd(failed("internal", "Too many calls of one server", { retryable: true }));
      return this.tell({ t: "acted", id, end, ts: this.#options.host.answeredTs });
    }
    this.#calls++;
    try {
      await work();
    } catch (error) {
      this.#options.log("error", "A call of a follower failed", { error });
      const { end } = wireEnd(outcomeUnknown(error instanceof Error ? error.message : String(error)));
      this.tell({ t: "acted", id, end, ts: this.#options.host.answeredTs });
    } finally {
      if (--this.#calls === 0) {
        this.#idle?.resolve();
        this.#idle = null;
      }
    }
  }

  async #mutate(id: number, call: MutationCall): Promise<void> {
    const refused = await this.#admissions.refusalOf(call);
    if (refused !== null) return this.#answer(id, refused);
    const { outcome, ...answer } = await this.#options.host.mutate(call);
    const { end, text } = wireEnd(outcome);
    this.tell({ t: "mutated", id, end, answer }, text);
  }

  async #act(id: number, call: FunctionCall): Promise<void> {
    this.#answer(id, await this.#admissions.refusalOf(call) ?? await this.#options.host.act(call));
  }

  async #verify(id: number, token: string): Promise<void> {
    const { verify } = this.#options;
    if (verify === undefined) throw new Error("The leader checks no tokens");
    const verification = await verify(token);
    this.tell({ t: "verified", id, verification });
  }

  #answer(id: number, outcome: Outcome): void {
    const { end, text } = wireEnd(outcome);
    this.tell({ t: "acted", id, end, ts: this.#options.host.answeredTs }, text);
  }

  #observe({ runs, cached, requests }: FollowerReport): void {
    const { observer, onCacheHit, onRequests } = this.#options;
    for (const { url, ...answers } of requests) onRequests?.(url, answers);
    for (const { kind, udfPath, identity, error, logLines, ...end } of runs) {
      const outcome: Outcome = error === null
        ? { ok: true, value: "null", logLines }
        : { ok: false, error, logLines };
      observer?.runEnded(kind, { ...end, call: { udfPath, identity }, outcome });
    }
    for (const udfPath of cached) onCacheHit?.(udfPath);
  }
}

/** `null` on a socket of this machine. */
function addressOf({ remoteAddr }: Deno.Conn): string | null {
  return "hostname" in remoteAddr ? remoteAddr.hostname : null;
}
