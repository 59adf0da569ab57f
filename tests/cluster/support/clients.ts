/** Clients of a cluster that go on whatever happens to it, and know what they were told. */
import { SocketView } from "./socket_view.ts";
import type { ClusterProcess } from "./server_processes.ts";

const ACCOUNTS = 8;
/** A server that is frozen does not answer. */
const ASK_MS = 3_000;
const LOOK_MS = 60_000;

interface Shown {
  readonly total: number;
  readonly done: number;
}

interface Answer {
  readonly status?: string;
  readonly errorData?: { readonly code: string } | null;
  readonly errorMessage?: string;
}

async function ask(
  server: ClusterProcess,
  { path, args, name, timeoutMs = ASK_MS }: {
    readonly path: string;
    readonly args: object;
    readonly name?: string;
    readonly timeoutMs?: number;
  },
): Promise<Answer & { value?: unknown }> {
  const response = await fetch(`${server.url}${path.includes(":l") ? "/api/query" : "/api/mutation"}`, {
    method: "POST",
    headers: name === undefined ? {} : { "Syncline-Request": name },
    body: JSON.stringify({ path, args }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return await response.json();
}

export class Clients {
  readonly #servers: readonly ClusterProcess[];
  #stopped = false;
  /** Set when what is under way need not end any more. */
  #abandoned = false;
  /** Transfers that were acknowledged, by `client n`. */
  readonly acknowledged: string[] = [];
  /** How many each server has answered. */
  readonly answeredBy = new Map<string, number>();
  /** Longest time between two of them; whoever wants to know it for a while sets it back. */
  longestMs = 0;
  /** When the last one was. */
  lastAt = 0;
  /** What must never be. */
  readonly faults: string[] = [];
  readonly #work: Promise<void>[] = [];
  readonly #views: SocketView<Shown>[] = [];

  constructor(servers: readonly ClusterProcess[]) {
    this.#servers = servers;
  }

  async begin({ writers, watchers }: { readonly writers: number; readonly watchers: number }): Promise<void> {
    await this.#until({
      path: "bank:open",
      args: { accounts: ACCOUNTS },
      name: `${crypto.randomUUID()} 0`,
      first: 0,
    });
    for (let at = 0; at < writers; at++) this.#work.push(this.#write(`client-${at}`, at));
    for (let at = 0; at < watchers; at++) {
      this.#views.push(this.#watch(at));
    }
  }

  /** Watches the balances, which always are as much together, and how many transfers were made, which only grows. */
  #watch(at: number): SocketView<Shown> {
    let [most, newest] = [0, 0];
    const { faults } = this;
    return new SocketView<Shown>(this.#servers.map(({ url }) => url), {
      at,
      udfPath: "bank:look",
      look({ total, done }, { url, ts }) {
        if (total !== ACCOUNTS * 100 && (total !== 0 || done !== 0)) {
          faults.push(`${url} shows a total of ${total} at ts ${ts}`);
        }
        if (done < most || ts < newest) {
          faults.push(`${url} goes back from ${most} at ts ${newest} to ${done} at ts ${ts}`);
        }
        newest = Math.max(ts, newest);
        most = Math.max(done, most);
      },
    });
  }

  /** Transitions that watchers have seen. */
  get seen(): number {
    return this.#views.reduce((sum, { seen }) => sum + seen, 0);
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

  /** What a server says of all transfers and balances. */
  async state(
    server: ClusterProcess,
  ): Promise<{ readonly total: number; readonly done: number; readonly ledger: readonly string[] }> {
    const { value } = await ask(server, { path: "bank:look", args: {}, timeoutMs: LOOK_MS });
    const ledger = await ask(server, { path: "bank:ledger", args: {}, timeoutMs: LOOK_MS });
    return { ...value as { total: number; done: number }, ledger: ledger.value as string[] };
  }

  async #write(client: string, seed: number): Promise<void> {
    const session = crypto.randomUUID();
    // Each stays with a server, whatever that is, until it does not answer.
    let server = seed;
    for (let n = 0; !this.#stopped; n++) {
      const from = (n + seed) % ACCOUNTS;
      server = await this.#until({
        path: "bank:transfer",
        args: { client, n, from, to: (from + 1 + n % 5) % ACCOUNTS },
        name: `${session} ${n}`,
        first: server,
      });
      this.acknowledged.push(`${client} ${n}`);
      const now = performance.now();
      this.longestMs = Math.max(this.longestMs, now - this.lastAt);
      this.lastAt = now;
      await pause(10);
    }
  }

  /** Sends a call, under the same name, to one server after the other until it is acknowledged. Gives which did. */
  async #until({ path, args, name, first }: {
    readonly path: string;
    readonly args: object;
    readonly name: string;
    readonly first: number;
  }): Promise<number> {
    let at = first;
    for (; !this.#abandoned; at++) {
      const server = this.#servers[at % this.#servers.length];
      if (server === undefined || !server.runs || server.frozen) {
        await pause(10);
        continue;
      }
      try {
        const answer = await ask(server, { path, args, name });
        if (answer.status === "success") {
          this.answeredBy.set(server.url, (this.answeredBy.get(server.url) ?? 0) + 1);
          return at;
        }
        const code = answer.errorData?.code;
        const known = ["unavailable", "overloaded"].includes(code ?? "");
        if (!known && answer.errorMessage !== "Server Error") this.faults.push(JSON.stringify(answer));
      } catch {
        // It is gone, or does not answer: sent again it is recognised.
      }
      await pause(20);
    }
    return at;
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
