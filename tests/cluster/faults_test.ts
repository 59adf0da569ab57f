/**
 * Three server processes with injected faults, and clients that write and subscribe.
 *
 * `deno task test:long cluster` runs 200 failovers with 64 clients. The default is a few random ones. Environment
 * variables: `SYNCLINE_CLUSTER_TAKEOVERS` sets their number, `SYNCLINE_CLUSTER_SEED` the seed, `SYNCLINE_CLUSTER_KINDS` the
 * kinds (names of `support/faults.ts`, separated by commas), and `SYNCLINE_CLUSTER_CLIENTS` the number of clients. The history
 * of faults and log lines is written to the file `SYNCLINE_CLUSTER_HISTORY`, and printed after a failure.
 */
import assert from "node:assert/strict";
import { found, until } from "../support/waiting.ts";
import { Audit } from "./support/audit.ts";
import { Clients } from "./support/clients.ts";
import { chosen, type FaultName, FAULTS, namedFaults } from "./support/faults.ts";
import { Figures } from "./support/figures.ts";
import { History } from "./support/history.ts";
import { isLongRun } from "../support/long_runs.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";
import { ProcessRig } from "./support/server_processes.ts";

const TAKEOVERS = Number(Deno.env.get("SYNCLINE_CLUSTER_TAKEOVERS") ?? (isLongRun ? 200 : 3));
const SEED = Number(Deno.env.get("SYNCLINE_CLUSTER_SEED") ?? (isLongRun ? 1 : anySeed()));
const CLIENTS = Number(Deno.env.get("SYNCLINE_CLUSTER_CLIENTS") ?? (isLongRun ? 64 : 4));
const KINDS = namedFaults(Deno.env.get("SYNCLINE_CLUSTER_KINDS") ?? "");
/** Failovers between faults that need none, and between audits of all data. */
const OTHERS_EVERY = Math.min(8, TAKEOVERS);
const AUDIT_EVERY = 20;
/** Number of failovers for measurements on an otherwise idle machine. */
const IS_LONG = TAKEOVERS >= 100;
const KILL_MS_MAX = 5_000;
const HISTORY_LINES = 200;

function numbers(seed: number): (below: number) => number {
  let state = seed * 2654435761 >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}

/** Adds the fault to an error. */
function anySeed(): number {
  return crypto.getRandomValues(new Uint16Array(1))[0] ?? 1;
}

/** Shuffles with equal probabilities. */
function shuffled<Item>(items: readonly Item[], pick: (below: number) => number): Item[] {
  const left = [...items];
  return items.flatMap(() => left.splice(pick(left.length), 1));
}

/** Each kind once, in any order, then random ones. Some takeovers are followed by another fault, which also occurs alone. */
function* schedule(pick: (below: number) => number): Generator<FaultName> {
  const others = chosen(KINDS, false);
  const named = chosen(KINDS, true);
  const takeovers = named.length === 0 ? others.splice(0) : named;
  const firsts = shuffled([...new Set(takeovers)], pick);
  const firstOthers = shuffled([...new Set(others)], pick);
  for (let n = 0; n < TAKEOVERS; n++) {
    const name = firsts[n] ?? takeovers[pick(takeovers.length)];
    if (name !== undefined) yield name;
    const other = firstOthers.shift() ?? others[pick(others.length)];
    if (n % OTHERS_EVERY === OTHERS_EVERY - 1 && other !== undefined) yield other;
  }
}

class Run {
  readonly history = new History();
  readonly figures = new Figures();
  readonly #pick = numbers(SEED);
  readonly #postgres: TestPostgres;
  readonly #rig: ProcessRig;
  readonly #clients: Clients;
  readonly #audit: Audit;
  takeovers = 0;

  constructor({ postgres, rig, clients }: {
    readonly postgres: TestPostgres;
    readonly rig: ProcessRig;
    readonly clients: Clients;
  }) {
    this.#postgres = postgres;
    this.#rig = rig;
    this.#clients = clients;
    this.#audit = new Audit(clients);
  }

  async all(): Promise<void> {
    try {
      for (const name of schedule(this.#pick)) {
        await this.#one(name);
        if (FAULTS[name].takesOver && ++this.takeovers % AUDIT_EVERY === 0) {
          await this.#audit.check(this.#rig.servers);
        }
      }
      await this.#clients.end();
      await this.#audit.check(this.#rig.servers, { all: true });
      this.#assertNoFaults();
    } catch (error) {
      const what = `seed ${SEED}, kinds ${KINDS}, behind ${this.takeovers} takeovers`;
      throw new Error(`${what}: ${error}\n${this.history.last(HISTORY_LINES)}`, { cause: error });
    } finally {
      const path = Deno.env.get("SYNCLINE_CLUSTER_HISTORY");
      if (path !== undefined) await Deno.writeTextFile(path, this.history.last(Infinity));
    }
  }

  async #one(name: FaultName): Promise<void> {
    const clients = this.#clients;
    await this.#writesContinue(2 * CLIENTS, "before");
    const leader = await found(() => this.#rig.leader(), { what: "there is a leader" });
    const note = (line: string) => this.history.note(line);
    note(`-- ${name}: ${leader.name} leads`);
    clients.takeWrites();
    const mend = await FAULTS[name].inflict({
      rig: this.#rig,
      postgres: this.#postgres,
      clients,
      leader,
      pick: this.#pick,
      note,
    });
    if (FAULTS[name].takesOver) {
      const next = await found(
        async () => {
          const leads = await this.#rig.leader({ but: leader });
          return leads ?? (clients.faults.length > 0 ? leader : null);
        },
        { what: `another server leads after ${name}` },
      );
      note(`   ${next.name} leads`);
    }
    await this.#writesContinue(2 * CLIENTS, `behind ${name}`);
    await mend();
    await until(async () => await this.#rig.allServe(), { what: "all servers serve" });
    const writes = clients.takeWrites();
    note(`   without writes for ${Math.round(writes.longestMs)} ms`);
    this.figures.add(name, writes);
    this.#assertNoFaults();
  }

  async #writesContinue(count: number, when: string): Promise<void> {
    const clients = this.#clients;
    const before = clients.count;
    await until(() => clients.count > before + count || clients.faults.length > 0, {
      what: `writes continue ${when}`,
    });
  }

  #assertNoFaults(): void {
    assert.deepEqual(this.#clients.faults.slice(0, 5), []);
  }
}

Deno.test({
  ...needs(
    postgres,
    "[PG1] [PG3] [PG6] [PG7] [PG8] [PG13] [PG16] [PG21] after kills, freezes, stops and cut connections, no write is lost " +
      "or repeated, and no client sees an older state",
  ),
  // Killed servers leave resources open.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using postgres = await TestPostgres.start();
    let note: (line: string) => void = () => {};
    await using rig = await ProcessRig.start(await postgres.database(), 3, {
      onLeadershipLog: (line) => note(line),
    });
    const [first, ...others] = rig.servers;
    await first?.start();
    await Promise.all(others.map((server) => server.start()));
    await using clients = new Clients(rig.servers);
    const run = new Run({ postgres, rig, clients });
    note = (line) => run.history.note(line);
    await clients.begin({ writers: CLIENTS, watchers: CLIENTS });
    await run.all();
    assert.ok(clients.seen > CLIENTS, "watchers saw what was written");
    assert.equal(clients.answeredBy.size, rig.servers.length, "writes went by every server");
    const { takeovers, figures } = run;
    if (takeovers > 4) {
      // deno-lint-ignore no-console -- shows how long no write was acknowledged in long runs
      console.log(`seed ${SEED}, ${takeovers} takeovers, ${clients.count} writes\n${figures}`);
    }
    if (!IS_LONG) return;
    const killMs = figures.pauseMs("kill", 99) ?? 0;
    assert.ok(killMs <= KILL_MS_MAX, `after a kill nothing was written for ${killMs} ms`);
  },
});
