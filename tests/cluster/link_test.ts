/** The link between a leader and its followers: who may speak on it, in which order, and within which bounds. */
import assert from "node:assert/strict";
import {
  Admissions,
  EarlyFollowers,
  Leader,
  LeaderCalls,
  type LeaderHost,
  LeaderLink,
} from "../../mod/cluster/mod.ts";
import { linkLimits } from "../../mod/cluster/limits.ts";
import { frameBody, framed, FrameReader, parseBody } from "../../mod/cluster/link/frames.ts";
import { greet } from "../../mod/cluster/link/handshake.ts";
import { Link } from "../../mod/cluster/link/link.ts";
import { Sealing } from "../../mod/cluster/link/sealing.ts";
import type { CommitEntry } from "../../mod/engine/types.ts";
import type { ServedApp } from "../../mod/functions/host/mod.ts";
import type { MutationAnswer, MutationCall } from "../../mod/functions/host_port.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { until } from "../support/waiting.ts";

const APP: ServedApp = { version: "abc", functions: [], crons: [], routes: [] };

/** A host that runs nothing: what it is asked is answered by the test. */
class HostDouble implements LeaderHost {
  ts = 1;
  answeredTs = 0;
  readonly app = APP;
  readonly asked: { readonly call: MutationCall; readonly answer: (answer: MutationAnswer) => void }[] = [];
  #onCommits: (entries: readonly CommitEntry[]) => void = () => {};
  #onGroup: () => void = () => {};
  #onReload: () => void = () => {};

  onCommits(listener: (entries: readonly CommitEntry[]) => void): void {
    this.#onCommits = listener;
  }

  onGroup(listener: () => void): void {
    this.#onGroup = listener;
  }

  onReload(listener: () => void): void {
    this.#onReload = listener;
  }

  accompany(): void {}

  mutate(call: MutationCall): Promise<MutationAnswer> {
    const { promise, resolve } = Promise.withResolvers<MutationAnswer>();
    this.asked.push({ call, answer: resolve });
    return promise;
  }

  act() {
    return Promise.resolve({ ok: true as const, value: "1", logLines: [] });
  }

  commit(): void {
    this.ts++;
    this.#onCommits([{ ts: this.ts, at: 0, changes: [] }]);
    this.#onGroup();
  }

  lose(): void {
    this.ts += 5;
    this.#onReload();
  }
}

class World implements AsyncDisposable {
  readonly host = new HostDouble();
  readonly listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly log: string[] = [];
  readonly leader: Leader;
  readonly #links: LeaderLink[] = [];
  readonly #sealed: boolean;

  constructor({ sealed = false, admits = () => Promise.resolve(true) }: {
    readonly sealed?: boolean;
    readonly admits?: () => Promise<boolean>;
  } = {}) {
    this.#sealed = sealed;
    this.leader = new Leader({
      host: this.host,
      secret: "right",
      sealed,
      admits,
      log: (_level, message, fields) => this.log.push(`${message} ${fields?.error}`),
    });
    this.leader.listen(this.listener);
  }

  connect(): Promise<Deno.TcpConn> {
    return Deno.connect({ hostname: "127.0.0.1", port: this.listener.addr.port });
  }

  async follow(calls: LeaderCalls, secret = "right"): Promise<LeaderLink> {
    const hello = { name: "f", commits: true };
    const link = await LeaderLink.open({
      conn: await this.connect(),
      secret,
      sealed: this.#sealed,
      hello,
      calls,
    });
    this.#links.push(link);
    return link;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const link of this.#links) link.close();
    await this.leader[Symbol.asyncDispose]();
  }
}

function mutation(requestId: number | null): MutationCall {
  const replay = requestId === null ? {} : { replay: { sessionId: "s", requestId } };
  return { udfPath: "a:b", args: { text: "ü\n" }, identity: anonymous, origin: "client", ...replay };
}

const DONE = { outcome: { ok: true, value: '"é\\n"', logLines: ["said"] }, ts: 2, replayed: false } as const;

for (const sealed of [false, true]) {
  Deno.test(`[WK9] calls and commits pass a link in their order, ${sealed ? "sealed" : "plain"}`, async () => {
    await using world = new World({ sealed });
    const { host } = world;
    const calls = new LeaderCalls({ ts: () => 0 });
    const link = await world.follow(calls);
    assert.deepEqual(link.welcome.app, APP);
    const order: string[] = [];
    host.commit();
    link.tell({
      commits: (entries, ts) => order.push(`${entries.length} entries at ${ts}`),
      missed: (ts) => order.push(`missed up to ${ts}`),
    });
    const answered = calls.mutate(mutation(7)).then((answer) => {
      order.push("answered");
      return answer;
    });
    await until(() => host.asked.length === 1);
    assert.deepEqual(host.asked[0]?.call, mutation(7));
    host.commit();
    host.lose();
    host.asked[0]?.answer(DONE);
    assert.deepEqual(await answered, DONE);
    assert.deepEqual(order, ["1 entries at 2", "1 entries at 3", "missed up to 8", "answered"]);
    // It may show commits of a server that leads by now.
    host.answeredTs = host.ts + 7;
    assert.deepEqual(await calls.act(mutation(null)), {
      outcome: { ok: true, value: "1", logLines: [] },
      ts: host.ts + 7,
    });
    calls.close();
  });
}

Deno.test("[WK9] who does not know the secret is refused, on either side, and nothing is told", async () => {
  await using world = new World();
  const calls = new LeaderCalls({ ts: () => 0 });
  await assert.rejects(world.follow(calls, "wrong"), /closed the connection/);
  await until(() => world.log.some((line) => line.includes("does not know the secret")));
  // A leader that only claims to be one.
  const liar = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: liar.addr.port });
  const other = await liar.accept();
  const opened = LeaderLink.open({
    conn,
    secret: "right",
    sealed: false,
    hello: { name: "f", commits: true },
    calls,
  });
  await other.write(framed(frameBody({ link: 1, nonce: "0".repeat(64) })));
  const told = parseBody(await new FrameReader(other).next(4_096) ?? new Uint8Array()).message;
  assert.match(JSON.stringify(told), /"proof":"[0-9a-f]{64}"/);
  await other.write(framed(frameBody({ proof: "0".repeat(64), welcome: "{}" })));
  await assert.rejects(opened, /does not know the secret/);
  other.close();
  liar.close();
  assert.equal(world.leader.followers.size, 0);
});

Deno.test("[PG16] who comes to the next leader before it serves is let in meanwhile, a request not before", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  using early = new EarlyFollowers("right");
  const come = async (hello: object, secret = "right") => {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
    early.hold(await listener.accept());
    const reader = new FrameReader(conn);
    return { conn, reader, greeted: greet({ conn, reader, secret, sealed: true }, hello) };
  };
  const request = await come({ name: "f", commits: false, requests: true });
  const link = await come({ name: "f", commits: false });
  let isTaken = false;
  void request.greeted.then(() => isTaken = true);
  const { seal } = await link.greeted;
  const stranger = await come({ name: "g", commits: false }, "wrong");
  await assert.rejects(stranger.greeted);
  assert.equal(isTaken, false);
  const leader = new Leader({ host: new HostDouble(), secret: "right", sealed: true, log: () => {} });
  early.giveTo(leader);
  await request.greeted;
  const body = await link.reader.next(4_096);
  assert.ok(body !== null && seal !== null);
  assert.deepEqual(parseBody(seal.open(body)).message, { t: "welcome", ts: 1, app: null });
  assert.equal(leader.followers.size, 1);
  await leader[Symbol.asyncDispose]();
  for (const { conn } of [request, link, stranger]) conn.close();
});

Deno.test("[PG17] who comes early and is not taken in time makes room, and is not the leader's", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const limits = linkLimits as { strangerMs: number; handshakesOfAddressMax: number };
  const { strangerMs, handshakesOfAddressMax } = limits;
  using early = new EarlyFollowers("right");
  const conns: Deno.TcpConn[] = [];
  const come = async (hello: object) => {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
    conns.push(conn);
    early.hold(await listener.accept());
    const reader = new FrameReader(conn);
    const greeted = greet({ conn, reader, secret: "right", sealed: true }, hello);
    return { reader, greeted: greeted.then(() => true, () => false) };
  };
  try {
    Object.assign(limits, { strangerMs: 200, handshakesOfAddressMax: 2 });
    const link = await come({ name: "f", commits: false });
    const request = await come({ name: "f", commits: false, requests: true });
    assert.equal(await link.greeted, true);
    assert.equal(await (await come({ name: "f", commits: false })).greeted, false, "there is no room");
    assert.equal(await request.greeted, false);
    assert.equal(await link.reader.next(4_096).catch(() => null), null, "the link ends as well");
    limits.strangerMs = strangerMs;
    const later = await come({ name: "f", commits: false });
    assert.equal(await later.greeted, true);
    let taken = 0;
    early.giveTo({
      take(conn) {
        taken++;
        conn.close();
      },
    });
    assert.equal(taken, 1);
  } finally {
    Object.assign(limits, { strangerMs, handshakesOfAddressMax });
    for (const conn of conns) conn.close();
  }
});

Deno.test("[WK9] what comes before the secret is short, and nonsense behind it ends the link alone", async () => {
  await using world = new World();
  const early = await world.connect();
  const reader = new FrameReader(early);
  assert.notEqual(await reader.next(4_096), null);
  await early.write(new Uint8Array([0, 0x10, 0, 0]));
  // Closed, at once or with a reset.
  assert.equal(await reader.next(4_096).catch(() => null), null);
  early.close();
  for (
    const nonsense of [
      frameBody({ t: "mutate", id: -1, call: mutation(1) }),
      frameBody({ t: "mutate", id: 1, call: { ...mutation(1), origin: "god" } }),
      frameBody({ t: "none" }),
      new TextEncoder().encode("no line"),
      new Uint8Array([0xff, 0x0a]),
    ]
  ) {
    const conn = await world.connect();
    const frames = new FrameReader(conn);
    const { greet } = await import("../../mod/cluster/link/handshake.ts");
    await greet({ conn, reader: frames, secret: "right", sealed: false }, { name: "liar", commits: false });
    await until(() => world.leader.followers.size === 1);
    const [follower] = world.leader.followers;
    await conn.write(framed(nonsense));
    assert.equal((await follower?.ended)?.end, "nonsense");
    conn.close();
  }
  assert.equal(world.host.asked.length, 0);
});

Deno.test("[WK9] a sealed frame that was changed, left out or sent again is not opened", () => {
  const keys = { sends: new Uint8Array(32).fill(1), receives: new Uint8Array(32).fill(2) };
  const other = { sends: keys.receives, receives: keys.sends };
  const text = new TextEncoder().encode("a frame");
  const from = new Sealing(keys);
  const [first, second] = [from.seal(text), from.seal(text)];
  assert.notDeepEqual(first, second);
  const to = new Sealing(other);
  assert.deepEqual(to.open(first), text);
  assert.throws(() => new Sealing(other).open(second));
  assert.throws(() => to.open(first));
  const changed = new Sealing(keys).seal(text);
  changed[0] = (changed[0] ?? 0) ^ 1;
  assert.throws(() => new Sealing(other).open(changed));
  assert.throws(() => new Sealing(other).open(new Uint8Array(3)));
});

Deno.test("[WK2] when the link breaks, what the leader recognises is sent to the next, and the rest is told as lost", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  const first = new World();
  await first.follow(calls);
  const named = calls.mutate(mutation(1));
  const nameless = calls.mutate(mutation(null));
  await until(() => first.host.asked.length === 2);
  await first[Symbol.asyncDispose]();
  const { outcome } = await nameless;
  assert.ok(!outcome.ok && /not known/.test(outcome.error.message));
  assert.equal(outcome.error.data?.code, "outcome_unknown");
  // Asked while there is no leader: it waits.
  const waiting = calls.mutate(mutation(null));
  await using second = new World();
  await second.follow(calls);
  await until(() => second.host.asked.length === 2);
  for (const { answer } of second.host.asked) answer(DONE);
  assert.deepEqual(await named, DONE);
  assert.deepEqual(await waiting, DONE);
  assert.equal(calls.waiting, 0);
  calls.close();
});

Deno.test("[PG16] a leader that leaves answers what it has taken; what is asked then is for the next one", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using first = new World({ sealed: true });
  await first.follow(calls);
  const taken = [calls.mutate(mutation(1)), calls.mutate(mutation(null))];
  await until(() => first.host.asked.length === 2);
  let left = false;
  const leaving = first.leader.leave().then(() => left = true);
  // What was said before is heard before.
  const [follower] = first.leader.followers;
  await calls.verify("a token");
  const kept = calls.mutate(mutation(null));
  assert.equal(left, false);
  for (const { answer } of first.host.asked) answer(DONE);
  assert.deepEqual(await Promise.all(taken), [DONE, DONE]);
  await leaving;
  assert.ok(follower !== undefined);
  assert.equal(first.host.asked.length, 2);
  await using second = new World({ sealed: true });
  await second.follow(calls);
  await until(() => second.host.asked.length === 1);
  // The end of the link of before is nothing to the calls of this one.
  await first[Symbol.asyncDispose]();
  second.host.asked[0]?.answer(DONE);
  assert.deepEqual(await kept, DONE);
  calls.close();
});

Deno.test("[PG16] a leader of before that says again that it leaves keeps nothing from the next one", async () => {
  await using before = new World();
  await using after = new World();
  const calls = new LeaderCalls({ ts: () => 0 });
  const link = await before.follow(calls);
  let left = 0;
  link.tell({ leaving: () => void left++ });
  await before.leader.leave();
  await until(() => left === 1);
  await after.follow(calls);
  await before.leader.leave();
  await until(() => left === 2);
  const answered = calls.mutate(mutation(1));
  await until(() => after.host.asked.length === 1);
  after.host.asked[0]?.answer(DONE);
  assert.deepEqual(await answered, DONE);
  calls.close();
});

Deno.test("[PG16] calls of one caller keep their order while two leaders answer", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using first = new World({ sealed: true });
  await using second = new World({ sealed: true });
  await first.follow(calls);
  const of = (turn: string, udfPath: string) => ({
    ...mutation(null),
    udfPath,
    caller: { turn, blame: "x" },
  });
  const taken = calls.mutate(of("one", "first"));
  await until(() => first.host.asked.length === 1);
  const left = first.leader.leave();
  await calls.verify("a token");
  await second.follow(calls);
  const behind = ["second", "third"].map((path) => calls.mutate(of("one", path)));
  const other = calls.mutate(of("two", "of another"));
  await until(() => second.host.asked.length === 1);
  const asked = () => second.host.asked.map(({ call }) => call.udfPath);
  assert.deepEqual(asked(), ["of another"]);
  first.host.asked[0]?.answer(DONE);
  assert.deepEqual(await taken, DONE);
  await left;
  await until(() => second.host.asked.length === 3);
  assert.deepEqual(asked(), ["of another", "second", "third"]);
  for (const { answer } of second.host.asked) answer(DONE);
  assert.deepEqual(await Promise.all([...behind, other]), [DONE, DONE, DONE]);
  assert.equal(first.host.asked.length, 1);
  calls.close();
});

Deno.test("[PG16] what waits is run by this process when it leads, but for what another one may have run", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  const world = new World();
  await world.follow(calls);
  const [named, nameless, action] = [
    calls.mutate(mutation(1)),
    calls.mutate(mutation(null)),
    calls.act(mutation(null)),
  ];
  await action;
  await until(() => world.host.asked.length === 2);
  const ran: (number | undefined)[] = [];
  calls.runHere({
    mutate(call) {
      ran.push(call.replay?.requestId);
      return Promise.resolve(DONE);
    },
    act: () => Promise.resolve({ outcome: DONE.outcome, ts: 4 }),
  });
  // The other one may still answer what it was asked.
  assert.deepEqual(await calls.mutate(mutation(null)), DONE);
  await world[Symbol.asyncDispose]();
  assert.deepEqual(await named, DONE);
  const { outcome } = await nameless;
  assert.ok(!outcome.ok && /not known/.test(outcome.error.message));
  assert.deepEqual(await calls.act(mutation(null)), { outcome: DONE.outcome, ts: 4 });
  assert.deepEqual(ran, [undefined, 1]);
  calls.close();
});

Deno.test("[PG16] of what was sent nobody says that it has not run, when no leader comes or this server ends", async () => {
  const message = ({ outcome }: MutationAnswer) => outcome.ok ? "" : outcome.error.message;
  for (const ends of [true, false]) {
    const clock = new FakeClock();
    const calls = new LeaderCalls({ ts: () => 9, clock });
    const world = new World();
    await world.follow(calls);
    const sent = calls.mutate(mutation(1));
    await until(() => world.host.asked.length === 1);
    // One that has no answer yet, on a link that stands.
    const nameless = calls.mutate(mutation(null));
    await until(() => world.host.asked.length === 2);
    if (ends) {
      calls.close();
      assert.match(message(await nameless), /not known/);
    }
    await world[Symbol.asyncDispose]();
    if (!ends) assert.match(message(await nameless), /not known/);
    const never = calls.mutate(mutation(null));
    if (!ends) clock.move(linkLimits.leaderWaitMs + linkLimits.beatMs);
    assert.match(message(await sent), /not known/);
    assert.match(message(await never), /no leader now/);
    assert.equal(calls.waiting, 0);
    calls.close();
  }
});

Deno.test("[PG16] behind several calls of one turn, whichever is answered or lost first, nothing overtakes", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using first = new World({ sealed: true });
  await using second = new World({ sealed: true });
  await first.follow(calls);
  const of = (udfPath: string, named: MutationCall) => ({
    ...named,
    udfPath,
    caller: { turn: "one", blame: "x" },
  });
  const taken = [calls.mutate(of("1", mutation(1))), calls.mutate(of("2", mutation(null)))];
  const third = calls.mutate(of("3", mutation(3)));
  await until(() => first.host.asked.length === 3);
  void first.leader.leave();
  await calls.verify("a token");
  await second.follow(calls);
  const behind = ["4", "5"].map((path) => calls.mutate(of(path, mutation(null))));
  first.host.asked[0]?.answer(DONE);
  first.host.asked[1]?.answer(DONE);
  assert.deepEqual(await Promise.all(taken), [DONE, DONE]);
  assert.equal(second.host.asked.length, 0);
  // The third comes again, in front of those that waited behind it.
  await first[Symbol.asyncDispose]();
  await until(() => second.host.asked.length === 3);
  assert.deepEqual(second.host.asked.map(({ call }) => call.udfPath), ["3", "4", "5"]);
  for (const { answer } of second.host.asked) answer(DONE);
  assert.deepEqual(await Promise.all([third, ...behind]), [DONE, DONE, DONE]);
  calls.close();
});

Deno.test("[WK5] whoever waited for this process to lead is let in as by any leader, in the order of his calls", async () => {
  const lookups: ((lives: boolean) => void)[] = [];
  const admissions = new Admissions(() => new Promise((resolve) => lookups.push(resolve)));
  const caller = { turn: "socket 1", blame: "user:1" };
  const identity = { principal: "user:1", userId: "1", adminId: null, sessionId: "one" };
  const order: string[] = [];
  const asked = [
    admissions.refusalOf({ ...mutation(1), identity, caller }).then((refusal) => {
      order.push("his");
      return refusal;
    }),
    admissions.refusalOf({ ...mutation(2), caller }).then((refusal) => {
      order.push("signed out");
      return refusal;
    }),
    admissions.refusalOf(mutation(3)).then((refusal) => {
      order.push("a guest's");
      return refusal;
    }),
  ];
  await until(() => lookups.length === 1 && order.length === 1);
  lookups[0]?.(false);
  const [refused, ...others] = await Promise.all(asked);
  assert.ok(refused && !refused.ok && refused.error.retryable);
  assert.deepEqual(others, [null, null]);
  assert.deepEqual(order, ["a guest's", "his", "signed out"]);
});

Deno.test("[WK2] without a leader calls wait for a bounded time and a bounded number, and may come again", async () => {
  const clock = new FakeClock();
  const calls = new LeaderCalls({ ts: () => 9, clock });
  const early = calls.mutate(mutation(1));
  clock.move(linkLimits.leaderWaitMs / 2);
  const late = calls.mutate(mutation(2));
  let lateAnswered = false;
  void late.then(() => lateAnswered = true);
  clock.move(linkLimits.leaderWaitMs / 2 + linkLimits.beatMs);
  const { outcome, ts } = await early;
  assert.ok(!outcome.ok && outcome.error.retryable);
  assert.equal(ts, 9);
  assert.equal(lateAnswered, false);
  for (let i = calls.waiting; i < linkLimits.pendingMax; i++) void calls.mutate(mutation(i));
  const full = await calls.mutate(mutation(3));
  assert.ok(!full.outcome.ok && full.outcome.error.retryable);
  calls.close();
  assert.ok(!(await late).outcome.ok);
});

Deno.test("[WK5] a caller whose session has ended at the leader is refused, and may ask again", async () => {
  await using world = new World({ admits: () => Promise.resolve(false) });
  const calls = new LeaderCalls({ ts: () => 0 });
  await world.follow(calls);
  const identity = { principal: "user:1", userId: "1", adminId: null, sessionId: "ended" };
  const { outcome } = await calls.mutate({ ...mutation(1), identity });
  assert.ok(!outcome.ok && outcome.error.retryable);
  assert.equal(world.host.asked.length, 0);
  calls.close();
});

Deno.test("[WK2] calls of one caller keep their order while his session is looked up, and others pass", async () => {
  const lookups: ((lives: boolean) => void)[] = [];
  await using world = new World({ admits: () => new Promise((resolve) => lookups.push(resolve)) });
  const calls = new LeaderCalls({ ts: () => 0 });
  await world.follow(calls);
  const identity = { principal: "user:1", userId: "1", adminId: null, sessionId: "one" };
  const caller = { turn: "socket 1", blame: "user:1" };
  const asked = () => world.host.asked.map(({ call }) => call.udfPath);
  void calls.mutate({ ...mutation(1), udfPath: "first", identity, caller });
  // Signed out meanwhile: nothing is looked up, and yet it comes second.
  void calls.mutate({ ...mutation(2), udfPath: "second", caller });
  void calls.mutate({ ...mutation(3), udfPath: "other", caller: { turn: "socket 2", blame: "x" } });
  await until(() => asked().length === 1 && lookups.length === 1);
  assert.deepEqual(asked(), ["other"]);
  lookups[0]?.(true);
  await until(() => asked().length === 3);
  assert.deepEqual(asked(), ["other", "first", "second"]);
  calls.close();
});

Deno.test("[WK7] functions are exchanged when the queries of all wait, of one that is just coming too", async () => {
  await using world = new World();
  const { leader } = world;
  const calls = new LeaderCalls({ ts: () => 0 });
  const said: string[] = [];
  const first = await world.follow(calls);
  const holding = Promise.withResolvers<void>();
  first.tell({
    hold() {
      said.push("first holds");
      return holding.promise;
    },
    release: (app) => said.push(`first serves ${app?.version}`),
  });
  let held = false;
  const hold = leader.hold().then(() => held = true);
  await until(() => said.length === 1);
  assert.equal(held, false);
  const second = await world.follow(new LeaderCalls({ ts: () => 0 }));
  holding.resolve();
  await hold;
  leader.release({ ...APP, version: "new" });
  second.tell({
    hold: () => Promise.resolve(void said.push("second holds")),
    release: (app) => said.push(`second serves ${app?.version}`),
  });
  await until(() => said.length === 4);
  assert.deepEqual(said.filter((text) => text.startsWith("second")), ["second holds", "second serves new"]);
  assert.ok(said.includes("first serves new"));
  calls.close();
});

/** A connection on which nothing comes, and nothing leaves. */
class Stuck {
  readonly #closed = Promise.withResolvers<null>();

  async read(): Promise<number | null> {
    return await this.#closed.promise;
  }

  async write(): Promise<number> {
    await this.#closed.promise;
    throw new Deno.errors.BadResource();
  }

  close(): void {
    this.#closed.resolve(null);
  }
}

Deno.test("[WK4] [WK9] a side that says nothing, or does not read, is given up", async () => {
  const clock = new FakeClock();
  const linkOf = () => {
    const conn = new Stuck() as unknown as Deno.Conn;
    const link = new Link({ conn, reader: new FrameReader(conn), seal: null, clock, silentBeatsMax: 3 });
    link.receive(() => {});
    return link;
  };
  const silent = linkOf();
  clock.move(linkLimits.beatMs * 3 - 1);
  assert.ok(silent.open);
  clock.move(1);
  assert.equal((await silent.ended).end, "silent");
  assert.equal(silent.send({ t: "late" }), false);

  const full = linkOf();
  const part = "x".repeat(1_048_576);
  let sent = 0;
  while (full.send({ t: "part" }, part)) sent++;
  assert.equal((await full.ended).end, "full");
  assert.ok(
    sent * part.length >= linkLimits.unsentBytesMax && sent * part.length < linkLimits.unsentBytesMax * 1.1,
  );
});

Deno.test("[WK9] frames are read as they come, in pieces or together, and room is made for what has come only", async () => {
  const bodies = ["a", "b".repeat(200_000), "", "c"].map((text, i) => frameBody({ i }, text));
  const bytes = new Uint8Array(await new Blob(bodies.map(framed)).arrayBuffer());
  for (const size of [1_000, 65_536, bytes.length]) {
    let at = 0;
    const reader = new FrameReader({
      read(into) {
        if (at === bytes.length) return Promise.resolve(null);
        const part = bytes.subarray(at, at + Math.min(size, into.length));
        into.set(part);
        at += part.length;
        return Promise.resolve(part.length);
      },
    });
    for (const body of bodies) {
      assert.deepEqual(parseBody(await reader.next(1_000_000) ?? new Uint8Array()), parseBody(body));
    }
    assert.equal(await reader.next(1_000_000), null);
  }
});
