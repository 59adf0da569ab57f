/**
 * The simulation of a cluster: two servers, each with a hub and an engine, on one log with faults, model clients that switch
 * between them, and an oracle that receives the log's rows. A seed controls the clock, sockets, links, statements and
 * process deaths.
 */
import assert from "node:assert/strict";
import { type JournalRow, openWriterDatabase, startClusterHistory } from "../../../mod/engine/mod.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { settle } from "../../sync/support/test_socket.ts";
import { anyMutation, anySubscription } from "../support/asked.ts";
import { compareAnswer, schema } from "../support/engine_runs.ts";
import { Oracle } from "../support/oracle.ts";
import { Random } from "../support/random.ts";
import { SimAuthenticator, tokens } from "../support/sim_authenticator.ts";
import { SimClient } from "../support/sim_client.ts";
import { type SimulationReport, Violation } from "../support/simulation.ts";
import type { RunCall } from "./cluster_host.ts";
import { SharedLog, type SimConnection } from "./shared_log.ts";
import { SimServer } from "./sim_server.ts";

/** Possible events of a step, with their relative frequency. */
const weights = {
  connect: 8,
  add: 6,
  remove: 2,
  mutate: 14,
  repeat: 1,
  /** A mutation without writes and without a request id, like over HTTP: its group has no row. */
  readOnce: 5,
  authenticate: 2,
  drop: 0.7,
  /** A client switches to another server. */
  hop: 4,
  toServer: 24,
  toClient: 28,
  verify: 6,
  pin: 14,
  answer: 26,
  readerDies: 0.5,
  commit: 14,
  writerDies: 0.4,
  /** The database answers the oldest request, or executes it without a response yet. */
  database: 50,
  databaseLate: 8,
  /** Data in transit on a broken connection still arrives. */
  arrives: 4,
  cut: 1,
  /** The connections of a server break while a row is in transit. */
  cutRow: 4,
  away: 0.6,
  back: 1.5,
  pull: 14,
  tend: 8,
  carry: 18,
  linkBreaks: 0.5,
  kill: 0.6,
  start: 4,
  time: 8,
  /** Longer than a lease. */
  longTime: 1.5,
  /** Jumps of the clock of the database, by which leases expire. */
  clockJumps: 0.3,
  rest: 0.2,
} as const;

type EventKind = keyof typeof weights;

export interface ClusterSimulationOptions {
  readonly seed: number;
  readonly steps: number;
  /** A planted bug: sockets are accepted immediately, regardless of what their clients have seen elsewhere. */
  readonly letsInAtOnce?: boolean;
}

export interface ClusterReport extends SimulationReport {
  readonly takeovers: number;
  /** Rows that were in the log although their commit was not reported to the caller. */
  readonly foundLater: number;
  /** Mutations that were rejected, or whose outcome was unknown then. */
  readonly unreported: number;
  /** Refused rows of a leader whose lease had expired. */
  readonly fenced: number;
  /** Jumps of the database's clock while a server had the lease. */
  readonly jumps: number;
}

/** Runs one seed to its end. Throws a {@linkcode Violation} at the first violated guarantee. */
export async function simulateCluster(options: ClusterSimulationOptions): Promise<ClusterReport> {
  const { seed, steps } = options;
  using simulation = new ClusterSimulation(options);
  for (let step = 0; step <= steps; step++) {
    try {
      await (step === steps ? simulation.rest() : simulation.step());
    } catch (cause) {
      throw new Violation(seed, { step, cause });
    }
  }
  return simulation.report(steps);
}

class ClusterSimulation implements Disposable {
  readonly #random: Random;
  readonly #oracle = new Oracle();
  readonly #clock = new FakeClock();
  readonly #authenticator = new SimAuthenticator();
  readonly #folder = new TempFolder();
  readonly #log: SharedLog;
  readonly #servers: readonly SimServer[];
  readonly #clients: readonly SimClient[];
  readonly #kinds: readonly (readonly [kind: EventKind, weight: number])[];
  readonly #weight: number;
  /** The contents of rows by their hashes, and the servers that have not reported their own copy as absent. */
  readonly #sealed = new Map<string, { readonly group: readonly RunCall[]; readonly by: Set<string> }>();
  /** Mutations whose caller received no outcome. */
  readonly #uncertain = new Set<string>();
  /** Mutations that were answered as failures without a record. */
  readonly #failed = new Set<string>();
  /** Mutations that one socket has sent several times. */
  readonly #repeated = new Set<string>();
  /** Statements that may arrive late. */
  #late: (() => void)[] = [];
  #terms = 0;
  #foundLater = 0;
  #takeovers = 0;

  constructor({ seed, letsInAtOnce = false }: ClusterSimulationOptions) {
    const random = this.#random = new Random(seed);
    const { generation, ...first } = this.#makeDatabases();
    this.#log = new SharedLog({ clock: this.#clock, first, onAdded: (row) => this.#added(row) });
    this.#servers = ["a", "b"].map((name) =>
      new SimServer({
        name,
        path: this.#folder.at(`${name}.db`),
        clock: this.#clock,
        random,
        log: this.#log,
        authenticator: this.#authenticator,
        generation,
        firstSeq: first.seq,
        waits: !letsInAtOnce,
        onPrepared: ({ sum }, group) => {
          // A caller without the response may repeat its call, here or at another server: it may result in the very same row.
          const { by } = this.#sealed.get(sum) ?? { by: new Set() };
          this.#sealed.set(sum, { group, by: by.add(name) });
        },
        onRefused: (calls, { row, known }) => {
          if (known) this.#sealed.get(row.sum)?.by.delete(name);
          for (const { replay } of calls) if (replay !== undefined) this.#uncertain.add(nameOf(replay));
        },
      })
    );
    this.#clients = Array.from({ length: 2 + random.below(4) }, (_, i) =>
      new SimClient({
        oracle: this.#oracle,
        sessionId: `00000000-0000-4000-8000-00000000000${i}`,
        diffs: random.chance(0.7),
        overtaking: true,
        // A client that does not report its ts relies on the read barrier of its server.
        reportsObserved: i % 2 === 0,
        mayFail: (replay, errorData) => {
          // Its caller may consider it rolled back: it must not be committed later.
          if (!this.#repeated.has(nameOf(replay))) this.#failed.add(failedName(replay));
          return isUnavailable(errorData);
        },
      }));
    this.#kinds = (Object.entries(weights) as [EventKind, number][])
      .map(([kind, weight]) => [kind, weight * random.pick([0.2, 1, 1, 1, 3])]);
    this.#weight = this.#kinds.reduce((sum, [, weight]) => sum + weight, 0);
    for (const server of this.#servers) server.start();
  }

  [Symbol.dispose](): void {
    for (const server of this.#servers) server[Symbol.dispose]();
    this.#folder[Symbol.dispose]();
  }

  report(steps: number): ClusterReport {
    const transitions = this.#clients.reduce((sum, client) => sum + client.transitions, 0);
    const commits = this.#oracle.ts;
    const unreported = this.#uncertain.size;
    const { fenced, jumps } = this.#log;
    return {
      ...{ steps, commits, transitions, takeovers: this.#takeovers },
      ...{ foundLater: this.#foundLater, unreported, fenced, jumps },
    };
  }

  async step(): Promise<void> {
    let at = this.#random.next() * this.#weight;
    const [kind] = this.#kinds.find(([, weight]) => (at -= weight) < 0) ?? ["answer"];
    await this.#do(kind);
    await this.#settle();
  }

  /** Repairs all faults, runs all remaining steps, and checks both servers for missing results. */
  async rest(): Promise<void> {
    for (let round = 0; !this.#isAtRest(); round++) {
      assert.ok(round < 3_000, "it does not come to rest");
      this.#authenticator.step();
      for (const late of this.#late.splice(0)) late();
      for (const [index, server] of this.#servers.entries()) {
        server.start();
        for (const connection of [server.connection, server.rowsConnection]) {
          connection.away = false;
          for (let n = 0; n < 5; n++) connection.step();
        }
        if (round % 10 === 0) server.tend();
        server.pull();
        this.#follow(server);
        server.link?.carry(100);
        server.served?.host.pin();
        server.served?.host.answer();
        server.served?.host.commit(10);
        for (const client of this.#clients.filter((_, i) => i % this.#servers.length === index)) {
          this.#letIn(client, server);
        }
      }
      for (const client of this.#clients) {
        client.connection?.socket.deliverToServer(10);
        client.read(10);
      }
      await this.#settle();
      this.#clock.move(20);
      await this.#settle();
    }
    for (const server of this.#servers) {
      assert.equal(server.served?.host.ts, this.#oracle.ts, `${server.name} shows all there is`);
    }
    for (const client of this.#clients) client.checkAtRest();
  }

  async #do(kind: EventKind): Promise<void> {
    const random = this.#random;
    const client = random.pick(this.#clients);
    const server = random.pick(this.#servers);
    const { served } = server;
    switch (kind) {
      case "connect":
        return this.#letIn(client, server);
      case "add":
        if (client.open && client.wanted.size < 6) client.add([anySubscription(random)]);
        return;
      case "remove":
        if (client.open && client.wanted.size > 0) client.remove([random.pick([...client.wanted.keys()])]);
        return;
      case "mutate":
        if (client.open) { for (let i = random.below(4); i >= 0; i--) client.mutate(...anyMutation(random)); }
        return;
      case "repeat": {
        const waiting = [...client.mutations.values()];
        if (!client.open || waiting.length === 0) return;
        const mutation = random.pick(waiting);
        this.#repeated.add(nameOf({ sessionId: client.options.sessionId, requestId: mutation.requestId }));
        return client.repeat(mutation);
      }
      case "readOnce":
        return this.#readOnce(server);
      case "authenticate":
        if (client.open) client.authenticate(random.pick([null, ...tokens]));
        return;
      case "drop":
        return client.drop();
      case "hop": {
        const other = this.#servers.find(({ served: there }) =>
          there !== null && there.hub !== client.connection?.socket.hub
        );
        client.drop();
        return other && this.#letIn(client, other);
      }
      case "toServer":
        return client.connection?.socket.deliverToServer(1 + random.below(5));
      case "toClient":
        return client.read(1 + random.below(5));
      case "verify":
        return this.#authenticator.step();
      case "pin":
        return served?.host.pin();
      case "answer":
        return served?.host.answer();
      case "readerDies":
        return served?.host.killReader();
      case "commit":
        return served?.host.commit(1 + random.below(6));
      case "writerDies":
        if (served !== null) served.host.diesWhenAppended = true;
        return;
      case "database":
        return this.#anyConnection(server).step();
      case "databaseLate":
        return this.#anyConnection(server).execute();
      case "arrives": {
        const { seq } = this.#log.end;
        this.#late.shift()?.();
        if (this.#log.end.seq > seq) this.#foundLater++;
        return;
      }
      case "cut":
        return this.#cut(server);
      case "cutRow":
        for (const one of this.#servers) if (one.rowsConnection.busy) this.#cut(one);
        return;
      case "away":
        for (const connection of [server.connection, server.rowsConnection]) connection.away = true;
        return this.#cut(server);
      case "back":
        for (const connection of [server.connection, server.rowsConnection]) connection.away = false;
        return;
      case "pull":
        return server.pull();
      case "tend":
        server.tend();
        return this.#follow(server);
      case "carry":
        return server.link?.carry(1 + random.below(4));
      case "linkBreaks":
        return server.link?.cut();
      case "kill":
        return this.#kill(server);
      case "start":
        return server.start();
      case "time":
        return this.#clock.move(1 + random.below(200));
      case "longTime":
        return this.#clock.move(random.pick([1_500, 3_500, 16_000]));
      case "clockJumps":
        return this.#log.setClock(random.pick([-20_000, -1_000, 0, 1_000, 20_000]));
      case "rest":
        return await this.rest();
      default:
        kind satisfies never;
    }
  }

  /** An answer is as new as everything that any client received before. */
  #readOnce(server: SimServer): void {
    const { host } = server.served ?? {};
    const { ts } = this.#oracle;
    const call = { udfPath: "nothing", args: {}, identity: anonymous, origin: "client" } as const;
    host?.mutate(call).then(({ outcome, ts: answeredTs }) => {
      if (outcome.ok) assert.ok(answeredTs >= ts, `a mutation read the old state of ${answeredTs}`);
    }).catch((error) => server.failure ??= error);
    if (server.leads) host?.commit(10);
  }

  async #settle(): Promise<void> {
    await settle();
    for (const server of this.#servers) {
      if (server.failure !== null) throw server.failure;
      server.renewIfWanted();
    }
    // A leader whose server restarts or is down closes its links.
    const hosts = this.#servers.map(({ served }) => served?.host);
    for (const { link } of this.#servers) if (link !== null && !hosts.includes(link.leader)) link.cut();
    await settle();
    for (const { name, served, leads, epoch } of this.#servers) {
      served?.hub.validate();
      assert.ok((served?.host.ts ?? 0) <= this.#oracle.ts, `${name} shows what the log does not have`);
      if (!leads || epoch === null || epoch <= this.#terms) continue;
      this.#terms = epoch;
      this.#takeovers++;
    }
  }

  #anyConnection(server: SimServer): SimConnection {
    const connections = [server.connection, server.rowsConnection];
    const busy = connections.filter((connection) => connection.busy);
    return this.#random.pick(busy.length > 0 ? busy : connections);
  }

  #cut(server: SimServer): void {
    server.cut((late) => this.#random.chance(0.5) && this.#late.push(late));
  }

  #letIn(client: SimClient, server: SimServer): void {
    if (client.connection !== null) return;
    void server.accept(client).catch((error) => server.failure ??= error);
  }

  #follow(server: SimServer): void {
    const leader = this.#servers.find((other) => other !== server && other.leads);
    if (leader !== undefined && server.leader?.epoch === leader.epoch) server.follow(leader);
  }

  #kill(server: SimServer): void {
    const { served } = server;
    if (served === null) return;
    for (const client of this.#clients) if (client.connection?.socket.hub === served.hub) client.drop();
    this.#cut(server);
    server.kill();
  }

  /** Called when the log has a new row: its mutations took effect now, in this order. */
  #added(row: JournalRow): void {
    const sealed = this.#sealed.get(row.sum);
    assert.ok(sealed !== undefined, "the log has a row that nobody made");
    assert.ok(sealed.by.size > 0, "a row exists that was reported as absent");
    for (const { call, answer } of sealed.group) {
      const { replay, identity: { principal } } = call;
      if (replay !== undefined && !answer.replayed) {
        assert.ok(
          !this.#failed.has(failedName({ ...replay, principal })),
          "a mutation is committed that was answered as a failure",
        );
      }
      compareAnswer(this.#oracle, { call, answer });
    }
    assert.equal(row.ts, this.#oracle.ts);
    // Some notifications are lost: a server that polls finds the row.
    for (const server of this.#servers) if (this.#random.chance(0.7)) server.notice();
  }

  #isAtRest(): boolean {
    const [leader, ...more] = this.#servers.filter(({ leads }) => leads);
    if (leader === undefined || more.length > 0 || this.#authenticator.busy || this.#late.length > 0) {
      return false;
    }
    const { seq } = this.#log.end;
    const busy = this.#servers.some((server) =>
      server.served === null || server.served.host.busy || server.served.hub.busy ||
      server.callsWaiting > 0 ||
      server.position?.seq !== seq
    );
    return !busy &&
      this.#clients.every(({ connection }) =>
        connection !== null && connection.socket.closedWith === null && !connection.socket.busy &&
        // A socket on which an outcome is unknown is closed a little later.
        connection.calls.length === 0
      );
  }

  /** One database with the app's tables, for each server. */
  #makeDatabases() {
    const [a, b] = [this.#folder.at("a.db"), this.#folder.at("b.db")];
    const writer = openWriterDatabase(a);
    writer.applySchema(schema);
    writer[Symbol.dispose]();
    const { generation, seq, ts, sum } = startClusterHistory(a, { id: "sim", now: 1 });
    if (generation === null) throw new Error("A history that has begun has a name");
    Deno.copyFileSync(a, b);
    return { generation, seq, ts, sum };
  }
}

function nameOf(
  { sessionId, requestId }: { readonly sessionId: string; readonly requestId: number },
): string {
  return `${sessionId} ${requestId}`;
}

function failedName(
  replay: { readonly sessionId: string; readonly requestId: number; readonly principal: string | null },
): string {
  return JSON.stringify([replay.sessionId, replay.requestId, replay.principal]);
}

function isUnavailable(errorData: unknown): boolean {
  return typeof errorData === "object" && errorData !== null && "code" in errorData &&
    errorData.code === "unavailable";
}
