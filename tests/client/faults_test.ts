/**
 * Clients and a model server on lines that lose messages in flight: every mutation runs once, in order, and is visible
 * when its promise resolves; subscriptions are consistent at every moment and right in the end.
 */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { FakeClock, settle } from "./support/fake_clock.ts";
import { FakeSockets } from "./support/fake_socket.ts";
import { type Entry, type Line, ModelServer } from "./support/model_server.ts";
import { randomOf } from "./support/random.ts";

const LISTS = ["a", "b", "c"];

/** A client with its operations and results. */
class Actor {
  readonly name: string;
  readonly client: SynclineClient;
  readonly sockets = new FakeSockets();
  readonly #random: () => number;
  readonly #shown = new Map<string, readonly Entry[]>();
  readonly #ends = new Map<string, () => void>();
  line: Line | null = null;
  #next = 0;
  /** Numbers of mutations that must have run, by list, in order. */
  readonly expected = new Map<string, number[]>(LISTS.map((list) => [list, []]));
  resolved = 0;
  rejected = 0;
  /** Violated rules of the contract. */
  readonly violations: string[] = [];

  constructor(name: string, { clock, random }: { clock: FakeClock; random: () => number }) {
    this.name = name;
    this.#random = random;
    this.client = new SynclineClient("http://model.test", {
      polling: false,
      webSocket: this.sockets.factory,
      clock,
      random,
    });
  }

  /** Subscribes to a list, or ends the subscription. */
  toggle(list: string): void {
    const end = this.#ends.get(list);
    if (end !== undefined) {
      end();
      this.#ends.delete(list);
      this.#shown.delete(list);
      return;
    }
    const count = this.client.watchQuery("count", { list });
    const endCount = count.onUpdate(() => {});
    const endList = this.client.subscribe("list", { list }, (value) => {
      const entries = value as Entry[];
      this.#shown.set(list, entries);
      const known = entries.filter(({ _id }) => _id.startsWith("e"));
      const expectedCount = count.localResult();
      // Right after subscribing one of the two may be here from another subscription of the same turn.
      if (expectedCount !== undefined) {
        assert.equal(known.length, expectedCount, "results of two moments mixed");
      }
    });
    this.#ends.set(list, () => {
      endCount();
      endList();
    });
  }

  mutate(): void {
    const list = LISTS[Math.floor(this.#random() * LISTS.length)] ?? "a";
    const n = this.#next++;
    const fail = this.#random() < 0.05;
    if (!fail) this.expected.get(list)?.push(n);
    const local: Entry = { _id: `local${n}`, author: this.name, n };
    this.client.mutation("append", { list, author: this.name, n, fail }, {
      optimisticUpdate: (store) => {
        const shown = store.getQuery("list", { list }) as Entry[] | undefined;
        if (shown !== undefined) store.setQuery("list", { list }, [...shown, local]);
      },
    }).then((id) => {
      this.resolved++;
      this.#claim(!fail, "a mutation that failed resolved");
      const shown = this.#shown.get(list);
      if (shown === undefined) return;
      this.#claim(shown.some(({ _id }) => _id === id), `${id} is not visible when its promise resolves`);
      this.#claim(!shown.some(({ _id }) => _id === local._id), "the optimistic entry is still there");
    }, (error: Error) => {
      this.rejected++;
      this.#claim(fail && error.message === `failed ${n}`, String(error));
    });
  }

  #claim(holds: boolean, what: string): void {
    if (!holds) this.violations.push(`${this.name}: ${what}`);
  }

  get mutations(): number {
    return this.#next;
  }

  /** Entries in the client, by subscribed list. */
  get shown(): ReadonlyMap<string, readonly Entry[]> {
    return this.#shown;
  }

  get subscribed(): Iterable<string> {
    return this.#ends.keys();
  }
}

/** Runs clients against the model until all mutations are answered. */
async function run({ seed, mutations, cuts }: { seed: number; mutations: number; cuts: number }) {
  const random = randomOf(seed);
  const clock = new FakeClock();
  const server = new ModelServer();
  const actors = ["x", "y", "z"].map((name) => new Actor(name, { clock, random }));
  // Starts a mutation in about every eighth step.
  const cutShare = cuts / (mutations * 8);
  let mutated = 0;
  let cut = 0;

  const connect = (actor: Actor) => {
    const { phase } = actor.client.connectionState();
    if (phase !== "connecting" || actor.line?.socket === actor.sockets.last) return;
    if (actor.line !== null) server.cut(actor.line);
    actor.line = null;
    if (random() < 0.1) return actor.sockets.last.closeWith(1006);
    actor.line = server.accept(actor.sockets.last);
    actor.sockets.last.open();
  };
  const lose = (actor: Actor) => {
    if (actor.line === null) return;
    cut++;
    const { socket } = actor.line;
    server.cut(actor.line);
    actor.line = null;
    // Some connections just fall silent, which the client must detect.
    if (random() < 0.7) socket.closeWith(random() < 0.3 ? 1012 : 1006);
  };
  const carry = (actor: Actor) => {
    const { line } = actor;
    if (line === null) return;
    line.toServer.push(...line.socket.take());
    const choice = random();
    if (choice < 0.45) server.handle(line);
    else if (choice < 0.6) server.push(line);
    else {
      const message = line.toClient.shift();
      if (message !== undefined) line.socket.receive(message);
    }
  };

  const open = () => actors.some(({ client }) => client.connectionState().inflightMutations > 0);
  const done = () => actors.reduce((sum, actor) => sum + actor.resolved + actor.rejected, 0);
  for (let step = 0; mutated < mutations || open() || done() < mutations; step++) {
    assert(step < mutations * 400, "the clients do not come to an end");
    const actor = actors[Math.floor(random() * actors.length)];
    if (actor === undefined) continue;
    connect(actor);
    const choice = random();
    if (choice < 0.12 && mutated < mutations) {
      mutated++;
      actor.mutate();
    } else if (choice < 0.125 && mutated < mutations) {
      actor.toggle(LISTS[Math.floor(random() * LISTS.length)] ?? "a");
    } else if (choice < 0.125 + cutShare && mutated < mutations) lose(actor);
    else carry(actor);
    if (random() < 0.05) await clock.advance(Math.floor(random() ** 4 * 10_000));
    if (random() < 0.3) await settle();
  }
  for (let round = 0; round < 400; round++) {
    for (const actor of actors) {
      connect(actor);
      for (let turn = 0; turn < 20; turn++) carry(actor);
    }
    await clock.advance(200);
  }
  for (const { client } of actors) client.close();
  return { server, actors, cut };
}

function check({ server, actors }: Awaited<ReturnType<typeof run>>): void {
  for (const times of server.runs.values()) assert.equal(times, 1, "a mutation ran more than once");
  for (const actor of actors) {
    assert.deepEqual(actor.violations, []);
    assert.equal(actor.resolved + actor.rejected, actor.mutations);
    for (const list of LISTS) {
      const ran = (server.lists.get(list) ?? []).filter(({ author }) => author === actor.name).map(({ n }) =>
        n
      );
      assert.deepEqual(ran, actor.expected.get(list), `order of ${actor.name} in ${list}`);
    }
    for (const list of actor.subscribed) {
      assert.deepEqual(actor.shown.get(list), server.lists.get(list) ?? [], `${actor.name} shows ${list}`);
    }
  }
}

Deno.test("mutations over failing connections run exactly once, in order, and are visible when they resolve", async () => {
  const firstSeed = Math.floor(Math.random() * 2 ** 31);
  for (let seed = firstSeed; seed < firstSeed + 6; seed++) {
    try {
      const outcome = await run({ seed, mutations: 300, cuts: 60 });
      assert(outcome.cut > 10, "hardly any line was cut");
      check(outcome);
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }
});
