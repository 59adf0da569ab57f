/** The steps of a takeover one by one, without isolates. */
import assert from "node:assert/strict";
import { LocalSocket } from "../../mod/kit/local_socket.ts";
import { DataLock, DataLockedError } from "../../mod/server/data/data_lock.ts";
import { Port } from "../../mod/server/http/port.ts";
import { Server } from "../../mod/server/server.ts";
import { TakeoverListener } from "../../mod/server/takeover/takeover_listener.ts";
import { takeoverLimits } from "../../mod/server/limits.ts";
import { OldProcess } from "../../mod/server/takeover/old_process.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { found, until } from "../support/waiting.ts";
import { FakeBackend, testConfig } from "./support/fake_backend.ts";

interface Started {
  readonly server: Server;
  /** Backends in the order of their start. */
  readonly backends: FakeBackend[];
}

async function started(
  dataDir: string,
  { takeover = false, fails = () => {} }: {
    readonly takeover?: boolean;
    /** Called before each backend starts, with the database free. */
    readonly fails?: () => void;
  } = {},
): Promise<Started> {
  const backends: FakeBackend[] = [];
  const server = await Server.start({
    config: testConfig({ dataDir, takeover, port: takeover ? null : 0 }),
    log: () => {},
    startBackend: async (_config, { databaseFree }) => {
      await databaseFree?.();
      fails();
      backends.push(new FakeBackend());
      return backends.at(-1) ?? new FakeBackend();
    },
    drainMs: 1_000,
  });
  return { backends, server };
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(`${url}/api/query`, { method: "POST", body: "{}" });
  await response.body?.cancel();
  return response.status;
}

/** Takes over the data folder of a running server, up to the lock. */
async function steppedDown(folder: TempFolder): Promise<OldProcess> {
  const oldProcess = await OldProcess.find(folder.path);
  assert.ok(oldProcess !== null);
  await oldProcess.stepDown();
  return oldProcess;
}

Deno.test("[TO1] [TO2] a server steps down: it closes its sockets with 1012, finishes its calls and releases the folder", async () => {
  await using folder = new TempFolder();
  const { backends: [backend], server } = await started(folder.path);
  assert.ok(backend !== undefined);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/sync`);
  const code = new Promise((resolve) => socket.addEventListener("close", (event) => resolve(event.code)));
  await until(() => backend.sockets.length === 1);
  const gate = Promise.withResolvers<void>();
  backend.callGate = gate.promise;
  const running = statusOf(server.url);
  await until(() => backend.events.includes("call"));

  const oldProcess = await OldProcess.find(folder.path);
  assert.deepEqual(oldProcess?.address, { host: "127.0.0.1", port: Number(new URL(server.url).port) });
  const stepping = oldProcess?.stepDown();
  assert.equal(await code, 1012);
  await assert.rejects(DataLock.acquire(folder.path, { by: "serve" }), DataLockedError);
  gate.resolve();
  assert.equal(await running, 200);
  await stepping;
  assert.equal(backend.events.at(-1), "dispose");
  using _lock = await DataLock.acquire(folder.path, { by: "serve" });
  await oldProcess?.leading();
  await server.handedOver;
  await server.stop();
  oldProcess?.[Symbol.dispose]();
});

Deno.test("[TO1] a new process takes over, delays requests until it leads, and can be replaced itself", async () => {
  await using folder = new TempFolder();
  const first = await started(folder.path);
  const stopped = first.server.handedOver.then(() => first.server.stop());
  const second = await started(folder.path, { takeover: true });
  await stopped;
  assert.equal(second.server.url, first.server.url);
  assert.equal(await statusOf(second.server.url), 200);
  assert.equal(await Deno.readTextFile(folder.at("lock")), `${Deno.pid} serve\n`);
  const stoppedToo = second.server.handedOver.then(() => second.server.stop());
  const third = await started(folder.path, { takeover: true });
  await stoppedToo;
  assert.equal(await statusOf(third.server.url), 200);
  await third.server.stop();
  (await DataLock.acquire(folder.path, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("[TO4] a server leads again when the new process ends before it leads, and can be replaced later", async () => {
  await using folder = new TempFolder();
  const { backends, server } = await started(folder.path);
  await using _server = server;
  (await steppedDown(folder))[Symbol.dispose]();
  await until(() =>
    backends.length === 2 && server.setupLink === null && backends[0]?.events.at(-1) === "dispose"
  );
  await until(() => statusOf(server.url).then((status) => status === 200, () => false));
  await assert.rejects(DataLock.acquire(folder.path, { by: "backup" }), DataLockedError);
  // It answers calls before it accepts takeovers.
  const oldProcess = await found(() => OldProcess.find(folder.path));
  oldProcess[Symbol.dispose]();
});

Deno.test("[TO4] a server leads again when the new one cannot start its backend", async () => {
  await using folder = new TempFolder();
  const { backends, server } = await started(folder.path);
  await using _server = server;
  const fails = () => {
    throw new Error("a broken index");
  };
  await assert.rejects(started(folder.path, { takeover: true, fails }), /a broken index/);
  await until(() => statusOf(server.url).then((status) => status === 200, () => false));
  assert.equal(backends.length, 2);
  assert.equal(await Deno.readTextFile(folder.at("lock")), `${Deno.pid} serve\n`);
});

Deno.test("[TO4] a server that has stepped down waits for the lock of a new process that has lost its connection", async () => {
  await using folder = new TempFolder();
  const { backends, server } = await started(folder.path);
  await using _server = server;
  const oldProcess = await steppedDown(folder);
  const hanging = await DataLock.acquire(folder.path, { by: "serve" });
  oldProcess[Symbol.dispose]();
  await assert.rejects(statusOf(server.url));
  assert.equal(backends.length, 1);
  hanging[Symbol.dispose]();
  await until(() => statusOf(server.url).then((status) => status === 200, () => false));
});

Deno.test("[TO4] a server leads again while a new process that does not lead listens on the port", async () => {
  await using folder = new TempFolder();
  const { backends, server } = await started(folder.path);
  await using _server = server;
  using oldProcess = await steppedDown(folder);
  const { host: hostname, port } = oldProcess.address;
  using _frozen = Deno.listen({ hostname, port, reusePort: true });
  oldProcess[Symbol.dispose]();
  await until(() => backends.length === 2);
});

Deno.test("[TO4] a server that was a new process itself ends without an error if the next one keeps the folder", async () => {
  await using folder = new TempFolder();
  const first = await started(folder.path);
  const stopped = first.server.handedOver.then(() => first.server.stop());
  const { server } = await started(folder.path, { takeover: true });
  await stopped;
  const limits = takeoverLimits as { lockMs: number };
  const { lockMs } = limits;
  limits.lockMs = 0;
  try {
    const oldProcess = await steppedDown(folder);
    using _held = await DataLock.acquire(folder.path, { by: "serve" });
    oldProcess[Symbol.dispose]();
    assert.equal(await Promise.race([server.handedOver, server.portEnded]), undefined);
  } finally {
    limits.lockMs = lockMs;
    await server.stop();
  }
});

Deno.test("[TO4] a server ends if a new process that does not lead keeps the folder", async () => {
  await using folder = new TempFolder();
  const { backends, server } = await started(folder.path);
  const oldProcess = await steppedDown(folder);
  using _kept = await DataLock.acquire(folder.path, { by: "serve" });
  const limits = takeoverLimits as { lockMs: number };
  const { lockMs } = limits;
  limits.lockMs = 0;
  try {
    oldProcess[Symbol.dispose]();
    await server.handedOver;
  } finally {
    limits.lockMs = lockMs;
  }
  assert.equal(backends.length, 1);
  await server.stop();
});

Deno.test("[TO4] a server that cannot lead again after a failed takeover ends with the reason", async () => {
  await using folder = new TempFolder();
  const fails = { now: false };
  const { server } = await started(folder.path, {
    fails: () => {
      if (fails.now) throw new Error("no disk space");
    },
  });
  fails.now = true;
  (await steppedDown(folder))[Symbol.dispose]();
  assert.match(String(await server.portEnded), /no disk space/);
  await server.stop();
  (await DataLock.acquire(folder.path, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("[TO4] a server that is stopped during a takeover does not lead again", async () => {
  await using folder = new TempFolder();
  const { backends, server } = await started(folder.path);
  const oldProcess = await steppedDown(folder);
  await server.stop();
  oldProcess[Symbol.dispose]();
  assert.equal(backends.length, 1);
  (await DataLock.acquire(folder.path, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("[TO4] a server that is stopped while it steps down keeps the folder until its backend has ended", async () => {
  await using folder = new TempFolder();
  const { backends: [backend], server } = await started(folder.path);
  assert.ok(backend !== undefined);
  const gate = Promise.withResolvers<void>();
  backend.callGate = gate.promise;
  const running = statusOf(server.url);
  await until(() => backend.events.includes("call"));
  const stepping = steppedDown(folder);
  await until(() => backend.events.includes("closeSockets"));
  const stopped = server.stop();
  await assert.rejects(DataLock.acquire(folder.path, { by: "serve" }), DataLockedError);
  gate.resolve();
  assert.equal(await running, 200);
  await stopped;
  assert.deepEqual(backend.events, ["call", "closeSockets", "dispose"]);
  (await stepping)[Symbol.dispose]();
});

Deno.test("[TO4] when an old process dies, the new one gets folder and port", async () => {
  await using folder = new TempFolder();
  const lock = await DataLock.acquire(folder.path, { by: "serve" });
  using listening = Deno.listen({ hostname: "127.0.0.1", port: 0, reusePort: true });
  const { port } = listening.addr;
  const dead = Promise.withResolvers<void>();
  const listener = await TakeoverListener.open({
    dataDir: folder.path,
    log: () => {},
    server: {
      address: { host: "127.0.0.1", port },
      stepDown() {
        listening.close();
        lock[Symbol.dispose]();
        dead.resolve();
        return new Promise(() => {});
      },
      handedOver: () => assert.fail("it is dead"),
      resume: () => assert.fail("it is dead"),
    },
  });
  const starting = started(folder.path, { takeover: true });
  await dead.promise;
  listener.close();
  // The connection ends with the process; its session is still in `stepDown`.
  void listener[Symbol.asyncDispose]();
  const { server } = await starting;
  assert.equal(new URL(server.url).port, String(port));
  assert.equal(await statusOf(server.url), 200);
  await server.stop();
});

Deno.test("[TO4] a new process stops waiting for an old one that does not answer, and does not affect it", async () => {
  await using folder = new TempFolder();
  const frozen = Promise.withResolvers<boolean>();
  const events: string[] = [];
  await using _listener = await TakeoverListener.open({
    dataDir: folder.path,
    log: () => {},
    server: {
      address: { host: "127.0.0.1", port: 1 },
      stepDown: () => frozen.promise,
      handedOver: () => void events.push("handed over"),
      resume: () => Promise.resolve(void events.push("resumed")),
    },
  });
  const oldProcess = await OldProcess.find(folder.path, { answerMs: 5_000, stepDownMs: 20 });
  await assert.rejects(oldProcess?.stepDown() ?? Promise.resolve(), /did not answer within 0\.02 s/);
  oldProcess?.[Symbol.dispose]();
  frozen.resolve(true);
  await until(() => events.length > 0);
  assert.deepEqual(events, ["resumed"]);
});

Deno.test("[TO4] a backend whose sockets cannot be closed ends before the folder is released", async () => {
  await using folder = new TempFolder();
  const { backends: [backend], server } = await started(folder.path);
  await using _server = server;
  assert.ok(backend !== undefined);
  backend.closeSockets = () => Promise.reject(new Error("a bug"));
  using _oldProcess = await steppedDown(folder);
  assert.deepEqual(backend.events, ["dispose"]);
  await assert.rejects(statusOf(server.url), TypeError, "the port is closed, too");
  using _lock = await DataLock.acquire(folder.path, { by: "serve" });
});

Deno.test("[TO4] a server whose backend does not end keeps the folder, and exits", async () => {
  await using folder = new TempFolder();
  const { backends: [backend], server } = await started(folder.path);
  assert.ok(backend !== undefined);
  backend[Symbol.asyncDispose] = () => Promise.reject(new Error("a bug"));
  using _oldProcess = await steppedDown(folder);
  assert.match(String(await server.portEnded), /a bug/);
  await assert.rejects(DataLock.acquire(folder.path, { by: "serve" }), DataLockedError);
  await server.stop();
  (await DataLock.acquire(folder.path, { by: "backup" }))[Symbol.dispose]();
});

Deno.test("[TO4] a server waits for a frozen new process for a bounded time", async () => {
  await using folder = new TempFolder();
  const events: string[] = [];
  await using _listener = await TakeoverListener.open({
    dataDir: folder.path,
    log: () => {},
    leadMs: 20,
    server: {
      address: { host: "127.0.0.1", port: 1 },
      stepDown: () => Promise.resolve(true),
      handedOver: () => void events.push("handed over"),
      resume: () => Promise.resolve(void events.push("resumed")),
    },
  });
  using frozen = await steppedDown(folder);
  await until(() => events.length > 0);
  await frozen.leading();
  assert.deepEqual(events, ["resumed"]);
});

Deno.test("[TO4] a new process waits for a port in use for a bounded time", async () => {
  await using folder = new TempFolder();
  using listening = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const config = testConfig({ dataDir: folder.path, port: listening.addr.port });
  using port = new Port({ config, native: null, respond: () => new Response(), log: () => {} });
  await assert.rejects(port.listenWhenFree(() => true, 60), /in use/);
});

Deno.test("[TO4] a server that cannot step down now refuses", async () => {
  await using folder = new TempFolder();
  await using _listener = await TakeoverListener.open({
    dataDir: folder.path,
    log: () => {},
    server: {
      address: { host: "127.0.0.1", port: 1 },
      stepDown: () => Promise.resolve(false),
      handedOver: () => assert.fail("refused"),
      resume: () => assert.fail("refused"),
    },
  });
  using oldProcess = await OldProcess.find(folder.path);
  await assert.rejects(oldProcess?.stepDown() ?? Promise.resolve(), /cannot hand over now/);
});

Deno.test("a local socket in a folder with a long path can be used, and is removed with its link", async () => {
  await using folder = new TempFolder();
  const deep = folder.at("d".repeat(120));
  await Deno.mkdir(deep);
  const socket = await LocalSocket.open(deep, "asked.sock");
  assert.equal((await Deno.lstat(`${deep}/asked.sock`)).isSymlink, true);
  assert.equal(((await Deno.stat(socket.path)).mode ?? 0) & 0o777, 0o600);
  socket[Symbol.dispose]();
  assert.deepEqual(await Array.fromAsync(Deno.readDir(deep)), []);
});
