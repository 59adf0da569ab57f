/** App code in a runner tries to reach open file descriptors of its process, above all main's socket. */
import assert from "node:assert/strict";
import { Workspace } from "./support.ts";

/** Each returns a string if it reached something. `CONN` is its own connection, `PORT` an echo server. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  "a socket of a descriptor": `for (let fd = 3; fd < 60; fd++) {
      try { const s = new net.Socket({ fd }); s.on("error", () => {}); if (s._handle) return "socket " + fd; } catch {} }`,
  "a socket of a descriptor, made as a stream": `for (let fd = 3; fd < 60; fd++) {
      try { const s = new net.Stream({ fd, readable: true, writable: true }); s.on("error", () => {}); if (s._handle) return "stream " + fd; } catch {} }`,
  "listening on a descriptor": `for (let fd = 3; fd < 40; fd++) {
      const server = net.createServer(() => {}); server.on("error", () => {});
      const done = await new Promise((resolve) => { server.on("error", () => resolve()); try { server.listen({ fd }, () => resolve("listens " + fd)); } catch { resolve(); } });
      if (done) return done; }`,
  "a datagram socket of a descriptor": `for (let fd = 3; fd < 40; fd++) {
      const socket = dgram.createSocket("udp4");
      const done = await new Promise((resolve) => { socket.on("error", () => resolve()); try { socket.bind({ fd }, () => resolve("bound " + fd)); } catch { resolve(); } });
      if (done) return done; }`,
  "another handle by the class of one's own": `const socket = await connected();
      for (let one = socket._handle; one && one !== Object.prototype; one = Object.getPrototypeOf(one)) {
        for (const name of ["open", "openFromRid", "takeStream", "fdForIpc"]) for (let number = 0; number < 40; number++) {
          try { const result = one[name]?.call(socket._handle, number); if (result !== undefined && result !== -9) return name + " " + number + " " + result; } catch {} }
        if (Object.hasOwn(one, "constructor")) for (let type = 0; type < 3; type++) {
          try { const made = new one.constructor(type); for (let fd = 3; fd < 40; fd++) if (made.open?.(fd) === 0) return "opened " + fd; } catch {} }
      }`,
  "a connection by the class of one's own": `for (let one = CONN; one; one = Object.getPrototypeOf(one)) {
      if (one === Object.prototype || one.constructor === Object) break;
      for (let rid = 0; rid < 60; rid++) { try { const made = new one.constructor(rid); await made.write(new Uint8Array()); return "wrote " + rid; } catch {} } }`,
  "another resource under one's own connection": `for (const key of Reflect.ownKeys(CONN)) {
      try { CONN[key] = 3; if (CONN[key] === 3) return "changed " + String(key); } catch {}
      try { Object.defineProperty(CONN, key, { value: 3 }); if (CONN[key] === 3) return "defined " + String(key); } catch {} }`,
  "TLS over another's connection": `const key = Reflect.ownKeys(CONN)[0];
      for (let rid = 0; rid < 60; rid++) {
        try { await Deno.startTls(Object.create(CONN, { [key]: { value: rid } }), { hostname: "a" }); return "tls " + rid; }
        catch (error) { if (!/takes a connection that/.test(error.message)) return error.message; } }`,
  "a resource as the body of a request":
    `const key = Reflect.ownKeys(new ReadableStream()).find((key) => /resourceBacking/.test(String(key)));
      const url = "http://127.0.0.1:" + HTTP;
      const tries = [(body) => fetch(url, { method: "POST", body }), (body) => fetch(new Request(url, { method: "POST", body })),
        (body) => fetch(url, { method: "POST", body: new Proxy(body, {}) }), (body) => fetch({ toString: () => url }, { method: "POST", get body() { return body; } }),
        (body) => { const request = new Request(url, { method: "POST", body: "x" }); Object.assign(request.body, { [key]: body[key] }); return fetch(request); }];
      for (const attempt of tries) {
        const other = await Deno.connect({ port: PORT });
        const body = new ReadableStream({ start(controller) { controller.close(); } });
        body[key] = { rid: other[Reflect.ownKeys(other)[0]], autoClose: false };
        try { const [text] = await (await attempt(body)).json(); if (text.includes("secret")) return "sent by " + attempt; } catch {}
        try { other.close(); } catch {}
      }`,
};

const APP = `
  import { untypedAction } from "syncline/server"; import net from "node:net"; import dgram from "node:dgram";
  const connected = (PORT) => new Promise((resolve) => { const s = net.connect(PORT, "127.0.0.1", () => resolve(s)); s.on("error", () => {}); });
  ${
  Object.values(ATTEMPTS).map((code, index) =>
    `export const try${index} = untypedAction(async (ctx, { port: PORT, http: HTTP }) => {
      const CONN = await Deno.connect({ port: PORT }); const open = connected; { const connected = () => open(PORT); ${code} } return null; });`
  ).join("\n")
}
  export const post = untypedAction(async (ctx, { port }) => await (await fetch("http://127.0.0.1:" + port, { method: "POST", body: "text" })).json());
  export const stream = untypedAction(async (ctx, { port }) => await (await fetch("http://127.0.0.1:" + port, {
    method: "POST", body: new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("streamed")); c.close(); } }) })).json());
  export const pass = untypedAction(async (ctx, { port }) => {
    const { body } = await fetch("http://127.0.0.1:" + port, { method: "POST", body: "text" });
    return await (await fetch("http://127.0.0.1:" + port, { method: "POST", body: body.pipeThrough(new TransformStream()) })).json(); });
`;

Deno.test("the network access of actions cannot take over open connections, and still works", async (t) => {
  await using workspace = new Workspace({ "a.js": APP });
  await using isolate = await workspace.start("runner");
  assert.equal(isolate.booted?.type, "Ready", JSON.stringify(isolate.booted));
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const text = await request.text();
    return Response.json([text, request.headers.get("content-length")]);
  });
  const { port } = server.addr;
  // Sends a greeting on each connection, as main does.
  const conns: Deno.Conn[] = [];
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const talking = (async () => {
    for await (const conn of listener) {
      await conn.write(new TextEncoder().encode("secret")).catch(() => {});
      conn.closeWrite().catch(() => {});
      conns.push(conn);
    }
  })();
  let index = 0;
  for (const name of Object.keys(ATTEMPTS)) {
    await t.step(name, async () => {
      const { value, outcome } = await isolate.act(`a:try${index++}`, {
        port: listener.addr.port,
        http: port,
      });
      assert.equal(value, null, JSON.stringify(outcome));
    });
  }
  await t.step("bodies are sent with their length, and as streams", async () => {
    assert.deepEqual((await isolate.act("a:post", { port })).value, ["text", "4"]);
    assert.deepEqual((await isolate.act("a:stream", { port })).value, ["streamed", null]);
    assert.deepEqual((await isolate.act("a:pass", { port })).value, [`["text","4"]`, null]);
  });
  await isolate.close();
  listener.close();
  await talking.catch(() => {});
  for (const conn of conns) conn.close();
  await server.shutdown();
});
