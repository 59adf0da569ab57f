import assert from "node:assert/strict";
import { RawWebSocket } from "./raw_websocket.ts";

/** A server that echoes, closes with 1012 on "close", and sends a large message on "large". */
function echoServer() {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    if (!request.headers.has("upgrade")) return new Response("no");
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onmessage = ({ data }) => {
      if (data === "close") socket.close(1012, "restart");
      else if (data === "large") socket.send("ä".repeat(200_000));
      else socket.send(data);
    };
    return response;
  });
}

Deno.test("messages of every length are returned complete and in order", async () => {
  await using server = echoServer();
  const lengths = [0, 1, 124, 125, 126, 127, 4090, 65_535, 65_536, 300_000];
  const received: string[] = [];
  const all = Promise.withResolvers<void>();
  await using socket = await RawWebSocket.connect({
    port: server.addr.port,
    path: "/",
    onText: (text) => {
      if (received.push(text) === lengths.length * 20) all.resolve();
    },
  });
  const sent = Array.from({ length: 20 }, () => lengths.map((length) => "x".repeat(length))).flat();
  for (const text of sent) socket.send(text);
  await all.promise;
  assert.deepEqual(received.map((text) => text.length), sent.map((text) => text.length));
  assert(received.every((text, i) => text === sent[i]));
});

Deno.test("a message longer than the read buffer arrives as one text", async () => {
  await using server = echoServer();
  const received = Promise.withResolvers<string>();
  await using socket = await RawWebSocket.connect({
    port: server.addr.port,
    path: "/",
    onText: received.resolve,
  });
  socket.send("large");
  assert.equal(await received.promise, "ä".repeat(200_000));
});

Deno.test("the close code and reason of the server are reported once", async () => {
  await using server = echoServer();
  const closes: [number, string][] = [];
  await using socket = await RawWebSocket.connect({
    port: server.addr.port,
    path: "/",
    onText: () => {},
    onClose: (code, reason) => closes.push([code, reason]),
  });
  socket.send("close");
  await socket.closed;
  socket.cut();
  assert.deepEqual(closes, [[1012, "restart"]]);
});

Deno.test("a server that does not upgrade is an error", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("no"),
  );
  await assert.rejects(
    RawWebSocket.connect({ port: server.addr.port, path: "/", onText: () => {} }),
    /No upgrade/,
  );
});
