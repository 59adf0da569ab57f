/** Links between a leader and its followers: handshake, frames, order of messages, and limits. */
import assert from "node:assert/strict";
import { LINK_PROTOCOL, sendHello } from "../../mod/cluster/handshake.ts";
import { linkLimits } from "../../mod/cluster/limits.ts";
import { frameBody, framed, FrameReader, Link, parseBody } from "../../mod/cluster/link.ts";
import { LeaderCalls } from "../../mod/cluster/mod.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { until } from "../support/waiting.ts";
import { APP, DONE, LinkWorld, mutation } from "./support/link_world.ts";

Deno.test("[WK9] calls and commits pass a link in order", async () => {
  await using world = new LinkWorld();
  const { host } = world;
  const calls = new LeaderCalls({ ts: () => 0 });
  const link = await world.follow(calls);
  assert.deepEqual(link.welcome.app, APP);
  const order: string[] = [];
  host.commit();
  link.listen({
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
  host.skip();
  host.asked[0]?.answer(DONE);
  assert.deepEqual(await answered, DONE);
  assert.deepEqual(order, ["1 entries at 2", "1 entries at 3", "missed up to 8", "answered"]);
  assert.deepEqual(await calls.act(mutation(null)), {
    outcome: { ok: true, value: "1", logLines: [] },
    ts: host.ts,
  });
  calls.close();
});

Deno.test("[WK9] [SG4] a follower receives the response of a mutation before its commit", async () => {
  await using world = new LinkWorld();
  const { host } = world;
  const conn = await world.connect();
  const reader = await sendHello(conn, "right", { name: "f", commits: true });
  const next = async () => parseBody(await reader.next(65_536) ?? new Uint8Array()).message;
  assert.deepEqual(await next(), { t: "welcome", ts: 1, app: APP });
  await conn.write(framed(frameBody({ t: "mutate", id: 1, call: mutation(7) })));
  await until(() => host.asked.length === 1);
  // In one task, as a host does.
  host.commit();
  host.commit();
  host.asked[0]?.answer(DONE);
  const { outcome: { value: _, ...end }, ...answer } = DONE;
  assert.deepEqual([await next(), await next()], [
    { t: "mutated", id: 1, end, answer },
    { t: "commits", ts: 3 },
  ]);
  conn.close();
});

Deno.test("[WK9] a follower with a wrong secret is refused and receives nothing", async () => {
  await using world = new LinkWorld();
  const calls = new LeaderCalls({ ts: () => 0 });
  await assert.rejects(world.follow(calls, { secret: "wrong" }), /has another secret/);
  await until(() => world.log.some((line) => line.includes("another secret or version")));
  const conn = await world.connect();
  const reader = new FrameReader(conn);
  await conn.write(framed(frameBody({ protocol: 1, secret: "right", name: "f", commits: true })));
  const { message } = parseBody(await reader.next(4_096) ?? new Uint8Array());
  assert.deepEqual(message, { protocol: LINK_PROTOCOL, accepted: false });
  assert.equal(await reader.next(4_096).catch(() => null), null);
  conn.close();
  assert.equal(world.leader.followers.size, 0);
});

Deno.test("[WK9] a long frame before the handshake, and an invalid one after it, end only that link", async () => {
  await using world = new LinkWorld();
  const early = await world.connect();
  await early.write(new Uint8Array([0, 0x10, 0, 0]));
  // Closed immediately or with a reset.
  assert.equal(await early.read(new Uint8Array(1)).catch(() => null), null);
  early.close();
  for (
    const invalid of [
      frameBody({ t: "mutate", id: -1, call: mutation(1) }),
      frameBody({ t: "mutate", id: 1, call: { ...mutation(1), origin: "god" } }),
      frameBody({ t: "none" }),
      new TextEncoder().encode("no line"),
      new Uint8Array([0xff, 0x0a]),
    ]
  ) {
    const conn = await world.connect();
    await sendHello(conn, "right", { name: "f", commits: false });
    await until(() => world.leader.followers.size === 1);
    const [follower] = world.leader.followers;
    await conn.write(framed(invalid));
    assert.equal((await follower?.ended)?.end, "protocol");
    conn.close();
  }
  assert.equal(world.host.asked.length, 0);
});

Deno.test("[WK7] functions are replaced when the queries of all followers are paused, also of one that is connecting", async () => {
  await using world = new LinkWorld();
  const { leader } = world;
  const calls = new LeaderCalls({ ts: () => 0 });
  const events: string[] = [];
  const first = await world.follow(calls);
  const holding = Promise.withResolvers<void>();
  first.listen({
    hold() {
      events.push("first holds");
      return holding.promise;
    },
    release: (app) => events.push(`first serves ${app?.version}`),
  });
  let held = false;
  const hold = leader.hold().then(() => held = true);
  await until(() => events.length === 1);
  assert.equal(held, false);
  const second = await world.follow(new LeaderCalls({ ts: () => 0 }));
  holding.resolve();
  await hold;
  leader.release({ ...APP, version: "new" });
  second.listen({
    hold: () => Promise.resolve(void events.push("second holds")),
    release: (app) => events.push(`second serves ${app?.version}`),
  });
  await until(() => events.length === 4);
  assert.deepEqual(events.filter((text) => text.startsWith("second")), ["second holds", "second serves new"]);
  assert.ok(events.includes("first serves new"));
  calls.close();
});

/** A connection that neither delivers nor accepts bytes. */
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

Deno.test("[WK4] [WK9] a link ends if the other side sends nothing or does not read", async () => {
  const clock = new FakeClock();
  const linkOf = () => {
    const conn = new Stuck() as unknown as Deno.Conn;
    const link = new Link({ conn, reader: new FrameReader(conn), clock, silentChecksMax: 3 });
    link.receive(() => {});
    return link;
  };
  const silent = linkOf();
  clock.move(linkLimits.keepaliveMs * 3 - 1);
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

Deno.test("[WK9] frames arrive in pieces or together, and the buffer grows with received bytes only", async () => {
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
