import assert from "node:assert/strict";
import { socketLimits } from "../../mod/limits.ts";
import { upgradeSocket } from "../../mod/server/http/requests.ts";
import { RawWebSocket } from "../support/processes/raw_websocket.ts";
import { pause } from "../support/waiting.ts";

/** A server whose sockets send nothing, with the ends of its sockets in order. */
function quietServer(deadPeerMs: number) {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { socket, response } = upgradeSocket(request, { deadPeerMs });
    socket.onclose = () => resolve();
    return response;
  });
  return { port: server.addr.port, closed, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("a peer that does not even answer pings is closed, with its connection", async () => {
  await using server = quietServer(400);
  using peer = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  await peer.write(
    new TextEncoder().encode(
      "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ),
  );
  await server.closed;
  const bytes = new Uint8Array(4096);
  while (await peer.read(bytes) !== null);
});

Deno.test("a peer that only answers pings keeps its socket", async () => {
  await using server = quietServer(2_000);
  let closed = false;
  await using _peer = await RawWebSocket.connect({
    port: server.port,
    path: "/",
    onText: () => {},
    onClose: () => closed = true,
  });
  await pause(3_000);
  assert.equal(closed, false);
});

Deno.test("a client that answers each Ping gets no further ones, and a dead one is closed before it counts as silent", () => {
  assert.ok(socketLimits.deadPeerMs / 2 > socketLimits.pingIntervalMs);
  assert.ok(socketLimits.deadPeerMs < socketLimits.silenceMs);
});
