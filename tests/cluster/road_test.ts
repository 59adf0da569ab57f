/** The way of a follower to its leader, on a network: when it makes ready to lead, and who gets a place to show that he may come. */
import assert from "node:assert/strict";
import { linkLimits } from "../../mod/cluster/limits.ts";
import { Leader, LeaderCalls, type LeaderHost, LeaderRoad } from "../../mod/cluster/mod.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { failed } from "../../mod/functions/outcome.ts";
import type { Clock } from "../../mod/kit/clock.ts";
import { listenForServers } from "../../mod/server/forwarding/link_listener.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { until } from "../support/waiting.ts";
import { Gate } from "./support/gate.ts";

const SECRET = "a secret";
const refused = failed("internal", "It does nothing");

/** A host that is asked for nothing. */
const host: LeaderHost = {
  ts: 1,
  answeredTs: 1,
  app: { version: "abc", functions: [], crons: [], routes: [] },
  mutate: () => Promise.resolve({ outcome: refused, ts: 1, replayed: false }),
  act: () => Promise.resolve(refused),
  onCommits: () => {},
  onGroup: () => {},
  onReload: () => {},
  accompany: () => {},
};

class Leading implements AsyncDisposable {
  readonly leader: Leader;
  readonly port: number;

  constructor({ port = 0, clock }: { readonly port?: number; readonly clock?: Clock } = {}) {
    const listener = Deno.listen({ hostname: "127.0.0.1", port });
    this.port = listener.addr.port;
    this.leader = new Leader({ host, secret: SECRET, sealed: true, log: () => {}, ...(clock && { clock }) });
    this.leader.listen(listener);
  }

  async followed(): Promise<void> {
    await until(() => this.leader.followers.size === 1, { what: "it is followed" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leader[Symbol.asyncDispose]();
  }
}

Deno.test("[PG7] a follower makes ready to lead when its leader cannot be reached any more, not when only their link broke", async () => {
  const first = new Leading();
  const calls = new LeaderCalls({ ts: () => 0 });
  let prepared = 0;
  await using road = new LeaderRoad({
    name: "f",
    secret: SECRET,
    calls,
    prepare: () => Promise.resolve(void prepared++),
    log: () => {},
  });
  road.follow({ address: `127.0.0.1:${first.port}`, epoch: 1 });
  await first.followed();
  for (let round = 0; round < 3; round++) {
    const [follower] = first.leader.followers;
    follower?.close();
    await until(() => !first.leader.followers.has(follower ?? assert.fail()));
    await first.followed();
  }
  assert.equal(prepared, 0, "it came back each time");
  await first[Symbol.asyncDispose]();
  await until(() => prepared === 1, { what: "it makes ready" });
  // It is the same one, at the same place: what it was made ready for is over.
  await using second = new Leading({ port: first.port });
  await second.followed();
  assert.equal(prepared, 1, "once for each time that it was lost");
  await second[Symbol.asyncDispose]();
  await until(() => prepared === 2, { what: "it makes ready again" });
  calls.close();
});

Deno.test("[PG7] a handshake with a leader that was frozen, and ends when another one leads, leaves the link to that as it is", async () => {
  await using first = new Leading();
  await using gate = new Gate(first.port);
  await using second = new Leading();
  const calls = new LeaderCalls({ ts: () => 0 });
  await using road = new LeaderRoad({
    name: "f",
    secret: SECRET,
    calls,
    prepare: () => Promise.resolve(),
    log: () => {},
  });
  // It takes the connection, and says nothing.
  gate.shut();
  road.follow({ address: `127.0.0.1:${gate.port}`, epoch: 1 });
  await until(() => gate.connections === 1, { what: "it is on its way" });
  road.follow({ address: `127.0.0.1:${second.port}`, epoch: 2 });
  await second.followed();
  await until(() => calls.unlinkedMs === null, { what: "calls go to the second" });
  gate.open();
  await first.followed();
  await until(() => first.leader.followers.size === 0, { what: "the late link is closed" });
  // What is looked up late does not bring it back either.
  road.follow({ address: `127.0.0.1:${gate.port}`, epoch: 1 });
  assert.equal(calls.unlinkedMs, null, "there is a link");
  assert.equal(second.leader.followers.size, 1);
  const call = { udfPath: "a", args: {}, identity: anonymous, origin: "client" } as const;
  assert.deepEqual((await calls.mutate(call)).outcome, refused);
  calls.close();
});

Deno.test("[PG12] calls know for how long they have had no link", async () => {
  const clock = new FakeClock();
  const calls = new LeaderCalls({ ts: () => 0, clock });
  await clock.advance(7);
  assert.equal(calls.unlinkedMs, 7);
  const act = () => Promise.resolve({ outcome: refused, ts: 0 });
  calls.runHere({ mutate: () => Promise.reject(new Error("nothing is asked")), act });
  assert.equal(calls.unlinkedMs, null);
  calls.use(null);
  await clock.advance(3);
  assert.equal(calls.unlinkedMs, 3);
  calls.close();
});

async function closedBy(conn: Deno.Conn): Promise<void> {
  const chunk = new Uint8Array(1_024);
  while (await conn.read(chunk).catch(() => null) !== null);
  conn.close();
}

Deno.test("[PG17] who comes over a network and says nothing has a place for two seconds, and few at once", async () => {
  const clock = new FakeClock();
  await using leading = new Leading({ clock });
  const connect = () => Deno.connect({ hostname: "127.0.0.1", port: leading.port });
  const silent = await Promise.all(
    Array.from({ length: linkLimits.handshakesOfAddressMax }, async () => {
      const conn = await connect();
      // It has been taken when it is told the first number.
      await conn.read(new Uint8Array(1_024));
      return conn;
    }),
  );
  // One more of the same address is not even told that.
  await closedBy(await connect());
  clock.move(linkLimits.strangerMs - 1);
  const ended = silent.map(closedBy);
  const first = await Promise.race([
    ended[0]?.then(() => "closed"),
    new Promise((go) => setTimeout(go, 50, "open")),
  ]);
  assert.equal(first, "open");
  clock.move(1);
  await Promise.all(ended);
  const calls = new LeaderCalls({ ts: () => 0 });
  await using road = new LeaderRoad({
    name: "f",
    secret: SECRET,
    calls,
    prepare: () => Promise.resolve(),
    log: () => {},
  });
  road.follow({ address: `127.0.0.1:${leading.port}`, epoch: 1 });
  await leading.followed();
  calls.close();
});

Deno.test("[PG17] servers are listened for at the address that was named, and on all interfaces only where that is no address here", async () => {
  const place = { host: "127.0.0.1", port: 1 } as Parameters<typeof listenForServers>[0]["place"];
  const named = (...addresses: string[]) => () => Promise.resolve(addresses.map((address) => ({ address })));
  const listen = async (
    parts: { readonly address: string; readonly listen?: string; readonly named?: ReturnType<typeof named> },
  ) => {
    const said: string[] = [];
    const { listener, address } = await listenForServers(
      {
        place,
        address: { host: parts.address, port: 0 },
        listen: parts.listen === undefined ? null : { host: parts.listen, port: 0 },
      },
      {
        log: (level, message, fields) => said.push(`${level} ${message} ${fields?.["reason"]}`),
        // Whatever the machine's own resolver would say of it.
        ...(parts.named !== undefined && { resolve: parts.named }),
      },
    );
    listener.close();
    return { at: listener.addr.hostname, address, said: said.join("\n") };
  };
  const here = await listen({ address: "127.0.0.2" });
  assert.deepEqual([here.at, here.said], ["127.0.0.2", ""]);
  const local = await listen({ address: "localhost", named: named("127.0.0.1") });
  assert.deepEqual([local.at, local.said], ["127.0.0.1", ""]);
  const one = await listen({ address: "one.example", named: named("127.0.0.2") });
  // Other servers would find this one there, but for its own name it may be another address.
  assert.deepEqual([one.at, one.address.split(":")[0]], ["0.0.0.0", "one.example"]);
  assert.match(one.said, /one\.example resolves to 127\.0\.0\.2 on this machine/);
  const unknown = () => Promise.reject(new Error("no such name"));
  // An address for documentation, a name that nobody has, and one that resolves to several addresses.
  const elsewhere: Parameters<typeof listen>[0][] = [
    { address: "192.0.2.1" },
    { address: "nowhere.example", named: unknown },
    { address: "several.example", named: named("192.0.2.1", "192.0.2.2") },
  ];
  for (const parts of elsewhere) {
    const { address } = parts;
    const everywhere = await listen(parts);
    assert.equal(everywhere.at, "0.0.0.0");
    assert.match(
      everywhere.said,
      new RegExp(
        `warn .*all interfaces.*--cluster-listen.* ${address} (?:is not|cannot|resolves to several) `,
      ),
    );
    assert.ok(everywhere.address.startsWith(`${address}:`));
    const told = await listen({ ...parts, listen: "127.0.0.3" });
    assert.deepEqual([told.at, told.said], ["127.0.0.3", ""]);
    assert.ok(told.address.startsWith(`${address}:`));
  }
});
