/** The roles of a server, with a fake authority, fake backends and a fake clock. */
import assert from "node:assert/strict";
import type { BackendOptions } from "../../mod/server/backend.ts";
import { gateLimits } from "../../mod/server/limits.ts";
import type { ServingRole } from "../../mod/server/role.ts";
import { Serving } from "../../mod/server/serving.ts";
import { Port } from "../../mod/server/http/port.ts";
import { StaticFiles } from "../../mod/server/http/static_files.ts";
import { httpLimits } from "../../mod/limits.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { FakeBackend, testConfig } from "./support/fake_backend.ts";

/** A log of commits whose lease belongs to this server or to another one. */
class FakeLog {
  holder: "here" | "elsewhere" = "here";

  decide(): Promise<ServingRole> {
    return Promise.resolve(this.holder === "here" ? "leading" : "following");
  }
}

class World implements AsyncDisposable {
  readonly log = new FakeLog();
  readonly clock = new FakeClock();
  readonly stopping = new AbortController();
  readonly backends: FakeBackend[] = [];
  readonly surroundings: BackendOptions[] = [];
  readonly serving: Serving;
  readonly #folder: TempFolder;
  /** Never opened. */
  readonly #port: Port;
  /** Thrown by the next start of a backend. */
  failure: Error | null = null;

  private constructor(folder: TempFolder, dashboard: StaticFiles) {
    const config = testConfig({ dataDir: folder.path });
    this.#folder = folder;
    this.#port = new Port({ config, native: null, respond: () => new Response(), log: () => {} });
    this.serving = new Serving({
      parts: {
        config,
        log: () => {},
        startBackend: async (_role, surroundings) => {
          await surroundings.databaseFree?.();
          const { failure } = this;
          this.failure = null;
          if (failure !== null) throw failure;
          this.surroundings.push(surroundings);
          this.backends.push(new FakeBackend());
          return this.backends.at(-1) ?? new FakeBackend();
        },
      },
      statics: { dashboard, frontend: null },
      port: this.#port,
      clock: this.clock,
      workerFigures: () => [],
      stopping: this.stopping.signal,
    });
  }

  static async open(): Promise<World> {
    const folder = await TempFolder.with({ "dashboard/index.html": "" });
    return new World(folder, await StaticFiles.open(folder.at("dashboard"), { clientRoutes: true }));
  }

  /** Resolves when the server cannot continue. */
  get ended(): Promise<Error> {
    return this.#port.ended;
  }

  start(databaseFree?: () => Promise<void>) {
    return this.serving.start({
      authority: this.log,
      membership: null,
      ...(databaseFree && { databaseFree }),
    });
  }

  /** Requests a change of role, as a backend does when the lease has changed hands. */
  change(): void {
    this.surroundings.at(-1)?.requestReplacement();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stopping.abort();
    await this.serving.settled;
    this.#port[Symbol.dispose]();
    await this.#folder[Symbol.asyncDispose]();
  }
}

Deno.test("a server leads or follows as its authority decides, and one backend ends before the next one starts", async () => {
  await using world = await World.open();
  const { serving, log, backends } = world;
  assert.equal(serving.role, "starting");
  await assert.rejects(serving.nextServed(), /./, "requests are refused before the first backend");
  await world.start();
  assert.equal(serving.role, "leading");
  log.holder = "elsewhere";
  world.change();
  assert.equal(serving.role, "starting");
  await serving.settled;
  assert.equal(serving.role, "following");
  assert.deepEqual(backends.map(({ events }) => events), [["closeSockets", "dispose"], []]);
  log.holder = "here";
  world.change();
  await serving.settled;
  assert.equal(serving.role, "leading");
  assert.equal(backends.length, 3);
});

Deno.test("requests wait for a change of role, for a limited time", async () => {
  await using world = await World.open();
  const { serving, clock } = world;
  await world.start();
  const closing = Promise.withResolvers<void>();
  const [backend] = world.backends;
  if (backend !== undefined) backend.closeSockets = () => closing.promise;
  world.change();
  assert.equal(serving.served, null);
  const refused = assert.rejects(serving.nextServed(), /./);
  await clock.advance(gateLimits.waitMs);
  await refused;
  const waiting = serving.nextServed();
  closing.resolve();
  assert.equal((await waiting).backend, world.backends[1]);
});

Deno.test("more requests than may wait are refused", async () => {
  await using world = await World.open();
  const free = Promise.withResolvers<void>();
  const starting = world.start(() => free.promise);
  const waiting = Array.from({ length: gateLimits.requestsWaitingMax }, () => world.serving.nextServed());
  await assert.rejects(world.serving.nextServed(), /./);
  free.resolve();
  await starting;
  assert.ok((await Promise.all(waiting)).every((served) => served.backend === world.backends[0]));
});

Deno.test("a backend that does not start is started again, until the server stops", async () => {
  await using world = await World.open();
  const { serving, clock } = world;
  await world.start();
  world.failure = new Error("no disk space");
  world.change();
  await until(() => clock.nextAt !== null && world.failure === null);
  assert.equal(serving.role, "starting");
  await clock.advance(httpLimits.drainMs);
  await serving.settled;
  assert.equal(serving.role, "leading");
  world.failure = new Error("no disk space");
  world.change();
  await until(() => clock.nextAt !== null && world.failure === null);
  world.stopping.abort();
  await serving.settled;
  assert.equal(serving.backend, null);
});

Deno.test("a backend ends before the next one starts, also if its sockets cannot be closed", async () => {
  await using world = await World.open();
  const { serving, backends } = world;
  await world.start();
  const [backend] = backends;
  assert.ok(backend !== undefined);
  backend.closeSockets = () => Promise.reject(new Error("a bug"));
  world.change();
  await serving.settled;
  assert.deepEqual(backend.events, ["dispose"]);
  assert.equal(serving.backend, backends[1]);
});

Deno.test("no backend follows one that does not end: the server ends", async () => {
  await using world = await World.open();
  const { serving, backends } = world;
  await world.start();
  const [backend] = backends;
  assert.ok(backend !== undefined);
  backend[Symbol.asyncDispose] = () => Promise.reject(new Error("a bug"));
  world.change();
  await serving.settled;
  assert.match(String(await world.ended), /a bug/);
  assert.equal(backends.length, 1);
  assert.equal(serving.backend, null);
});

Deno.test("a draining server refuses requests, and serves again when a takeover has failed", async () => {
  await using world = await World.open();
  const { serving } = world;
  await world.start();
  serving.drain();
  assert.equal(serving.role, "draining");
  await assert.rejects(serving.nextServed(), /./);
  // A backend that has ended does not change the role.
  world.change();
  assert.equal(serving.role, "draining");
  await world.start();
  assert.equal(serving.role, "leading");
  assert.equal(serving.backend, world.backends[1]);
});

Deno.test("a server that takes over prepares before the database is free, and requests it once", async () => {
  await using world = await World.open();
  let asked = 0;
  await world.start(() => Promise.resolve(void asked++));
  world.change();
  await world.serving.settled;
  assert.equal(asked, 1);
  assert.equal(world.backends.length, 2);
});
