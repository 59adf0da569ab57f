/** The link of a server to the cluster's leader over the network: TLS, reconnects, and limits for unauthenticated clients. */
import assert from "node:assert/strict";
import { linkLimits } from "../../mod/cluster/limits.ts";
import {
  createCertificate,
  Leader,
  LeaderCalls,
  LeaderLink,
  type LeadingServer,
  TlsListener,
} from "../../mod/cluster/mod.ts";
import { connectTls } from "../../mod/cluster/tls.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { failed } from "../../mod/functions/outcome.ts";
import type { Clock } from "../../mod/kit/clock.ts";
import { listenForServers } from "../../mod/server/forwarding/link_listener.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { Gate } from "./support/gate.ts";
import { HostDouble } from "./support/link_world.ts";

const SECRET = "a secret";
/** Bound of what the buffers of the system and the runtime hold, and a larger amount to send. */
const TLS_BUFFERED_MIB_MAX = 100;
const TLS_MIB = 128;
const refused = failed("internal", "No result");

/** A server that leads, listening with TLS. */
class LeadingDouble implements AsyncDisposable {
  readonly leader: Leader;
  readonly #listener: TlsListener;
  readonly #certificate: string;
  readonly #accepting: Promise<void>;
  /** Connections accepted, including those that end during the handshake. */
  attempts = 0;

  private constructor(
    listener: TlsListener,
    { certificate, clock }: { readonly certificate: string; readonly clock: Clock | undefined },
  ) {
    this.#listener = listener;
    this.#certificate = certificate;
    const host = new HostDouble();
    host.mutate = () => Promise.resolve({ outcome: refused, ts: 1, replayed: false });
    this.leader = new Leader({ host, secret: SECRET, log: () => {}, ...(clock && { clock }) });
    this.#accepting = this.#accept();
  }

  static async start({ clock }: { readonly clock?: Clock } = {}): Promise<LeadingDouble> {
    const pair = await createCertificate();
    const listener = TlsListener.listen({ ...pair, hostname: "127.0.0.1", port: 0 });
    return new LeadingDouble(listener, { certificate: pair.certificate, clock });
  }

  get port(): number {
    return this.#listener.port;
  }

  /** As the cluster publishes it. */
  published(epoch: number, port = this.port): LeadingServer {
    return { address: `127.0.0.1:${port}`, certificate: this.#certificate, epoch };
  }

  async followed(): Promise<void> {
    await until(() => this.leader.followers.size === 1, { what: "a follower is connected" });
  }

  async #accept(): Promise<void> {
    for await (const conn of this.#listener) {
      this.attempts++;
      this.leader.accept(conn);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.leader[Symbol.asyncDispose]();
    await this.#accepting;
  }
}

function linkOf(calls: LeaderCalls): LeaderLink {
  return new LeaderLink({ name: "f", secret: SECRET, calls, log: () => {} });
}

Deno.test("[PG17] a follower accepts only the certificate that the leader has published", async () => {
  await using leading = await LeadingDouble.start();
  await using other = await LeadingDouble.start();
  const { signal } = new AbortController();
  const conn = await connectTls(leading.published(1), signal);
  conn.close();
  const { certificate } = other.published(1);
  await assert.rejects(
    connectTls({ ...leading.published(1), certificate }, signal),
    /unable to verify/,
  );
  const calls = new LeaderCalls({ ts: () => 0 });
  await using link = linkOf(calls);
  const { attempts } = leading;
  link.follow({ ...leading.published(1), certificate });
  await until(() => leading.attempts >= attempts + 2, { what: "the link has tried again" });
  assert.equal(leading.leader.followers.size, 0);
  assert.notEqual(calls.unlinkedMs, null);
  link.follow(leading.published(2));
  await leading.followed();
  calls.close();
});

Deno.test("[PG17] a follower refuses another certificate, also if the machine trusts it", async () => {
  await using folder = new TempFolder();
  await using leading = await LeadingDouble.start();
  await using other = await LeadingDouble.start();
  const authority = folder.at("authority.pem");
  await Deno.writeTextFile(authority, other.published(1).certificate);
  const answers = [];
  for (const certificate of [leading.published(1).certificate, other.published(1).certificate, ""]) {
    const script = `
      import { connectTls } from ${JSON.stringify(new URL("../../mod/cluster/tls.ts", import.meta.url).href)};
      const server = ${JSON.stringify({ ...other.published(1), certificate })};
      const answer = connectTls(server, new AbortController().signal).then(() => "accepted", () => "refused");
      console.log(await answer);
      Deno.exit();`;
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--quiet", script],
      env: { DENO_CERT: authority, NO_COLOR: "1" },
    }).output();
    answers.push(new TextDecoder().decode(stdout).trim());
  }
  assert.deepEqual(answers, ["refused", "accepted", "refused"]);
});

Deno.test("[PG17] a TLS connection reads only on demand, and every operation ends when it is closed", async () => {
  const pair = await createCertificate();
  const listener = TlsListener.listen({ ...pair, hostname: "127.0.0.1", port: 0 });
  const server = { address: `127.0.0.1:${listener.port}`, certificate: pair.certificate };
  const accepting = listener[Symbol.asyncIterator]();
  const connecting = connectTls(server, new AbortController().signal);
  const { value: far } = await accepting.next();
  assert.ok(far);
  // The first read performs the handshake.
  const first = far.read(new Uint8Array(1));
  const near = await connecting;
  await near.write(new Uint8Array(1));
  assert.equal(await first, 1);
  for (const [from, to] of [[near, far], [far, near]] as const) {
    let writes = 0;
    const filling = (async () => {
      for (; writes < TLS_MIB; writes++) await from.write(new Uint8Array(1 << 20));
    })();
    filling.catch(() => {});
    let before = -1;
    while (writes > before) {
      before = writes;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.ok(writes < TLS_BUFFERED_MIB_MAX, `${writes} MiB were received without a reader`);
    if (to === near) {
      near.close();
      far.close();
      await assert.rejects(filling);
      await near.closeWrite();
      await far.closeWrite();
      await assert.rejects(near.read(new Uint8Array(1)));
    } else {
      const chunk = new Uint8Array(1 << 16);
      for (let left = TLS_MIB << 20; left > 0;) {
        left -= await to.read(chunk) ?? assert.fail("the connection ended");
      }
      await filling;
    }
  }
  listener.close();
});

Deno.test("[PG17] small messages on a TLS link are not delayed, and large ones arrive complete", async () => {
  await using leading = await LeadingDouble.start();
  const calls = new LeaderCalls({ ts: () => 0 });
  await using link = linkOf(calls);
  link.follow(leading.published(1));
  await until(() => calls.unlinkedMs === null);
  const call = (text: string) =>
    ({ udfPath: "a", args: { text }, identity: anonymous, origin: "client" }) as const;
  const times: number[] = [];
  // On a busy machine, more rounds until one is undisturbed.
  for (let round = 0; round < 20 || (round < 500 && Math.min(...times) >= 20); round++) {
    const startedAt = performance.now();
    await Promise.all([calls.mutate(call("x")), calls.act(call("y"))]);
    times.push(performance.now() - startedAt);
  }
  // A delayed acknowledgment adds 40 ms to every round, other programs only to some.
  const shortest = Math.min(...times);
  assert.ok(shortest < 20, `the shortest two calls took ${shortest} ms`);
  assert.deepEqual((await calls.mutate(call("é".repeat(4_000_000)))).outcome, refused);
  calls.close();
});

Deno.test("[PG7] a late handshake with a former leader does not affect the link to the current one", async () => {
  await using first = await LeadingDouble.start();
  await using gate = new Gate(first.port);
  await using second = await LeadingDouble.start();
  const calls = new LeaderCalls({ ts: () => 0 });
  await using link = linkOf(calls);
  // The former leader accepts the connection and is frozen.
  gate.shut();
  link.follow(first.published(1, gate.port));
  await until(() => gate.connections === 1, { what: "the connection is open" });
  link.follow(second.published(2));
  await second.followed();
  await until(() => calls.unlinkedMs === null, { what: "calls go to the second" });
  gate.open();
  await until(() => gate.connections === 0, { what: "the late connection is closed" });
  assert.equal(first.leader.followers.size, 0);
  // An outdated report of the leader has no effect either.
  link.follow(first.published(1, gate.port));
  assert.equal(calls.unlinkedMs, null);
  assert.equal(second.leader.followers.size, 1);
  const call = { udfPath: "a", args: {}, identity: anonymous, origin: "client" } as const;
  assert.deepEqual((await calls.mutate(call)).outcome, refused);
  calls.close();
});

Deno.test("[PG12] calls report the time without a link", async () => {
  const clock = new FakeClock();
  const calls = new LeaderCalls({ ts: () => 0, clock });
  await clock.advance(7);
  assert.equal(calls.unlinkedMs, 7);
  const act = () => Promise.resolve({ outcome: refused, ts: 0 });
  calls.use({ mutate: () => Promise.reject(new Error("not called")), act });
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

Deno.test("[PG17] a stranger has two seconds to authenticate, and one address has few connections", async () => {
  const clock = new FakeClock();
  await using leading = await LeadingDouble.start({ clock });
  const connect = () => Deno.connect({ hostname: "127.0.0.1", port: leading.port });
  const silent: Deno.Conn[] = [];
  for (let n = 0; n < linkLimits.handshakesOfAddressMax; n++) silent.push(await connect());
  // Further connections of the same address are closed immediately.
  await closedBy(await connect());
  clock.move(linkLimits.remoteHandshakeMs - 1);
  const ended = silent.map(closedBy);
  const first = await Promise.race([
    ended[0]?.then(() => "closed"),
    new Promise((go) => setTimeout(go, 50, "open")),
  ]);
  assert.equal(first, "open");
  clock.move(1);
  await Promise.all(ended);
  const calls = new LeaderCalls({ ts: () => 0 });
  await using link = linkOf(calls);
  link.follow(leading.published(1));
  await leading.followed();
  calls.close();
});

Deno.test("[PG17] the port for servers is open at the named address, and on all interfaces only if that is not local", async () => {
  const place = { host: "127.0.0.1", port: 1 } as Parameters<typeof listenForServers>[0]["database"];
  const named = (...addresses: string[]) => () => Promise.resolve(addresses.map((address) => ({ address })));
  /** Whether the port also accepts connections at another local address. */
  const isOpenElsewhere = async (port: number) => {
    try {
      (await Deno.connect({ hostname: "127.0.0.9", port })).close();
      return true;
    } catch {
      return false;
    }
  };
  const listen = async (
    parts: { readonly address: string; readonly listen?: string; readonly named?: ReturnType<typeof named> },
  ) => {
    const logged: string[] = [];
    const { listener, address } = await listenForServers(
      {
        database: place,
        address: { host: parts.address, port: 0 },
        listen: parts.listen === undefined ? null : { host: parts.listen, port: 0 },
      },
      {
        log: (level, message, fields) => logged.push(`${level} ${message} ${fields?.["reason"]}`),
        ...(parts.named !== undefined && { resolve: parts.named }),
      },
    );
    const everywhere = await isOpenElsewhere(listener.port);
    listener.close();
    return { everywhere, address, logged: logged.join("\n") };
  };
  const here = await listen({ address: "127.0.0.2" });
  assert.deepEqual([here.everywhere, here.logged], [false, ""]);
  const local = await listen({ address: "localhost", named: named("127.0.0.1") });
  assert.deepEqual([local.everywhere, local.logged], [false, ""]);
  const one = await listen({ address: "one.example", named: named("127.0.0.2") });
  // A machine may resolve its own name to another address than the other machines.
  assert.deepEqual([one.everywhere, one.address.split(":")[0]], [true, "one.example"]);
  assert.match(one.logged, /one\.example resolves to 127\.0\.0\.2 on this machine/);
  const unknown = () => Promise.reject(new Error("no such name"));
  // An address for documentation, an unknown name, and a name with several addresses.
  const elsewhere: Parameters<typeof listen>[0][] = [
    { address: "192.0.2.1" },
    { address: "nowhere.example", named: unknown },
    { address: "several.example", named: named("192.0.2.1", "192.0.2.2") },
  ];
  for (const parts of elsewhere) {
    const { address } = parts;
    const result = await listen(parts);
    assert.equal(result.everywhere, true);
    assert.match(
      result.logged,
      new RegExp(
        `warn .*all interfaces.*--cluster-listen.* ${address} (?:is not|cannot|resolves to several) `,
      ),
    );
    assert.ok(result.address.startsWith(`${address}:`));
    const selected = await listen({ ...parts, listen: "127.0.0.3" });
    assert.deepEqual([selected.everywhere, selected.logged], [false, ""]);
    assert.ok(selected.address.startsWith(`${address}:`));
  }
});
