/** Open connections without use. */
import { until } from "../../support/waiting.ts";
import assert from "node:assert/strict";
import type { Scenario } from "../support/scenario.ts";

const SHORT_MS = 5_000;

/** Files that the server may open in addition to those already open. */
const FILES_LEFT = 60;
const CONNECTIONS = 300;

const encoder = new TextEncoder();

/** Runs `prlimit` for the open files of a running process and returns its output. */
async function prlimit(pid: number, args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("prlimit", {
    args: ["--pid", String(pid), ...args],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).trim();
}

/** Sets the limit of open files of a running process until it is disposed. */
async function limitFiles(pid: number, files: number): Promise<AsyncDisposable> {
  const before = await prlimit(pid, ["--nofile", "--output", "SOFT", "--noheadings"]);
  await prlimit(pid, [`--nofile=${files}:`]);
  return {
    async [Symbol.asyncDispose]() {
      await prlimit(pid, [`--nofile=${before}:`]);
    },
  };
}

/** Files that a process has open. */
async function openFiles(pid: number): Promise<number> {
  const args = ["-c", 'ls "/proc/$0/fd" | wc -l', String(pid)];
  return Number(new TextDecoder().decode((await new Deno.Command("sh", { args }).output()).stdout));
}

/** Sends a request on a new connection. Returns the status, or `null` without an answer. */
async function health(port: number): Promise<number | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/api/health`, {
      headers: { Connection: "close" },
      signal: AbortSignal.timeout(2_000),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return null;
  }
}

/** Sends data on a new connection. Returns the milliseconds until the server closes it. */
async function closedAfter(port: number, text: string): Promise<number> {
  const startedAt = performance.now();
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  if (text !== "") await conn.write(encoder.encode(text));
  const bytes = new Uint8Array(1024);
  while (await conn.read(bytes).catch(() => null) !== null);
  return performance.now() - startedAt;
}

export const connectionScenarios: readonly Scenario[] = Deno.build.os !== "linux" ? [] : [
  {
    rule: "BU5",
    name: `${CONNECTIONS} idle connections and ${FILES_LEFT} open files`,
    before: "main ended",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: async (world) => {
      const { port, pid } = world.server;
      await using _limit = await limitFiles(pid, await openFiles(pid) + FILES_LEFT);
      const connections: Deno.TcpConn[] = [];
      let refused = 0;
      for (let n = 0; n < CONNECTIONS; n++) {
        await Deno.connect({ hostname: "127.0.0.1", port }).then((c) => connections.push(c), () => refused++);
      }
      await world.logged(/Cannot accept connections/);
      let tries = 0;
      await until(async () => (tries++, await health(port) === 200), {
        what: "another connection is served",
      });
      for (const connection of connections) connection.close();
      // The port may be reopened at this moment.
      await until(async () => await health(port) === 200);
      return `${refused} refused, another got in at try ${tries}`;
    },
  },
  {
    rule: "BU6",
    name: "connections with no request, half a head, half a body",
    before: "open for 300 s",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    long: true,
    attack: async ({ server: { port } }) => {
      const head = "POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n";
      const texts = [
        "",
        head,
        `${head}\r\n{`,
        `POST /api/auth/signin HTTP/1.1\r\nHost: localhost\r\nContent-Type: ` +
        `application/json\r\nContent-Length: 100\r\n\r\n{`,
      ];
      const stayed = await Promise.all(texts.map((text) => closedAfter(port, text)));
      return `closed after ${stayed.map((ms) => (ms / 1000).toFixed(0)).join(", ")} s`;
    },
  },
];
