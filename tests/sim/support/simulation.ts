/**
 * The simulation: the real hub and the real engine, with clock, sockets and deaths in the hands of a seed, many model
 * clients, and an oracle that checks the state after each step.
 */
import assert from "node:assert/strict";
import { Hub } from "../../../mod/sync/hub.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { settle } from "../../sync/support/test_socket.ts";
import { anyMutation, anySubscription } from "./asked.ts";
import { EngineHost } from "./engine_host.ts";
import { Oracle } from "./oracle.ts";
import { Random } from "./random.ts";
import { SimAuthenticator, tokens } from "./sim_authenticator.ts";
import { SimClient } from "./sim_client.ts";

/** Possible events of a step, with their relative frequency. */
const weights = {
  connect: 6,
  add: 6,
  remove: 3,
  addAndRemove: 1,
  mutate: 14,
  repeat: 1,
  act: 2,
  authenticate: 3,
  endSession: 1,
  drop: 1,
  misbehave: 0.2,
  toServer: 22,
  toClient: 26,
  stall: 1,
  verify: 6,
  commit: 12,
  commitUnreported: 2,
  writerDies: 1,
  pin: 14,
  answer: 26,
  readerDies: 1,
  reload: 0.1,
  time: 6,
  longTime: 0.3,
  rest: 0.5,
} as const;

export type EventKind = keyof typeof weights;

export interface SimulationOptions {
  readonly seed: number;
  readonly steps: number;
  readonly clients?: number;
  /** Deeds that do not happen: to find out which ones a failure needs. */
  readonly without?: ReadonlySet<EventKind>;
  /** Records mutations without their caller, a planted bug. */
  readonly forgetCaller?: boolean;
}

/** A broken promise, with what brings it about again. */
export class Violation extends Error {
  readonly seed: number;
  readonly step: number;

  constructor(seed: number, { step, cause }: { readonly step: number; readonly cause: unknown }) {
    super(`seed ${seed}, step ${step}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.name = "Violation";
    this.seed = seed;
    this.step = step;
  }
}

export interface SimulationReport {
  readonly steps: number;
  readonly commits: number;
  readonly transitions: number;
}

/** Runs one seed to its end. Throws a {@linkcode Violation} at the first broken promise. */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  using simulation = new Simulation(options);
  for (let step = 0; step < options.steps; step++) {
    try {
      await simulation.step();
    } catch (cause) {
      throw new Violation(options.seed, { step, cause });
    }
  }
  try {
    await simulation.end();
  } catch (cause) {
    throw new Violation(options.seed, { step: options.steps, cause });
  }
  return simulation.report(options.steps);
}

class Simulation implements Disposable {
  readonly #random: Random;
  readonly #oracle = new Oracle();
  readonly #clock = new FakeClock();
  readonly #authenticator = new SimAuthenticator();
  readonly #host: EngineHost;
  readonly #hub: Hub;
  readonly #clients: SimClient[];
  readonly #kinds: readonly (readonly [kind: EventKind, weight: number])[];
  readonly #weight: number;

  constructor({ seed, clients, without, forgetCaller = false }: SimulationOptions) {
    const random = this.#random = new Random(seed);
    const readers = 1 + random.below(3);
    this.#host = new EngineHost({ random, oracle: this.#oracle, readers, forgetCaller });
    this.#hub = new Hub({
      host: this.#host,
      authenticator: this.#authenticator,
      dev: false,
      clock: this.#clock,
      later: queueMicrotask,
    });
    this.#clients = Array.from({ length: clients ?? 2 + random.below(7) }, (_, i) =>
      new SimClient({
        hub: this.#hub,
        oracle: this.#oracle,
        sessionId: `00000000-0000-4000-8000-00000000000${i}`,
        diffs: random.chance(0.7),
      }));
    // Each seed makes some events rare and others frequent.
    this.#kinds = (Object.entries(weights) as [EventKind, number][])
      .map(([kind, weight]): [EventKind, number] => [kind, weight * random.pick([0.2, 1, 1, 1, 3])])
      .filter(([kind]) => !without?.has(kind));
    this.#weight = this.#kinds.reduce((sum, [, weight]) => sum + weight, 0);
  }

  [Symbol.dispose](): void {
    this.#host[Symbol.dispose]();
  }

  report(steps: number): SimulationReport {
    const transitions = this.#clients.reduce((sum, client) => sum + client.transitions, 0);
    return { steps, commits: this.#oracle.ts, transitions };
  }

  async step(): Promise<void> {
    let at = this.#random.next() * this.#weight;
    const [kind] = this.#kinds.find(([, weight]) => (at -= weight) < 0) ?? ["answer"];
    await this.#do(kind);
    await settle();
    this.#hub.validate();
  }

  /** Runs all remaining steps, then removes all clients: nothing may be left. */
  async end(): Promise<void> {
    await this.#rest();
    for (const client of this.#clients) client.drop();
    await this.#rest();
    this.#hub.validate();
    assert.equal(this.#hub.load.sockets, 0);
    assert.equal(this.#hub.load.subscriptions, 0, "subscriptions of sockets that have gone");
    assert.equal(this.#clock.timers, 0, "timers of sockets that have gone");
  }

  async #do(kind: EventKind): Promise<void> {
    const random = this.#random;
    const client = random.pick(this.#clients);
    switch (kind) {
      case "connect":
        if (client.connection === null) client.connect();
        return;
      case "add":
        if (client.open && client.wanted.size < 8) {
          client.add(Array.from({ length: 1 + random.below(3) }, () => anySubscription(random)));
        }
        return;
      case "remove":
        if (client.open && client.wanted.size > 0) client.remove([random.pick([...client.wanted.keys()])]);
        return;
      case "addAndRemove":
        if (client.open) client.addAndRemove(anySubscription(random));
        return;
      case "mutate":
        if (client.open) { for (let i = random.below(4); i >= 0; i--) client.mutate(...anyMutation(random)); }
        return;
      case "repeat": {
        const waiting = [...client.mutations.values()];
        if (client.open && waiting.length > 0) client.repeat(random.pick(waiting));
        return;
      }
      case "act":
        if (client.open) client.act({ n: random.below(9) });
        return;
      case "authenticate":
        if (client.open) client.authenticate(random.pick([null, "rubbish", ...tokens, ...tokens]));
        return;
      case "endSession": {
        const all = ["s1", "s2", "s3", "s4"];
        const inUse = all.filter((known) => this.#clients.some((member) => member.knownIn(known)));
        const session = random.pick(inUse.length > 0 && random.chance(0.7) ? inUse : all);
        if (this.#authenticator.ended.delete(session)) return;
        const members = this.#clients.filter((member) => member.knownIn(session));
        this.#authenticator.end(session);
        for (const member of members) member.checkSessionEnded();
        return;
      }
      case "drop":
        client.drop();
        return;
      case "misbehave":
        if (client.open) {
          client.misbehave(random.pick(["{", '{"type":"Nonsense"}', "[]", '{"type":"Connect"}']));
        }
        return;
      case "toServer":
        client.connection?.socket.deliverToServer(1 + random.below(5));
        return;
      case "toClient":
        if (client.connection?.socket.stalled === false) client.read(1 + random.below(5));
        return;
      case "stall":
        if (client.connection !== null) client.connection.socket.stalled = random.chance(0.6);
        return;
      case "verify":
        this.#authenticator.step();
        return;
      case "commit":
        this.#host.commit({ count: 1 + random.below(6), report: true });
        return;
      case "commitUnreported":
        this.#host.commit({ count: 1 + random.below(6), report: false });
        return;
      case "writerDies":
        this.#host.dieBeforeCommit(1 + random.below(6));
        return;
      case "pin":
        this.#host.pin();
        return;
      case "answer":
        this.#host.answer();
        return;
      case "readerDies":
        this.#host.killReader();
        return;
      case "reload":
        this.#host.reload();
        return;
      case "time":
        this.#clock.move(1 + random.below(200));
        return;
      case "longTime":
        client.answersPings = random.chance(0.8);
        this.#clock.move(random.pick([1_500, 15_000, 20_000]));
        return;
      case "rest":
        await this.#rest();
        return;
      default:
        kind satisfies never;
    }
  }

  /** Runs all possible steps, then checks for missing results. */
  async #rest(): Promise<void> {
    for (let round = 0; this.#busy(); round++) {
      assert.ok(round < 5_000, "it does not come to rest");
      this.#authenticator.step();
      for (const client of this.#clients) {
        if (client.connection === null) continue;
        client.connection.socket.stalled = false;
        client.connection.socket.deliverToServer(10);
        client.read(10);
      }
      this.#host.pin();
      this.#host.answer();
      this.#host.commit({ count: 10, report: true });
      await settle();
      // A timer checks whether buffers have drained.
      this.#clock.move(20);
      await settle();
    }
    for (const client of this.#clients) client.checkAtRest();
  }

  #busy(): boolean {
    return this.#authenticator.busy || this.#host.busy || this.#hub.busy ||
      this.#clients.some(({ connection }) => connection?.socket.busy);
  }
}
