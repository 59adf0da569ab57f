/** The steps of a takeover one by one, most of them without isolates: what is held, what is passed on, what is taken back. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { StartError } from "../../mod/config/start_error.ts";
import { ServiceError } from "../../mod/errors.ts";
import type { Lent, PassedCalls } from "../../mod/functions/host/mod.ts";
import { LocalSocket } from "../../mod/kit/local_socket.ts";
import { startBackend } from "../../mod/server/backend.ts";
import { DataLock, DataLockedError } from "../../mod/server/data/data_lock.ts";
import { takeoverLimits } from "../../mod/server/limits.ts";
import { Server } from "../../mod/server/server.ts";
import { TakeoverListener } from "../../mod/server/takeover/takeover_listener.ts";
import { ForwardedRequests } from "../../mod/server/takeover/forwarded_requests.ts";
import { HeldRequests } from "../../mod/server/takeover/held_requests.ts";
import { OldProcess } from "../../mod/server/takeover/old_process.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { FakeBackend, testConfig } from "./support/fake_backend.ts";

/** A backend whose database can be lent; it notes what becomes of that. */
class LendingBackend extends FakeBackend {
  readonly told: string[] = [];
  passedTo: PassedCalls | null = null;
  lendable = true;
  readonly forwardedCalls: PassedCalls = {
    mutate: ({ udfPath }) => {
      this.told.push(`mutate ${udfPath}`);
      return Promise.resolve({ outcome: { ok: true, value: "1", logLines: [] }, ts: 7, replayed: false });
    },
    query: ({ udfPath }) => {
      this.told.push(`query ${udfPath}`);
      return Promise.resolve({ ok: true, value: "2", logLines: [] });
    },
  };

  lendDatabase(): Promise<Lent | null> {
    if (!this.lendable) return Promise.resolve(null);
    this.told.push("lent");
    return Promise.resolve({
      giveBack: () => this.told.push("given back"),
      passOn: (to) => this.passedTo = to,
    });
  }

  startBackgroundWork(): Promise<void> {
    this.told.push("begun");
    return Promise.resolve();
  }
}

async function started(dataDir: string, { takeover = false } = {}) {
  const backend = new LendingBackend();
  const server = await Server.start({
    config: testConfig({ dataDir, takeover, port: takeover ? null : 0 }),
    log: () => {},
    startBackend: async (_config, { databaseReleased: letGo }) => {
      await letGo?.(() => Promise.resolve());
      return backend;
    },
    drainMs: 1_000,
  });
  return { backend, server };
}

const dies = () => Promise.resolve(false);

const call = (url: string) => fetch(`${url}/api/query`, { method: "POST", body: "{}" });

async function statusOf(url: string): Promise<number> {
  const response = await call(url);
  await response.body?.cancel();
  return response.status;
}

Deno.test("[TO1] requests that came during the switch, and calls that still run, are answered by the one that took over", async () => {
  await using folder = new TempFolder();
  const { backend, server } = await started(folder.path);
  const oldProcess = await OldProcess.find(folder.path);
  assert.ok(oldProcess !== null);
  assert.deepEqual(oldProcess.address, { host: "127.0.0.1", port: Number(new URL(server.url).port) });
  await oldProcess.releaseDatabase(dies);
  const held = call(`${server.url}`);
  const seen: string[] = [];
  const passed = await ForwardedRequests.open(folder.path, {
    calls: backend.forwardedCalls,
    respond: async (request, info) => {
      const { hostname } = info.remoteAddr as Deno.NetAddr;
      seen.push(`${request.method} ${request.url} ${await request.text()} of ${hostname}`);
      return new Response("from the other one", { status: 201, headers: { "x-kept": "yes" } });
    },
  });
  await oldProcess.serving(passed);
  await server.handedOver;
  const answer = await held;
  assert.deepEqual([answer.status, await answer.text()], [201, "from the other one"]);
  assert.deepEqual([answer.headers.get("x-kept"), answer.headers.get("connection")], ["yes", "close"]);
  // Nothing that a client sends is taken for a call of the old server, which would pass no door.
  const forged = { "syncline-passed-call": "mutation", "syncline-passed-key": passed.key };
  await (await fetch(`${server.url}/some/page?q=1`, { headers: forged })).body?.cancel();
  await using direct = Object.assign(
    Deno.createHttpClient({ proxy: { transport: "unix", path: passed.socket } }),
    { [Symbol.asyncDispose]: () => Promise.resolve(direct.close()) },
  );
  const headers = { "syncline-passed-call": "mutation", "syncline-passed-key": "guessed" };
  const address = { "syncline-passed-address": JSON.stringify({ hostname: "127.0.0.1" }) };
  await (await fetch(`${server.url}/other`, { headers: { ...headers, ...address }, client: direct })).body
    ?.cancel();
  assert.deepEqual(seen, [
    `POST ${server.url}/api/query {} of 127.0.0.1`,
    `GET ${server.url}/some/page?q=1  of 127.0.0.1`,
    `GET ${server.url}/other  of 127.0.0.1`,
  ]);
  const identity = { principal: null, userId: null, adminId: null, sessionId: null };
  const asked = { udfPath: "a:b", args: {}, identity, origin: "server" } as const;
  assert.equal((await backend.passedTo?.mutate(asked))?.ts, 7);
  assert.deepEqual(await backend.passedTo?.query(asked), { ok: true, value: "2", logLines: [] });
  assert.deepEqual(backend.told, ["lent", "mutate a:b", "query a:b"]);
  await server.stop();
  await oldProcess.ended;
  await oldProcess[Symbol.asyncDispose]();
  await passed[Symbol.asyncDispose]();
});

Deno.test("[TO2] a socket that is asked for after the switch is closed with 1012", async () => {
  await using folder = new TempFolder();
  const { backend, server } = await started(folder.path);
  const oldProcess = await OldProcess.find(folder.path);
  await oldProcess?.releaseDatabase(dies);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/sync`);
  const code = new Promise((resolve) => socket.addEventListener("close", (event) => resolve(event.code)));
  await using passed = await ForwardedRequests.open(folder.path, {
    calls: backend.forwardedCalls,
    respond: () => new Response(),
  });
  await oldProcess?.serving(passed);
  assert.equal(await code, 1012);
  await server.stop();
  await oldProcess?.[Symbol.asyncDispose]();
});

Deno.test("[TO4] a server that cannot lend its database says so and goes on, and is asked again later", async () => {
  await using folder = new TempFolder();
  const { backend, server } = await started(folder.path);
  await using _server = server;
  backend.lendable = false;
  await assert.rejects(started(folder.path, { takeover: true }), /cannot hand over now/);
  assert.equal(await statusOf(server.url), 200);
  backend.lendable = true;
  const oldProcess = await OldProcess.find(folder.path);
  await oldProcess?.releaseDatabase(dies);
  await oldProcess?.[Symbol.asyncDispose]();
  await until(() => backend.told.includes("given back"));
  assert.equal(await statusOf(server.url), 200);
  assert.deepEqual(backend.told, ["lent", "given back"]);
});

Deno.test("[TO4] a successor that takes too long loses its turn, and everything is taken back", async () => {
  await using folder = new TempFolder();
  const told: string[] = [];
  const back = Promise.withResolvers<void>();
  await using _door = await TakeoverListener.open({
    dataDir: folder.path,
    log: () => {},
    switchMs: 1,
    server: {
      address: { host: "127.0.0.1", port: 1 },
      releaseDatabase: () => Promise.resolve(told.push("let go") > 0),
      sharePort: () => true,
      revert: () => {
        told.push("took back");
        back.resolve();
        return Promise.resolve();
      },
      complete: () => told.push("gave way"),
    },
  });
  await using oldProcess = await OldProcess.find(folder.path);
  await oldProcess?.releaseDatabase(dies);
  await assert.rejects(oldProcess?.lost ?? Promise.resolve(), /continues to serve/);
  await assert.rejects(
    oldProcess?.serving({ socket: "/nowhere", key: "none" }) ?? Promise.resolve(),
    /continues to serve/,
  );
  await back.promise;
  assert.deepEqual(told, ["let go", "took back"]);
});

Deno.test("[TO1] a port that cannot be shared is given up by the one and taken by the other", async () => {
  await using folder = new TempFolder();
  const first = await started(folder.path);
  const stopped = first.server.handedOver.then(() => first.server.stop());
  const second = await started(folder.path, { takeover: true });
  await stopped;
  assert.equal(second.server.url, first.server.url);
  assert.equal(await statusOf(second.server.url), 200);
  assert.equal(await Deno.readTextFile(folder.at("lock")), `${Deno.pid} serve\n`);
  await assert.rejects(DataLock.acquire(folder.path, { by: "backup" }), DataLockedError);
  await until(() => second.backend.told.includes("begun"));
  await second.server.stop();
  (await DataLock.acquire(folder.path, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("[TO4] a backend that cannot be started leaves the other server and its folder as they are", async () => {
  await using folder = new TempFolder();
  const { backend, server } = await started(folder.path);
  await using _server = server;
  await assert.rejects(
    Server.start({
      config: testConfig({ dataDir: folder.path, takeover: true, port: null }),
      log: () => {},
      startBackend: async (_config, { databaseReleased: letGo }) => {
        await letGo?.(() => Promise.resolve());
        throw new Error("a broken index");
      },
    }),
    /a broken index/,
  );
  await until(() => backend.told.includes("given back"));
  assert.equal(await statusOf(server.url), 200);
  assert.deepEqual(backend.told, ["lent", "given back"]);
  assert.equal(await Deno.readTextFile(folder.at("lock")), `${Deno.pid} serve\n`);
});

Deno.test("[TO4] what was lent is taken back when no other process has the folder any more", async () => {
  await using folder = new TempFolder();
  const { backend, server } = await started(folder.path);
  await using _server = server;
  const oldProcess = await OldProcess.find(folder.path);
  await oldProcess?.releaseDatabase(dies);
  const hanging = await DataLock.join(folder.path);
  await oldProcess?.[Symbol.asyncDispose]();
  const held = statusOf(server.url);
  await delay(100);
  assert.deepEqual(backend.told, ["lent"]);
  hanging[Symbol.dispose]();
  assert.equal(await held, 200);
  assert.deepEqual(backend.told, ["lent", "given back"]);
  await assert.rejects(DataLock.acquire(folder.path, { by: "backup" }), DataLockedError);
});

Deno.test("[TO4] a server that is stopped during the switch takes nothing back, and refuses what waits", async () => {
  await using folder = new TempFolder();
  const { backend, server } = await started(folder.path);
  const oldProcess = await OldProcess.find(folder.path);
  await oldProcess?.releaseDatabase(dies);
  const held = statusOf(server.url);
  await until(async () => (await (await fetch(`${server.url}/api/health`)).json()).status !== undefined);
  await server.stop();
  assert.equal(await held.catch(() => 503), 503);
  await assert.rejects(oldProcess?.lost ?? Promise.resolve());
  await oldProcess?.[Symbol.asyncDispose]();
  assert.deepEqual(backend.told, ["lent"]);
});

Deno.test("[TO4] a server that dies when it has let go leaves folder and port to the other one", async () => {
  await using folder = new TempFolder();
  const lock = await DataLock.acquire(folder.path, { by: "serve" });
  using listening = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const door = await TakeoverListener.open({
    dataDir: folder.path,
    log: () => {},
    server: {
      address: { host: "127.0.0.1", port: listening.addr.port },
      releaseDatabase: () => Promise.resolve(true),
      sharePort() {
        door.close();
        lock[Symbol.dispose]();
        listening.close();
        return false;
      },
      revert: () => Promise.resolve(),
      complete: () => assert.fail("it is dead"),
    },
  });
  const { backend, server } = await started(folder.path, { takeover: true });
  assert.equal(new URL(server.url).port, String(listening.addr.port));
  assert.equal(await statusOf(server.url), 200);
  assert.equal(await Deno.readTextFile(folder.at("lock")), `${Deno.pid} serve\n`);
  await until(() => backend.told.includes("begun"));
  await door[Symbol.asyncDispose]();
  await server.stop();
});

Deno.test("requests beyond those that may wait are refused", async () => {
  const passing = new HeldRequests();
  const held = Array.from({ length: takeoverLimits.requestsHeldMax }, () => passing.wait());
  await assert.rejects(passing.wait(), (error) => error instanceof ServiceError && error.status === 503);
  passing.release();
  assert.ok((await Promise.all(held)).every((successor) => successor === null));
});

Deno.test("a local socket in a folder with a long path can be connected to, and goes with its folder's link", async () => {
  await using folder = new TempFolder();
  const deep = folder.at("d".repeat(120));
  await Deno.mkdir(deep);
  const socket = await LocalSocket.open(deep, "asked.sock");
  assert.equal((await Deno.lstat(`${deep}/asked.sock`)).isSymlink, true);
  assert.equal(((await Deno.stat(socket.path)).mode ?? 0) & 0o777, 0o600);
  socket[Symbol.dispose]();
  assert.deepEqual(await Array.fromAsync(Deno.readDir(deep)), []);
});

Deno.test("a lock that is joined holds on when the first holder lets go", async () => {
  await using folder = new TempFolder();
  const first = await DataLock.acquire(folder.path, { by: "serve" });
  using _second = await DataLock.join(folder.path);
  first[Symbol.dispose]();
  await assert.rejects(DataLock.acquire(folder.path, { by: "serve" }), DataLockedError);
});

Deno.test("[TO4] a part that cannot be made is found before the other server lets go", async () => {
  await using folder = await TempFolder.with({ "functions/notes.ts": "" });
  const config = testConfig({ dataDir: folder.path, functionsDir: folder.at("functions") });
  const authConfig = { kind: "file", path: folder.at("none.ts") } as const;
  const broken = { ...config, accounts: { ...config.accounts, authConfig } };
  const told: string[] = [];
  const starting = startBackend(broken, {
    log: () => {},
    url: "http://127.0.0.1:1",
    restart: null,
    socketsMax: 1,
    requestReplacement: () => {},
    databaseReleased: () => Promise.resolve(void told.push("let go")),
  });
  await assert.rejects(starting, StartError);
  assert.deepEqual(told, []);
});
