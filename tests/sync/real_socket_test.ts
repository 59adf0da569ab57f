/** The hub with real WebSockets, for behavior that needs them. */
import assert from "node:assert/strict";
import { noAccounts } from "../../mod/sync/authenticator.ts";
import { Hub } from "../../mod/sync/hub.ts";
import { socketLimits } from "../../mod/limits.ts";
import { MemoryHost } from "./support/memory_host.ts";
import { until } from "../support/waiting.ts";

interface Received {
  readonly frames: Record<string, unknown>[];
  readonly closed: Promise<CloseEvent>;
}

class RealServer implements AsyncDisposable {
  readonly host = new MemoryHost({
    queries: { get: (ctx, { key }) => ctx.get(String(key)) ?? null },
    mutations: {
      set: (ctx, { key, value }) => {
        ctx.set(String(key), value);
      },
    },
  });
  readonly hub = new Hub({ host: this.host, authenticator: noAccounts, dev: false });
  /** The server's ends, in the order accepted. */
  readonly sockets: WebSocket[] = [];
  readonly #server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
    this.hub.accept(socket, {
      connection: { cut: () => false, acknowledgedBytes: () => null, setReceiveWindow: () => {} },
    });
    this.sockets.push(socket);
    return response;
  });

  get port(): number {
    return this.#server.addr.port;
  }

  async open(): Promise<WebSocket & { readonly received: Received }> {
    const socket = new WebSocket(`ws://127.0.0.1:${this.port}/`);
    const closed = Promise.withResolvers<CloseEvent>();
    const received: Received = { frames: [], closed: closed.promise };
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      // On a slow machine, Pings arrive between the other frames.
      if (frame.type === "Ping") socket.send('{"type":"Pong"}');
      else received.frames.push(frame);
    };
    socket.onclose = closed.resolve;
    await new Promise((resolve) => socket.onopen = resolve);
    return Object.assign(socket, { received });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub.shutdown();
    await this.#server.shutdown();
  }
}

/** A connection that has requested a WebSocket upgrade and does not read. */
async function upgraded(port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(
    new TextEncoder().encode(
      "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ),
  );
  return connection;
}

/** One masked text frame; its mask is zero. */
function textFrame(text: string): Uint8Array {
  const payload = new TextEncoder().encode(text);
  const head = [0x81, 0xfe, payload.length >> 8, payload.length & 255, 0, 0, 0, 0];
  return new Uint8Array([...head, ...payload]);
}

const addGet = (key: string) =>
  JSON.stringify({
    type: "ModifyQuerySet",
    baseVersion: 0,
    newVersion: 1,
    modifications: [{ type: "Add", queryId: 0, udfPath: "get", args: { key } }],
  });

Deno.test("SQ1 MU1 a subscription and a mutation over a real socket", async () => {
  await using server = new RealServer();
  const socket = await server.open();
  socket.send(addGet("a"));
  // Otherwise the first Transition may already include the mutation.
  await until(() => socket.received.frames.length === 1);
  socket.send('{"type":"Mutation","requestId":1,"udfPath":"set","args":{"key":"a","value":"\u2028ü😀"}}');
  await until(() => socket.received.frames.length === 3);
  assert.deepEqual(socket.received.frames.map(({ type }) => type), [
    "Transition",
    "MutationResponse",
    "Transition",
  ]);
  assert.deepEqual(
    (socket.received.frames[2]?.modifications as { value: unknown }[])[0]?.value,
    "\u2028ü😀",
  );
});

Deno.test("WS15 a binary frame and an oversized frame get their FatalError before the close", async () => {
  await using server = new RealServer();
  const binary = await server.open();
  binary.send(new Uint8Array([1, 2, 3]));
  assert.equal((await binary.received.closed).code, 1003);
  assert.deepEqual(binary.received.frames, [{
    type: "FatalError",
    error: "binary frame: every frame is JSON text",
  }]);
  const long = await server.open();
  long.send("x".repeat(socketLimits.frameCharsMax + 1));
  assert.equal((await long.received.closed).code, 1009);
  assert.equal(long.received.frames[0]?.type, "FatalError");
});

Deno.test("WS15 a client that continues to send while it is refused gets the FatalError and the close code", async () => {
  await using server = new RealServer();
  for (const framesMore of [0, 1, 40]) {
    const client = await upgraded(server.port);
    const pongs = Array.from({ length: framesMore }, () => '{"type":"Pong"}');
    // In one piece, so that the server has them all when it handles the first.
    await client.write(
      new Uint8Array(['{"type":"Hello"}', ...pongs].flatMap((text) => [...textFrame(text)])),
    );
    let text = "";
    for await (const bytes of client.readable) {
      text += new TextDecoder().decode(bytes);
      if (text.endsWith("fatal error")) break;
    }
    // 136 starts a close frame, of two bytes for the code 1008 and the reason.
    assert.ok(text.endsWith(`"unknown message type \\"Hello\\""}\uFFFD\r\x03\uFFFDfatal error`), text);
  }
});

Deno.test("SV8 clients see 1012 at shutdown, after all that was sent before", async () => {
  const server = new RealServer();
  const sockets = await Promise.all(Array.from({ length: 20 }, () => server.open()));
  server.host.write({ a: "x".repeat(100_000) });
  for (const socket of sockets) socket.send(addGet("a"));
  // While the hub is busy, results may not have been sent yet.
  await until(() => server.hub.load.subscriptions === 20 && !server.hub.busy);
  await server[Symbol.asyncDispose]();
  for (const { received } of sockets) {
    assert.equal((await received.closed).code, 1012);
    assert.equal(received.frames[0]?.type, "Transition");
  }
});

Deno.test("SH7 a real socket that stops reading delays no other and uses no more than its buffer", async () => {
  await using server = new RealServer();
  const stuck = await upgraded(server.port);
  await stuck.write(textFrame(addGet("a")));
  // The server may accept connections in any order.
  await until(() => server.sockets.length === 1);
  const reading = await server.open();
  reading.send(addGet("a"));
  await until(() => server.hub.load.subscriptions === 2);
  for (let i = 0; i < 100; i++) {
    server.host.write({ a: `${i} ${"x".repeat(200_000)}` });
    await until(() =>
      reading.received.frames.some(({ modifications }) =>
        (modifications as { value: string | null }[])[0]?.value?.startsWith(`${i} x`) === true
      )
    );
    reading.received.frames.length = 0;
  }
  // 20 MB were sent to the one that reads.
  assert.ok(Number(server.sockets[0]?.bufferedAmount) > 0);
  assert.ok(Number(server.sockets[0]?.bufferedAmount) <= socketLimits.bufferedBytesMax + 250_000);
  stuck.close();
  await until(() => server.hub.load.sockets === 1);
});
