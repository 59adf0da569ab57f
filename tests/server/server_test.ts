import assert from "node:assert/strict";
import { DataLock } from "../../mod/server/data/data_lock.ts";
import type { ServeConfig } from "../../mod/config/config.ts";
import { listen } from "../../mod/server/http/listen.ts";
import { Server } from "../../mod/server/server.ts";
import type { StartBackend } from "../../mod/server/server_options.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { FakeBackend, testConfig } from "./support/fake_backend.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { freePort } from "../support/ports.ts";

interface Setup extends AsyncDisposable {
  readonly backend: FakeBackend;
  readonly dataDir: string;
  readonly logged: string[];
  start(
    changes?: Partial<ServeConfig>,
    options?: {
      readonly startBackend?: StartBackend;
      readonly drainMs?: number;
      readonly onRestart?: () => void;
    },
  ): Promise<Server>;
}

async function setup(): Promise<Setup> {
  const dataDir = await Deno.makeTempDir();
  const backend = new FakeBackend();
  const logged: string[] = [];
  return {
    backend,
    dataDir,
    logged,
    start: (changes = {}, { startBackend = () => Promise.resolve(backend), ...rest } = {}) =>
      Server.start({
        ...rest,
        config: testConfig({ dataDir, ...changes }),
        log: (level, message) => logged.push(`${level} ${message}`),
        startBackend,
      }),
    [Symbol.asyncDispose]: () => Deno.remove(dataDir, { recursive: true }),
  };
}

function call(server: Server): Promise<Response> {
  return fetch(`${server.url}/api/query`, { method: "POST", body: "{}" });
}

Deno.test("a server uses any free port and prints it", async () => {
  await using s = await setup();
  await using server = await s.start();
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const response = await fetch(`${server.url}/api/health`);
  assert.deepEqual([response.status, await response.json()], [200, { status: "ok", ts: 42 }]);
});

Deno.test("while the app is being loaded the port is open and health is 503", async () => {
  await using s = await setup();
  const port = freePort();
  const seen: unknown[] = [];
  await using _server = await s.start({ port }, {
    startBackend: async () => {
      const health = await fetch(`http://127.0.0.1:${port}/api/health`);
      seen.push(health.status, await health.json());
      const call = await fetch(`http://127.0.0.1:${port}/api/query`, { method: "POST" });
      seen.push(call.status, (await call.json()).errorData.code, call.headers.get("retry-after"));
      const page = await fetch(`http://127.0.0.1:${port}/lists/1`, {
        headers: { Accept: "text/html,*/*;q=0.8" },
      });
      seen.push(page.status, page.headers.get("content-type"), page.headers.get("retry-after"));
      assert.match(await page.text(), /http-equiv="refresh"/);
      return s.backend;
    },
  });
  assert.deepEqual(seen, [
    503,
    { status: "starting" },
    503,
    "unavailable",
    "1",
    503,
    "text/html; charset=utf-8",
    "1",
  ]);
});

Deno.test("an app that cannot be loaded releases port and data folder", async () => {
  await using s = await setup();
  const port = freePort();
  await assert.rejects(
    s.start({ port }, { startBackend: () => Promise.reject(new Error("broken app")) }),
    /broken app/,
  );
  await using _server = await s.start({ port });
});

Deno.test("a port in use is a StartError that names it, and the data folder is free again", async () => {
  await using s = await setup();
  await using first = await s.start();
  const port = Number(new URL(first.url).port);
  await using otherFolder = new TempFolder();
  const other = otherFolder.path;
  await assert.rejects(s.start({ port, dataDir: other }), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, new RegExp(`Port ${port} .*--port`));
    return true;
  });
  (await DataLock.acquire(other, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("without a port the default one is used, or the next free one above it", async () => {
  const servers = [1, 2].map(() => listen({ host: "127.0.0.1", port: null }, () => new Response()));
  const [first = 0, second = 0] = servers.map((server) => server.addr.port);
  assert.ok(first >= 3210 && second > first, `${first} ${second}`);
  for (const server of servers) await server.shutdown();
});

Deno.test("an address that is not this machine's is a StartError", () => {
  assert.throws(() => listen({ host: "192.0.2.1", port: 0 }, () => new Response()), StartError);
});

/** An upgrade without a returned answer leaves its resources open in the runtime. */
const UNANSWERED = { sanitizeOps: false, sanitizeResources: false };

Deno.test(
  "HE4 a port that the runtime closes is reported once, and one that is shut down is not",
  UNANSWERED,
  async () => {
    const ended: Error[] = [];
    const onEnd = (error: Error) => ended.push(error);
    // An upgrade whose answer is not returned ends the runtime's server.
    const broken = listen({ host: "127.0.0.1", port: 0, onEnd }, (request) => {
      Deno.upgradeWebSocket(request);
      return new Response();
    });
    assert.equal(broken.isOpen, true);
    const socket = new WebSocket(`ws://127.0.0.1:${broken.addr.port}`);
    socket.addEventListener("error", () => {});
    await until(() => ended.length === 1);
    assert.equal(broken.isOpen, false);
    await broken.shutdown();
    const well = listen({ host: "127.0.0.1", port: 0, onEnd }, () => new Response());
    await well.shutdown();
    assert.deepEqual([ended.length, well.isOpen], [1, false]);
  },
);

Deno.test("HE4 a server reports that its listener has ended", UNANSWERED, async () => {
  await using s = await setup();
  s.backend.acceptSocket = (request) => {
    Deno.upgradeWebSocket(request);
    return new Response();
  };
  await using server = await s.start();
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/sync`);
  socket.addEventListener("error", () => {});
  assert.match((await server.portEnded).message, /closed the port/);
});

Deno.test("a second server on the same data folder does not start", async () => {
  await using s = await setup();
  await using _first = await s.start();
  await assert.rejects(s.start(), /Another server/);
});

Deno.test("stop closes sockets with 1012 before it ends the isolates", async () => {
  await using s = await setup();
  const server = await s.start();
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/sync`);
  const closed = new Promise<CloseEvent>((resolve) => socket.addEventListener("close", resolve));
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  await server.stop();
  const { code } = await closed;
  assert.equal(code, 1012);
  assert.deepEqual(s.backend.events, ["socket", "closeSockets", "dispose"]);
});

Deno.test("stop lets a running call finish, refuses new ones, then releases everything", async () => {
  await using s = await setup();
  const gate = Promise.withResolvers<void>();
  s.backend.callGate = gate.promise;
  const sockets = Promise.withResolvers<void>();
  s.backend.closeSockets = () => sockets.promise;
  const server = await s.start();
  const running = call(server);
  await until(() => s.backend.events.includes("call"));
  const stopped = server.stop();
  const refused = await call(server);
  assert.deepEqual([refused.status, (await refused.json()).errorData.code], [503, "unavailable"]);
  const health = await fetch(`${server.url}/api/health`);
  assert.deepEqual([health.status, await health.json()], [503, { status: "draining" }]);
  sockets.resolve();
  gate.resolve();
  const response = await running;
  assert.deepEqual([response.status, (await response.json()).value], [200, 1]);
  await stopped;
  assert.equal(s.backend.events.at(-1), "dispose");
  (await DataLock.acquire(s.dataDir, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("a call that does not finish in time does not keep the server from stopping", async () => {
  await using s = await setup();
  const gate = Promise.withResolvers<void>();
  s.backend.callGate = gate.promise;
  // The isolates answer their remaining calls when they are stopped.
  s.backend[Symbol.asyncDispose] = () => Promise.resolve(gate.resolve());
  const server = await s.start({}, { drainMs: 20 });
  const running = call(server);
  await until(() => s.backend.events.includes("call"));
  await server.stop();
  assert.match(s.logged.join(), /still running/);
  await (await running).body?.cancel();
});

Deno.test("stop twice is one stop", async () => {
  await using s = await setup();
  const server = await s.start();
  await Promise.all([server.stop(), server.stop()]);
  await server.stop();
  assert.deepEqual(s.backend.events, ["closeSockets", "dispose"]);
});

Deno.test("[AD7] a restart is available when a supervisor's exit code is configured", async () => {
  await using s = await setup();
  let asked = 0;
  const seen: boolean[] = [];
  const startBackend: StartBackend = (_config, { restart }) => {
    seen.push(restart !== null);
    restart?.();
    return Promise.resolve(s.backend);
  };
  for (const restartExitCode of [null, 75]) {
    await using _server = await s.start({ restartExitCode }, { startBackend, onRestart: () => void asked++ });
  }
  assert.deepEqual([seen, asked], [[false, true], 1]);
});

/** Status and body of a request whose path is not normalized. */
async function rawGet(server: Server, path: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const request = `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`;
  await connection.write(new TextEncoder().encode(request));
  const answer = await new Response(connection.readable).text();
  return `${answer.slice(9, 12)} ${answer.slice(answer.indexOf("\r\n\r\n") + 4).slice(0, 6)}`;
}

Deno.test("SF3 however a path below /api or /_ is spelled, no file answers it", async () => {
  await using s = await setup();
  const folder = `${s.dataDir}/static`;
  for (const path of ["api", "_"]) {
    await Deno.mkdir(`${folder}/${path}`, { recursive: true });
    await Deno.writeTextFile(`${folder}/${path}/x`, "STATIC");
  }
  await Deno.writeTextFile(`${folder}/x`, "STATIC");
  await Deno.writeTextFile(`${folder}/metrics`, "STATIC");
  await using server = await s.start({ staticDir: folder });
  const spellings = ["/api/x", "/./api/x", "/%2e/api/x", "/%2E/api/x", "/a/../api/x", "/a/%2e%2e/api/x"]
    .concat("/\\api/x", "/.\\api/x", "/%61pi/x", "//api/x", "/api/./x", "/api/../api/x", "/api/%2e/x");
  for (const spelling of spellings) {
    for (const path of [spelling, spelling.replace("api", "_").replace("%61pi", "%5f")]) {
      assert.notEqual(await rawGet(server, path), "200 STATIC", path);
    }
  }
  assert.notEqual(await rawGet(server, "/./metrics"), "200 STATIC");
  for (const path of ["/x", "/./x", "/a/../x"]) assert.equal(await rawGet(server, path), "200 STATIC", path);
});

Deno.test("SF4 the bundled example has its own data folder, never that of an app", async () => {
  await using s = await setup();
  const database = `${s.dataDir}/data.db`;
  const serve = async (example: boolean) => await (await s.start({ example })).stop();
  await serve(true);
  // Rows created by a backend.
  await Deno.writeTextFile(database, "");
  await serve(true);
  await serve(false);
  await assert.rejects(serve(true), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /belongs to an app, .*--functions/);
    return true;
  });
  await Deno.remove(database);
  await serve(true);
});

Deno.test("[RP20] a stop while another backend is being started ends that start", async () => {
  await using s = await setup();
  const asked = Promise.withResolvers<() => void>();
  const starting = Promise.withResolvers<void>();
  let starts = 0;
  const server = await s.start({}, {
    startBackend(_config, { requestReplacement: renew, stopping }) {
      if (starts++ === 0) {
        asked.resolve(renew);
        return Promise.resolve(s.backend);
      }
      // As one that fetches a snapshot from a target that does not answer.
      starting.resolve();
      return new Promise((_, reject) => stopping?.addEventListener("abort", () => reject(stopping.reason)));
    },
  });
  (await asked.promise)();
  await starting.promise;
  await server.stop();
  assert.equal(starts, 2, "it is not tried again");
  await using again = await s.start();
  const response = await call(again);
  assert.equal(response.status, 200, "the data folder was given up");
  await response.body?.cancel();
});

Deno.test("[PG7] [RP20] requests during a backend's start are handled when it serves, and those of one that ended are dropped", async () => {
  await using s = await setup();
  const asks: (() => void)[] = [];
  await using server = await s.start({}, {
    startBackend(_config, { requestReplacement: renew }) {
      asks.push(renew);
      // The first two fail immediately, like a server whose log does not match the cluster's.
      if (asks.length <= 2) renew();
      return Promise.resolve(new FakeBackend());
    },
  });
  await until(() => asks.length === 3, { what: "it was renewed twice" });
  await until(() =>
    call(server).then(async (response) => {
      await response.body?.cancel();
      return response.status === 200;
    })
  );
  asks[0]?.();
  asks[1]?.();
  asks[2]?.();
  asks[2]?.();
  await until(() => asks.length === 4, { what: "it was renewed again" });
  await until(() =>
    call(server).then(async (response) => {
      await response.body?.cancel();
      return response.status === 200;
    })
  );
  assert.equal(asks.length, 4, "once");
});
