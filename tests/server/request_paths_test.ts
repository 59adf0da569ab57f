/** One path, one host and one page for a request, whichever process answers it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";

const NUMBERS = `
import { untypedQuery } from "syncline/server";
export const one = untypedQuery({ args: {}, handler: () => 1 });
`;
const HTTP = `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({ path: "/caf%c3%a9~x", method: "GET", handler: httpAction(() => new Response("here")) });
http.route({ path: "/{id}", method: "GET", handler: httpAction(() => new Response("here")) });
http.route({ pathPrefix: "/keys/", method: "GET", handler: httpAction(() => new Response("here")) });
export default http;
`;
const HANDSHAKE = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n" +
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const EVIL = "origin: https://evil.example\r\n";
const OWN = "origin: http://localhost\r\n";
const CALL = JSON.stringify({ path: "numbers:one", args: {} });

interface Case {
  readonly path: string;
  readonly host?: string;
  readonly headers?: string;
  readonly method?: "GET" | "POST";
  readonly status: number;
}

const cases: readonly Case[] = [
  ...["/api/query", "/%61pi/query", "/x/%2e%2e/api/quer%79", "/./api/query"].flatMap((path): Case[] => [
    { method: "POST", path, status: 200 },
    { method: "POST", path, headers: OWN, status: 200 },
    { method: "POST", path, headers: EVIL, status: 403 },
    { method: "POST", path, host: "evil.example", headers: "origin: http://evil.example\r\n", status: 421 },
  ]),
  ...["/api/sync", "/%61pi/sync", "/api/%73ync"].flatMap((path): Case[] => [
    { path, headers: HANDSHAKE, status: 101 },
    { path, headers: HANDSHAKE + OWN, status: 101 },
    { path, headers: HANDSHAKE + EVIL, status: 403 },
    { path, headers: HANDSHAKE, host: "evil.example", status: 421 },
  ]),
  { path: "/caf%C3%A9%7Ex", status: 200 },
  { path: "/caf%c3%a9~x", status: 200 },
  { path: "/%61ssets.txt", status: 200 },
  { path: "/%5f/about", status: 200 },
  { path: "/%7Bid%7D", status: 200 },
  { path: "/keys/https%3A%2F%2Fexample.com%5c", status: 200 },
  { path: "/api/admin%2fx", status: 404 },
  { method: "POST", path: "/api/x%2f..%2fquery", status: 404 },
  { method: "POST", path: "/api/query%2f", headers: EVIL, status: 403 },
  { method: "POST", path: "/api%2fquery", headers: EVIL, status: 405 },
  { path: "/..%2fdata%2fauth_secret.key", status: 404 },
  { path: "/api/query%", status: 400 },
  { path: "/assets%00.txt", status: 400 },
  { path: "/%61pi/storage/upload", headers: EVIL, status: 403 },
  { path: "//api/query", headers: EVIL, status: 404 },
  { path: "/_/about", host: "evil.example", status: 421 },
  { path: "/assets.txt", host: "evil.example", status: 421 },
  { path: "/assets.txt", host: "app.localhost", status: 200 },
  { path: "/assets.txt", host: "app.example.com:443", status: 200 },
  { path: "/%61pi/health", host: "evil.example", status: 200 },
  { path: "/assets.txt", host: "localhost/x", status: 400 },
];

async function statusOf(port: number, { method = "GET", path, host = "localhost", headers = "" }: Case) {
  const body = method === "POST" ? CALL : "";
  const closes = headers.includes("upgrade") ? "" : "connection: close\r\n";
  const length = method === "POST" ? `content-length: ${body.length}\r\n` : "";
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n${headers}${closes}${length}\r\n`;
  await connection.write(new TextEncoder().encode(head + body));
  const answer = new Uint8Array(1024);
  const read = await connection.read(answer) ?? 0;
  return Number(/^HTTP\/1\.1 (\d+)/.exec(new TextDecoder().decode(answer.subarray(0, read)))?.[1]);
}

for (const workers of [1, 3]) {
  Deno.test(`HP1 OR2 OR3 WK3 each request has the same answer from each of ${workers} processes`, async () => {
    await using folder = new TempFolder();
    await Deno.mkdir(folder.at("functions"));
    await Deno.mkdir(folder.at("static"));
    await Deno.writeTextFile(join(folder.at("functions"), "numbers.ts"), NUMBERS);
    await Deno.writeTextFile(join(folder.at("functions"), "http.ts"), HTTP);
    await Deno.writeTextFile(join(folder.at("static"), "assets.txt"), "text");
    const flags = ["--workers", String(workers), "--allow-origin", "none", "--allow-host", "app.example.com"];
    const places = ["data", "functions", "static"].flatMap((name) => [`--${name}`, folder.at(name)]);
    await using child = new Child({
      args: [..."run --quiet --no-prompt -P=serve main.ts --port 0".split(" "), ...places, ...flags],
    });
    const [, port = ""] = await child.line(/http:\/\/127\.0\.0\.1:(\d+)/);
    // The kernel assigns each connection to a process, so that with this many each process gets some.
    const times = workers === 1 ? 1 : 12;
    for (const asked of cases) {
      const statuses = await Promise.all(Array.from({ length: times }, () => statusOf(Number(port), asked)));
      assert.deepEqual([...new Set(statuses)], [asked.status], JSON.stringify(asked));
    }
    Deno.kill(child.pid, "SIGTERM");
    assert.equal((await child.exited).code, 0);
  });
}
