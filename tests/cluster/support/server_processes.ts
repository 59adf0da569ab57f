/** Servers of one cluster in processes of their own, to be killed, frozen and started again. */
import { join } from "node:path";
import { Child } from "../../bench/support/child.ts";
import { FakeBucket } from "../../ops/scheduled/fake_bucket.ts";
import { SECRET } from "./servers.ts";

const START_MS = 120_000;

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  accounts: defineTable({ number: z.number(), balance: z.number() }).index("by_number", ["number"]),
  ledger: defineTable({ client: z.string(), n: z.number() }).index("by_client", ["client", "n"]),
  counters: defineTable({ done: z.number() }),
});
`,
  "bank.ts": `
import { mutation, query } from "syncline/server";
import { z } from "zod";
export const open = mutation({ args: { accounts: z.number() }, handler: async (ctx, { accounts }) => {
  if (await ctx.db.query("counters").first() !== null) return;
  for (let number = 0; number < accounts; number++) await ctx.db.insert("accounts", { number, balance: 100 });
  await ctx.db.insert("counters", { done: 0 });
} });
export const transfer = mutation({
  args: { client: z.string(), n: z.number(), from: z.number(), to: z.number() },
  handler: async (ctx, { client, n, from, to }) => {
    const account = (number) => ctx.db.query("accounts").withIndex("by_number", (q) => q.eq("number", number)).unique();
    const [giver, taker] = [await account(from), await account(to)];
    await ctx.db.patch(giver._id, { balance: giver.balance - 1 });
    await ctx.db.patch(taker._id, { balance: taker.balance + 1 });
    const counter = await ctx.db.query("counters").first();
    await ctx.db.patch(counter._id, { done: counter.done + 1 });
    await ctx.db.insert("ledger", { client, n });
    return null;
  },
});
export const look = query({ args: {}, handler: async (ctx) => ({
  total: (await ctx.db.query("accounts").collect()).reduce((sum, { balance }) => sum + balance, 0),
  done: (await ctx.db.query("counters").first())?.done ?? 0,
}) });
export const ledger = query({ args: {}, handler: async (ctx) =>
  (await ctx.db.query("ledger").collect()).map(({ client, n }) => client + " " + n) });
`,
};

export class ClusterProcess {
  readonly #args: string[];
  readonly #env: Record<string, string>;
  #child: Child | null = null;
  readonly url: string;
  frozen = false;

  constructor(
    options: { readonly args: string[]; readonly env: Record<string, string>; readonly port: number },
  ) {
    this.#args = options.args;
    this.#env = options.env;
    this.url = `http://127.0.0.1:${options.port}`;
  }

  /** What it printed last. */
  last(): string {
    return this.#child?.lastOutput ?? "";
  }

  /** With which the first administrator is made; `null` when it has printed none. */
  get setupToken(): string | null {
    return /#[\w-]+=([\w-]+)/.exec(this.last())?.[1] ?? null;
  }

  get runs(): boolean {
    return this.#child !== null;
  }

  async start(): Promise<void> {
    const child = this.#child = new Child({ args: this.#args, env: this.#env });
    await child.line(/http:\/\/127\.0\.0\.1:\d+/, START_MS);
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    try {
      Deno.kill(child.pid, signal);
      this.thaw(child.pid);
    } catch {
      // It has ended by itself.
    }
    await child.exited;
    await child[Symbol.asyncDispose]();
  }

  freeze(): void {
    if (this.#child === null) return;
    this.frozen = true;
    Deno.kill(this.#child.pid, "SIGSTOP");
  }

  thaw(pid = this.#child?.pid): void {
    if (!this.frozen || pid === undefined) return;
    this.frozen = false;
    Deno.kill(pid, "SIGCONT");
  }

  /** What it is in its cluster; `null` when it does not say. */
  async role(): Promise<"leader" | "follower" | null> {
    try {
      const response = await fetch(`${this.url}/api/health/ready`, { signal: AbortSignal.timeout(2_000) });
      return (await response.json()).cluster?.role ?? null;
    } catch {
      return null;
    }
  }
}

/** A cluster of processes with a bucket for its files. */
export class ProcessRig implements AsyncDisposable {
  readonly servers: readonly ClusterProcess[];
  readonly #folder: string;
  readonly #bucket: FakeBucket;

  private constructor(parts: { servers: readonly ClusterProcess[]; folder: string; bucket: FakeBucket }) {
    this.servers = parts.servers;
    this.#folder = parts.folder;
    this.#bucket = parts.bucket;
  }

  /** With `deployed` they serve what is deployed to them, instead of a folder of functions. */
  static async start(
    url: string,
    count: number,
    { deployed = false }: { readonly deployed?: boolean } = {},
  ): Promise<ProcessRig> {
    const folder = await Deno.makeTempDir({ prefix: "syncline-cluster-" });
    const bucket = new FakeBucket();
    const { endpoint } = bucket.place();
    await Deno.mkdir(join(folder, "functions"));
    for (const [name, text] of Object.entries(functions)) {
      await Deno.writeTextFile(join(folder, "functions", name), text);
    }
    const env = {
      SYNCLINE_CLUSTER: url,
      SYNCLINE_CLUSTER_SECRET: SECRET,
      SYNCLINE_CLUSTER_SNAPSHOTS: join(folder, "snapshots"),
      SYNCLINE_S3_ACCESS_KEY_ID: "id",
      SYNCLINE_S3_SECRET_ACCESS_KEY: "key",
      SYNCLINE_S3_ENDPOINT: endpoint ?? "",
    };
    const servers = Array.from({ length: count }, (_, at) => {
      const port = freePort();
      const args = [
        ..."run --quiet --no-prompt -P=serve main.ts --storage s3://files".split(" "),
        ...[
          "--port",
          String(port),
          "--data",
          join(folder, `data-${at}`),
          ...deployed ? [] : ["--functions", join(folder, "functions")],
        ],
      ];
      return new ClusterProcess({ args, env, port });
    });
    return new ProcessRig({ servers, folder, bucket });
  }

  async leader(): Promise<ClusterProcess | null> {
    for (const server of this.servers) {
      if (server.runs && !server.frozen && await server.role() === "leader") return server;
    }
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.end("SIGKILL")));
    await this.#bucket[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
