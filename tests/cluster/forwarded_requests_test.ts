/** Requests that a follower forwards to the leader: which ones, how many, and how their bytes are copied. */
import assert from "node:assert/strict";
import { linkLimits } from "../../mod/cluster/limits.ts";
import { relay } from "../../mod/cluster/relay.ts";
import { ClientRequestLimit, isForLeader } from "../../mod/server/forwarding/cluster_links.ts";

async function pair(): Promise<readonly [Deno.Conn, Deno.Conn]> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [near, far] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }),
    listener.accept(),
  ]);
  listener.close();
  return [near, far];
}

/** A client and a server with two relays between them. */
async function relayed(signal: AbortSignal) {
  const [client, near] = await pair();
  const [toLeader, fromFollower] = await pair();
  const [there, server] = await pair();
  const done = Promise.all([relay(near, toLeader, signal), relay(there, fromFollower, signal)]);
  return { client, server, done };
}

async function textOf(conn: Deno.Conn): Promise<string> {
  return await new Response(conn.readable).text();
}

Deno.test("[PG9] a response sent before the whole request was read arrives, and both sides detect the end", async () => {
  const { client, server, done } = await relayed(new AbortController().signal);
  const sending = (async () => {
    const chunk = new Uint8Array(65_536);
    // Ends when the connection is closed.
    for (let n = 0; n < 10_000; n++) await client.write(chunk);
  })().catch(() => {});
  await server.read(new Uint8Array(1_000));
  await server.write(new TextEncoder().encode("too much"));
  await server.closeWrite();
  const chunk = new Uint8Array(8);
  for (let got = 0; got < 8;) got += await client.read(chunk.subarray(got)) ?? assert.fail("cut off");
  assert.equal(new TextDecoder().decode(chunk), "too much");
  assert.equal(await client.read(new Uint8Array(1)), null);
  client.close();
  server.close();
  await sending;
  await done;
});

Deno.test("[PG9] the end of a client reaches the server, and an abort closes both", async () => {
  const gone = await relayed(new AbortController().signal);
  await gone.client.write(new TextEncoder().encode("asked"));
  gone.client.close();
  assert.equal(await textOf(gone.server), "asked");
  await gone.done;
  const end = new AbortController();
  const cut = await relayed(end.signal);
  end.abort();
  assert.equal(await cut.client.read(new Uint8Array(1)).catch(() => null), null);
  assert.equal(await cut.server.read(new Uint8Array(1)).catch(() => null), null);
  await cut.done;
  cut.client.close();
  cut.server.close();
});

Deno.test("[PG9] operations on the process itself are not forwarded", () => {
  const none = () => false;
  assert.equal(isForLeader({ method: "POST", path: "/api/admin/restore/restart" }, none), false);
  assert.equal(isForLeader({ method: "GET", path: "/api/admin/logs" }, none), false);
  assert.equal(isForLeader({ method: "POST", path: "/api/admin/backups" }, none), true);
  assert.equal(isForLeader({ method: "GET", path: "/api/auth/providers" }, none), true);
});

Deno.test("[PG9] each client has a share of the connections to the leader", async () => {
  const shares = new ClientRequestLimit();
  const ends = Array.from({ length: linkLimits.tunnelsOfClientMax }, () => Promise.withResolvers<void>());
  for (const { promise } of ends) assert.equal(shares.take("one", promise), true);
  const never = new Promise(() => {});
  assert.equal(shares.take("one", never), false);
  assert.equal(shares.take("another", never), true);
  ends[0]?.resolve();
  ends[1]?.reject(new Error("The connection broke"));
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual([1, 2, 3].map(() => shares.take("one", never)), [true, true, false]);
});
