/** Clients of a cluster that write and subscribe during faults, and check every answer. */
import { clusterLimits } from "../../../mod/cluster/postgres/limits.ts";
import { pause } from "../../support/waiting.ts";
import { ACCOUNTS, BALANCE } from "./bank_app.ts";
import { type ShownAt, SocketView } from "./socket_view.ts";
import type { ClusterProcess } from "./server_processes.ts";

/** Timeout of a request, after which the client tries another server. */
const ANSWER_MS = 6_000;
/** Pause between writes of a client, and between attempts. */
const NEXT_MS = 100;
const AGAIN_MS = 20;
/** Time in which a reconnected server may be behind. */
const OLD_MS = 30_000;

interface Shown {
  readonly total: number;
  readonly done: number;
}

interface Answer {
  readonly status?: string;
  readonly errorData?: { readonly code: string } | null;
  readonly errorMessage?: string;
  readonly value?: unknown;
}

/** Results of the writes in a period. */
export interface Writes {
  /** Longest time without an acknowledged write. */
  longestMs: number;
  /** Longest time of one write, with all attempts. */
  slowestMs: number;
  /** Attempts answered with an error. */
  refused: number;
  /** Attempts without an answer. */
  brokenOff: number;
  acknowledged: number;
}

const noWrites = (): Writes => ({
  longestMs: 0,
  slowestMs: 0,
  refused: 0,
  brokenOff: 0,
  acknowledged: 0,
});

/** Calls a mutation, or with `query` a query. */
export async function ask(
  url: string,
  { path, args, name, query = false, answerMs = ANSWER_MS }: {
    readonly path: string;
    readonly args: object;
    readonly name?: string;
    readonly query?: boolean;
    readonly answerMs?: number;
  },
): Promise<Answer> {
  const response = await fetch(`${url}/api/${query ? "query" : "mutation"}`, {
    method: "POST",
    headers: name === undefined ? {} : { "Syncline-Request": name },
    body: JSON.stringify({ path, args }),
    signal: AbortSignal.timeout(answerMs),
  });
  return await response.json();
}

export class Clients implements AsyncDisposable {
  readonly #servers: readonly ClusterProcess[];
  #stopped = false;
  /** Set when calls in flight need not end. */
  #abandoned = false;
  /** Number of acknowledged transfers by client. */
  readonly acknowledged = new Map<string, number>();
  /** Number of answers by server. */
  readonly answeredBy = new Map<string, number>();
  /** Writes since `takeWrites`. */
  #writes = noWrites();
  /** Time of the last acknowledged write. */
  lastAt = 0;
  /** Violations of the guarantees. */
  readonly faults: string[] = [];
  readonly #work: Promise<void>[] = [];
  readonly #views: SocketView<Shown>[] = [];
  /** Time by address in which a server may show new sockets an older state than another one. */
  readonly #oldUntil = new Map<string, number>();

  constructor(servers: readonly ClusterProcess[]) {
    this.#servers = servers;
  }

  async begin({ writers, watchers }: { readonly writers: number; readonly watchers: number }): Promise<void> {
    const call = { path: "bank:open", args: { accounts: ACCOUNTS }, name: `${crypto.randomUUID()} 0` };
    await this.#until(call, 0);
    for (let at = 0; at < writers; at++) this.#work.push(this.#write(`client-${at}`, at));
    for (let at = 0; at < watchers; at++) this.#views.push(this.#watch(at));
  }

  /** Number of acknowledged writes. */
  get count(): number {
    return this.acknowledged.values().reduce((sum, count) => sum + count, 0);
  }

  /** Number of Transitions received by watchers. */
  get seen(): number {
    return this.#views.reduce((sum, { seen }) => sum + seen, 0);
  }

  /** Returns the writes since the last call. A current pause counts up to now. */
  takeWrites(): Writes {
    const writes = this.#writes;
    writes.longestMs = Math.max(writes.longestMs, performance.now() - this.lastAt);
    this.#writes = noWrites();
    return writes;
  }

  /** A server loses its connection to the database. */
  cutOff(server: ClusterProcess): void {
    this.#oldUntil.set(server.url, Infinity);
  }

  /** A server reaches the database again. */
  reaches(server: ClusterProcess): void {
    this.#oldUntil.set(server.url, performance.now() + OLD_MS);
  }

  async end(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#work);
    for (const view of this.#views) await view.close();
  }

  /** Does not wait for calls in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abandoned = true;
    await this.end();
  }

  /** Subscribes to the total of all balances, which is constant, and the number of transfers, which only grows. */
  #watch(at: number): SocketView<Shown> {
    let before: Shown & ShownAt | null = null;
    return new SocketView<Shown>(this.#servers.map(({ url }) => url), {
      at,
      udfPath: "bank:look",
      look: (shown, at) => {
        this.#check(before, { ...shown, ...at });
        before = { ...shown, ...at };
      },
    });
  }

  #check(before: Shown & ShownAt | null, now: Shown & ShownAt): void {
    const { total, done, url, ts } = now;
    if (total !== ACCOUNTS * BALANCE && (total !== 0 || done !== 0)) {
      this.faults.push(`${url} shows a total of ${total} at ts ${ts}`);
    }
    if (before === null || done >= before.done && ts >= before.ts) return;
    // While the database is unreachable, a new socket may start with an older state. No socket receives an older one later.
    const isOther = now.connection !== before.connection;
    if (isOther && performance.now() < (this.#oldUntil.get(url) ?? 0)) return;
    // On a busy machine, a server that is not up to date within this time starts a socket with an older state, too.
    if (isOther && now.ageMs >= clusterLimits.socketWaitMs) return;
    this.faults.push(
      `${before.url} shows ${before.done} at ts ${before.ts}, then ${url} ${done} at ts ${ts}, ` +
        (isOther ? "to a client of the other" : "on the same socket"),
    );
  }

  async #write(client: string, seed: number): Promise<void> {
    const session = crypto.randomUUID();
    // Each client uses one server until it does not answer.
    let server = seed;
    await pause(NEXT_MS * Math.random());
    for (let n = 0; !this.#stopped; n++) {
      const from = (n + seed) % ACCOUNTS;
      const args = { client, n, from, to: (from + 1 + n % 5) % ACCOUNTS };
      const begun = performance.now();
      server = await this.#until({ path: "bank:transfer", args, name: `${session} ${n}` }, server);
      if (this.#abandoned) return;
      this.acknowledged.set(client, n + 1);
      const now = performance.now();
      const writes = this.#writes;
      if (this.lastAt > 0) writes.longestMs = Math.max(writes.longestMs, now - this.lastAt);
      writes.slowestMs = Math.max(writes.slowestMs, now - begun);
      writes.acknowledged++;
      this.lastAt = now;
      await pause(NEXT_MS);
    }
  }

  /** Sends a call with the same request id to one server after the other. Returns the one that acknowledged it. */
  async #until(call: Parameters<typeof ask>[1], first: number): Promise<number> {
    let at = first;
    for (; !this.#abandoned; at++) {
      const { url } = this.#servers[at % this.#servers.length] ?? { url: "" };
      try {
        const answer = await ask(url, call);
        if (answer.status === "success") {
          this.answeredBy.set(url, (this.answeredBy.get(url) ?? 0) + 1);
          return at;
        }
        this.#writes.refused++;
        const code = answer.errorData?.code;
        const known = ["unavailable", "overloaded", "outcome_unknown"].includes(code ?? "");
        if (!known) this.faults.push(JSON.stringify(answer));
      } catch {
        // Repeated requests are recognized by their id.
        this.#writes.brokenOff++;
      }
      await pause(AGAIN_MS);
    }
    return at;
  }
}
