/**
 * A client and a model server whose sockets and HTTP fail at times: no mutation runs twice, all end in order, resolved ones
 * are visible, and the final lists are correct.
 */
import assert from "node:assert/strict";
import { ConnectionLostError, SynclineClient } from "../../mod/client/mod.ts";
import { FakeClock } from "./support/fake_clock.ts";
import { type FakeSocket, FakeSockets } from "./support/fake_socket.ts";
import { type Entry, type Line, ModelServer } from "./support/model_server.ts";
import { turns } from "./support/polling_client.ts";
import { randomOf } from "./support/random.ts";

const LISTS = ["a", "b"];
const STEPS = 150;

class World {
  readonly server = new ModelServer();
  readonly clock = new FakeClock();
  readonly client: SynclineClient;
  readonly #random: () => number;
  readonly #sockets = new FakeSockets();
  readonly #lines = new Map<FakeSocket, Line>();
  readonly #shown = new Map<string, readonly Entry[]>();
  /** Requests and responses in transit over HTTP. */
  readonly #held: (() => void)[] = [];
  /** Whether sockets open, whether HTTP answers, whether it also fails now and then. */
  sockets = true;
  http = true;
  faulty = true;
  calls = 0;
  readonly outcomes = new Map<number, "done" | "failed" | "lost">();
  readonly violations: string[] = [];

  constructor(random: () => number) {
    this.#random = random;
    const { clock } = this;
    this.client = new SynclineClient("http://server.test", {
      webSocket: this.#sockets.factory,
      clock,
      random,
      fetch: (input, init) => this.#fetch(new Request(input, init)),
    });
    for (const list of LISTS) {
      this.client.subscribe("list", { list }, (entries) => this.#shown.set(list, entries as Entry[]));
    }
  }

  call(): void {
    const n = this.calls++;
    const list = LISTS[n % LISTS.length] ?? "a";
    const optimistic: Entry = { _id: `local ${n}`, author: "me", n };
    const args = { list, n, author: "me", fail: this.#random() < 0.1 };
    this.client.mutation("add", args, {
      optimisticUpdate: (store) => {
        const entries = store.getQuery("list", { list }) as Entry[] | undefined;
        if (entries !== undefined) store.setQuery("list", { list }, [...entries, optimistic]);
      },
    }).then((id) => {
      this.outcomes.set(n, "done");
      const entries = this.#shown.get(list);
      if (entries?.every(({ _id }) => _id !== id)) this.violations.push(`${n} resolved and cannot be seen`);
    }, (error) => this.outcomes.set(n, error instanceof ConnectionLostError ? "lost" : "failed"));
  }

  /** Opens the newest attempt or lets it fail. */
  connect(): void {
    const socket = this.#sockets.last;
    if (socket.dropped || this.#lines.has(socket)) return;
    if (!this.sockets) return socket.closeWith(1006);
    this.#lines.set(socket, this.server.accept(socket));
    socket.open();
  }

  cut(): void {
    for (const [socket, line] of this.#lines) {
      this.server.cut(line);
      this.#lines.delete(socket);
      socket.closeWith(1006);
    }
  }

  /** Delivers messages, each with this probability. */
  carry(probability: number): void {
    for (const [socket, line] of this.#lines) {
      if (socket.dropped) this.server.cut(line), this.#lines.delete(socket);
      line.toServer.push(...socket.take());
      while (line.toServer.length > 0 && this.#random() < probability) this.server.handle(line);
      if (this.#random() < probability) this.server.push(line);
      while (!socket.dropped && this.#random() < probability) {
        const message = line.toClient.shift();
        if (message === undefined) break;
        socket.receive(message);
      }
    }
  }

  /** Delivers one request or response over HTTP, or all. */
  release(count = 1): void {
    while (count-- > 0 && this.#held.length > 0) {
      this.#held.splice(Math.floor(this.#random() * this.#held.length), 1)[0]?.();
    }
  }

  check(): void {
    assert.deepEqual(this.violations, []);
    const pending = Array.from({ length: this.calls }, (_, n) => n).filter((n) => !this.outcomes.has(n));
    assert.deepEqual(pending, [], "mutations that never end");
    for (const [index, list] of LISTS.entries()) {
      const entries = this.server.lists.get(list) ?? [];
      const numbers = entries.map(({ n }) => n);
      assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b), "each once and in order");
      const done = [...this.outcomes].filter(([n, outcome]) =>
        outcome === "done" && n % LISTS.length === index
      );
      assert.deepEqual(done.filter(([n]) => !numbers.includes(n)), [], "resolved, but it never ran");
      assert.deepEqual(this.#shown.get(list) ?? [], entries);
    }
  }

  async #fetch(request: Request): Promise<Response> {
    const kind = new URL(request.url).pathname.slice("/api/".length);
    const { args = {} } = request.method === "POST" ? await request.json() : {};
    await this.#way();
    if (this.#fails()) throw new TypeError("lost on the way there");
    const name = String(request.headers.get("Syncline-Request"));
    const answer = kind === "health" ? new Response() : this.#answer(kind, { name, args });
    await this.#way();
    if (this.#fails()) throw new TypeError("lost on the way back");
    request.signal.throwIfAborted();
    if (request.headers.has("Syncline-Request")) answer.headers.set("Syncline-Request", "recognised");
    return answer;
  }

  #answer(
    kind: string,
    { name, args }: { readonly name: string; readonly args: Record<string, unknown> },
  ): Response {
    if (kind === "query") {
      const value = this.server.lists.get(String(args["list"])) ?? [];
      return Response.json({ status: "success", value, logLines: [] });
    }
    const response = this.server.mutateOverHttp(name, args);
    return response.success
      ? Response.json({ status: "success", value: response.result, ts: response.ts, logLines: [] })
      : Response.json({ status: "error", errorMessage: "no", errorData: null, logLines: [] }, {
        status: 500,
      });
  }

  #way(): Promise<void> {
    if (this.#random() < 0.6) return Promise.resolve();
    return new Promise((arrive) => this.#held.push(arrive));
  }

  #fails(): boolean {
    return !this.http || (this.faulty && this.#random() < 0.04);
  }
}

/** Steps of all kinds, then a quiet period over one of the two connections. */
async function run(seed: number): Promise<World> {
  const random = randomOf(seed);
  const world = new World(random);
  for (let step = 0; step < STEPS; step++) {
    const choice = random();
    if (choice < 0.25) world.call();
    else if (choice < 0.35) world.sockets = random() < 0.4;
    else if (choice < 0.4) world.http = random() < 0.8;
    else if (choice < 0.5) world.connect();
    else if (choice < 0.55 || !world.sockets) world.cut();
    else if (choice < 0.75) world.carry(0.7);
    if (random() < 0.3) world.release();
    if (random() < 0.3) {
      // For two seconds a write over HTTP waits until the socket shows it: no message may be delayed for that long.
      await turns();
      world.carry(1);
      await world.clock.advance(random() * 4_000);
    }
    await turns();
  }
  world.http = true;
  world.faulty = false;
  world.sockets = random() < 0.5;
  if (!world.sockets) world.cut();
  for (let round = 0; round < 60 || (round < 300 && world.outcomes.size < world.calls); round++) {
    world.connect();
    world.release(100);
    await turns();
    world.carry(1);
    await world.clock.advance(500);
  }
  world.client.close();
  return world;
}

Deno.test("mutations survive a failing socket and failing HTTP", async () => {
  const firstSeed = Math.floor(Math.random() * 2 ** 31);
  const outcomes = { done: 0, failed: 0, lost: 0 };
  for (let seed = firstSeed; seed < firstSeed + 6; seed++) {
    const world = await run(seed);
    try {
      world.check();
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    for (const outcome of world.outcomes.values()) outcomes[outcome]++;
  }
  assert(outcomes.done > 50 && outcomes.failed > 0 && outcomes.lost === 0, JSON.stringify(outcomes));
});
