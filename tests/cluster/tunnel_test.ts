/** Connections that are carried between servers: what is said last on them arrives. */
import assert from "node:assert/strict";
import { carry } from "../../mod/cluster/tunnel.ts";
import { linkLimits } from "../../mod/cluster/limits.ts";
import { ClientRequestLimit } from "../../mod/server/forwarding/client_request_limit.ts";
import { FrameReader } from "../../mod/cluster/link/frames.ts";
import { isForLeader } from "../../mod/server/forwarding/leader_requests.ts";

async function pair(): Promise<readonly [Deno.Conn, Deno.Conn]> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [near, far] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }),
    listener.accept(),
  ]);
  listener.close();
  return [near, far];
}

/** Who asks, and who is asked, with two servers between them. */
async function road(signal: AbortSignal) {
  const [client, near] = await pair();
  const [toLeader, fromFollower] = await pair();
  const [there, server] = await pair();
  const far = (conn: Deno.Conn) => ({ conn, reader: new FrameReader(conn), seal: null });
  const carried = Promise.all([
    carry(near, { far: far(toLeader), signal }),
    carry(there, { far: far(fromFollower), signal }),
  ]);
  return { client, server, carried };
}

async function textOf(conn: Deno.Conn): Promise<string> {
  return await new Response(conn.readable).text();
}

Deno.test("[PG9] what is answered before all was asked arrives, and both ends are told that it is over", async () => {
  const { client, server, carried } = await road(new AbortController().signal);
  const asking = (async () => {
    const chunk = new Uint8Array(65_536);
    // Until nobody takes it any more.
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
  await asking;
  await carried;
});

Deno.test("[PG9] who asked and is gone is gone at the other end as well; an abort cuts both off", async () => {
  const gone = await road(new AbortController().signal);
  await gone.client.write(new TextEncoder().encode("asked"));
  gone.client.close();
  assert.equal(await textOf(gone.server), "asked");
  await gone.carried;
  const end = new AbortController();
  const cut = await road(end.signal);
  end.abort();
  assert.equal(await cut.client.read(new Uint8Array(1)).catch(() => null), null);
  assert.equal(await cut.server.read(new Uint8Array(1)).catch(() => null), null);
  await cut.carried;
  cut.client.close();
  cut.server.close();
});

Deno.test("[PG9] what acts on the process that is asked is not the leader's", () => {
  const none = () => false;
  assert.equal(isForLeader({ method: "POST", path: "/api/admin/restore/restart" }, none), false);
  assert.equal(isForLeader({ method: "GET", path: "/api/admin/logs" }, none), false);
  assert.equal(isForLeader({ method: "POST", path: "/api/admin/backups" }, none), true);
  assert.equal(isForLeader({ method: "GET", path: "/api/auth/providers" }, none), true);
});

Deno.test("[PG9] one client has a share of the ways to the leader, until its requests are answered", async () => {
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
