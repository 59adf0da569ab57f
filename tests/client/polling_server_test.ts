/** Polling against a real server behind a proxy that refuses WebSockets. */
import assert from "node:assert/strict";
import { SynclineClient, SynclineHttpClient } from "../../mod/client/mod.ts";
import { until } from "../support/waiting.ts";
import { memoryStorage, withServer } from "./support/real_server.ts";
import { SocketBlocker } from "./support/socket_blocker.ts";

Deno.test("behind a proxy without WebSockets an app works, and becomes live when they are available", async () => {
  await withServer(async (server) => {
    await using proxy = new SocketBlocker(server);
    const [blocked, free] = [
      new SynclineClient(proxy.url, { accounts: { storage: memoryStorage() } }),
      new SynclineClient(server),
    ];
    const transport = () => blocked.connectionState().transport;
    try {
      const shown: number[][] = [];
      blocked.subscribe("entries:numbers", { author: "a" }, (numbers) => shown.push(numbers as number[]));
      await until(() => transport() === "polling", { what: "polling" });
      assert(proxy.refused >= 3);
      await blocked.auth.signUp({ email: "ada@example.com", password: "correct horse" });
      await until(() => blocked.authState().status === "signedIn", { what: "the sign-in" });
      for (const n of [0, 1, 2]) {
        assert.equal(await blocked.mutation("entries:append", { author: "a", n }), n);
        assert.deepEqual(shown.at(-1)?.at(-1), n, "a write is seen when its promise resolves");
      }
      await assert.rejects(blocked.mutation("entries:append", { author: "a", n: 49 }), { code: "refused" });
      await free.mutation("entries:append", { author: "a", n: 3 });
      await until(() => shown.at(-1)?.length === 4, { what: "another client's write" });
      assert.deepEqual((await blocked.auth.sessions()).map(({ current }) => current), [true]);
      proxy.blocked = false;
      await until(() => transport() === "webSocket", { what: "the socket" });
      await until(() => blocked.authState().status === "signedIn", { what: "the sign-in on the socket" });
      await free.mutation("entries:append", { author: "a", n: 4 });
      // The first result of the socket may be an earlier one.
      await until(() => shown.at(-1)?.length === 5, { what: "a live result" });
      assert.deepEqual(shown.at(-1), [0, 1, 2, 3, 4]);
      proxy.blocked = true;
      proxy.cut();
      await until(() => transport() === "polling", { what: "polling again" });
      await free.mutation("entries:append", { author: "a", n: 5 });
      await until(() => shown.at(-1)?.length === 6, { what: "another client's write" });
      for (const [i, numbers] of shown.entries()) {
        assert(numbers.length >= (shown[i - 1]?.length ?? 0), "the view never went back");
      }
      await recognised(server);
    } finally {
      blocked.close();
      free.close();
    }
  });
});

/** HC12: a mutation of a socket without an answer is answered over HTTP and does not run again. */
async function recognised(server: string): Promise<void> {
  const sessionId = crypto.randomUUID();
  const call = { udfPath: "entries:append", args: { author: "b", n: 0 } };
  const socket = new WebSocket(`${server.replace("http", "ws")}/api/sync`);
  const answered = Promise.withResolvers<{ readonly result: unknown; readonly ts: number }>();
  const closed = new Promise((resolve) => socket.onclose = resolve);
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "MutationResponse") answered.resolve(message);
  };
  socket.onopen = () => {
    const connect = { type: "Connect", sessionId, connectionCount: 0, lastCloseReason: null };
    socket.send(JSON.stringify({ ...connect, clientVersion: "test" }));
    socket.send(JSON.stringify({ type: "Mutation", requestId: 7, ...call }));
  };
  const { result, ts } = await answered.promise;
  socket.close();
  await closed;
  const response = await fetch(`${server}/api/mutation`, {
    method: "POST",
    headers: { "Syncline-Request": `${sessionId} 7` },
    body: JSON.stringify({ path: call.udfPath, args: call.args }),
  });
  const again = await response.json();
  assert.deepEqual([again.value, again.ts], [result, ts]);
  const numbers = await new SynclineHttpClient(server).query("entries:numbers", { author: "b" });
  assert.deepEqual(numbers, [0]);
}
