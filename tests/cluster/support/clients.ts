/** Clients of a cluster that write and watch whatever happens to it, and know what they were told. */
import { pause } from "../../support/waiting.ts";
import { ACCOUNTS, BALANCE } from "./bank_app.ts";
import { type ShownAt, SocketView } from "./socket_view.ts";
import type { ClusterProcess } from "./server_processes.ts";

/** Who gets no answer for so long asks another server. */
const ANSWER_MS = 6_000;
/** Between two writes of a client, and between two tries of one. */
const NEXT_MS = 100;
const AGAIN_MS = 20;
/** A server that was cut off may be behind for a moment when it is not any more. */
const OLD_MS = 10_000;

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

/** What became of the writes for a while. */
export interface Writes {
  /** The longest time in which none was acknowledged. */
  longestMs: number;
  /** The longest time that one of them took, with all its tries. */
  slowestMs: number;
  /** Tries that were answered with an error. */
  refused: number;
  /** Tries without an answer. */
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

/** Asks a server; `query` says that nothing is written. */
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
  /** Set when what is under way need not end any more. */
  #abandoned = false;
  /** By client, how many transfers were acknowledged: those from 0 on. */
  readonly acknowledged = new Map<string, number>();
  /** How many each server has answered. */
  readonly answeredBy = new Map<string, number>();
  /** Since it was taken last. */
  #writes = noWrites();
  /** When the last write was acknowledged. */
  lastAt = 0;
  /** What must never be. */
  readonly faults: string[] = [];
  readonly #work: Promise<void>[] = [];
  readonly #views: SocketView<Shown>[] = [];
  /** By address, until when a server may show whoever comes an older state than another one. */
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

  /** Writes that were acknowledged since the start. */
  get count(): number {
    return this.acknowledged.values().reduce((sum, count) => sum + count, 0);
  }

  /** Transitions that watchers have seen. */
  get seen(): number {
    return this.#views.reduce((sum, { seen }) => sum + seen, 0);
  }

  /** What became of writes since this was asked last. A pause that goes on is counted up to now. */
  takeWrites(): Writes {
    const writes = this.#writes;
    writes.longestMs = Math.max(writes.longestMs, performance.now() - this.lastAt);
    this.#writes = noWrites();
    return writes;
  }

  /** A server does not reach the database from now on. */
  cutOff(server: ClusterProcess): void {
    this.#oldUntil.set(server.url, Infinity);
  }

  /** It does again. */
  reaches(server: ClusterProcess): void {
    this.#oldUntil.set(server.url, performance.now() + OLD_MS);
  }

  async end(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#work);
    for (const view of this.#views) await view.close();
  }

  /** Whatever became of them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abandoned = true;
    await this.end();
  }

  /** Watches the balances, which always are as much together, and how many transfers were made, which only grows. */
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
    // While the database is away a socket may begin with an older state; never does one go back.
    const isOther = now.connection !== before.connection;
    if (isOther && performance.now() < (this.#oldUntil.get(url) ?? 0)) return;
    this.faults.push(
      `${before.url} shows ${before.done} at ts ${before.ts}, then ${url} ${done} at ts ${ts}, ` +
        (isOther ? "to who comes from there" : "on the same socket"),
    );
  }

  async #write(client: string, seed: number): Promise<void> {
    const session = crypto.randomUUID();
    // Each stays with a server, whatever that is, until it does not answer.
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

  /** Sends a call, under the same name, to one server after the other until it is acknowledged. Gives which did. */
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
        // It is gone, or does not answer: sent again it is recognised.
        this.#writes.brokenOff++;
      }
      await pause(AGAIN_MS);
    }
    return at;
  }
}
