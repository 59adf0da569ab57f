/** Worker processes that share a port, as clients see them, also while some are killed. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import type { FollowerReport } from "../../mod/cluster/mod.ts";
import { parseFromFollower } from "../../mod/cluster/messages.ts";
import { randomHex } from "../../mod/functions/call_trace.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { forwardLine, type Log, type LogReceiver, plainFields } from "../../mod/kit/log.ts";
import { telemetryLimits } from "../../mod/ops/limits.ts";
import { workerLimits } from "../../mod/server/limits.ts";
import { RunReporter } from "../../mod/server/worker/run_reporter.ts";
import { attributesOf, OtlpCollector } from "../ops/support/otlp_collector.ts";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause, until } from "../support/waiting.ts";
import { areAlive, connectionsOf, workersOf } from "./support/processes.ts";

const WORKERS = 3;
/**
 * A memory budget whose share is so small that workers start no isolates ahead. Each of these costs as much processor time as
 * the worker. The writing process starts them.
 */
const MEMORY = "1900MiB";
const ACCOUNTS = 6;
const EACH = 100;
const JSON_BODY = { "content-type": "application/json" };
/** Headers that differ between responses or depend on the process. */
const VARYING = ["date", "content-length", "content-security-policy"];

const APP = {
  "one/schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export const VERSION = 1;
export const INDEX = "by_n";
export default defineSchema({
  accounts: defineTable({ n: z.number(), balance: z.number() }).index(INDEX, ["n"]),
  moves: defineTable({ by: z.string(), n: z.number() }).index("by_by", ["by", "n"]),
});
`,
  "one/bank.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
import { INDEX, VERSION } from "./schema.ts";
export const version = untypedQuery({ args: {}, handler: () => VERSION });
export const open = untypedMutation({
  args: { count: z.number(), each: z.number() },
  handler: async (ctx, { count, each }) => {
    for (let n = 0; n < count; n++) await ctx.db.insert("accounts", { n, balance: each });
  },
});
export const balances = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("accounts").withIndex(INDEX).collect()).map((a) => a.balance),
});
export const moved = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("moves").collect()).length });
export const movesOf = untypedQuery({
  args: { by: z.string() },
  handler: async (ctx, { by }) =>
    (await ctx.db.query("moves").withIndex("by_by", (q) => q.eq("by", by)).collect()).map((move) => move.n),
});
export const said = untypedQuery({ args: { i: z.number() }, handler: (ctx) => ctx.log.info("said") });
export const broken = untypedQuery({ args: {}, handler: () => { throw new TypeError("broken"); } });
export const move = untypedMutation({
  args: { by: z.string(), n: z.number(), from: z.number(), to: z.number(), amount: z.number() },
  handler: async (ctx, { by, n, from, to, amount }) => {
    const at = (n: number) => ctx.db.query("accounts").withIndex(INDEX, (q) => q.eq("n", n)).first();
    const giver = await at(from);
    if (giver === null) throw new Error("no account");
    await ctx.db.patch(giver._id, { balance: giver.balance - amount });
    const taker = await at(to);
    if (taker === null) throw new Error("no account");
    await ctx.db.patch(taker._id, { balance: taker.balance + amount });
    await ctx.db.insert("moves", { by, n });
    return n;
  },
});
export const noted = untypedMutation({ args: {}, handler: (ctx) => ctx.log.info("noted") });
export const twice = untypedAction({
  args: { by: z.string() },
  handler: async (ctx, { by }) => {
    for (const n of [1, 2]) {
      await ctx.runMutation("bank:move", { by, n, from: 0, to: 1, amount: 1 });
      await ctx.runMutation("bank:noted");
    }
    ctx.log.info("noted");
    return await ctx.runQuery("bank:movesOf", { by });
  },
});
export const me = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.auth.identity())?.userId ?? null });
`,
  "one/http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({
  path: "/echo",
  method: "POST",
  handler: httpAction(async (_ctx, request) => new Response(await request.text(), {
    headers: { "X-Url": request.url },
  })),
});
export default http;
`,
  "static/index.html": "<!doctype html><title>a page</title>",
};

class Server implements AsyncDisposable {
  readonly child: Child;
  url = "";

  constructor(folder: TempFolder, ...flags: readonly string[]) {
    const given = ["--data", folder.at("data"), "--host", "127.0.0.1", "--static", folder.at("static")];
    given.push("--memory", MEMORY);
    this.child = new Child({
      args: [..."run --quiet --no-prompt -P=serve main.ts".split(" "), ...given, ...flags],
    });
  }

  async serving(): Promise<this> {
    const [url] = await this.child.line(/http:\/\/127\.0\.0\.1:\d+/);
    this.url = url;
    return this;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  workers(): Promise<number[]> {
    return workersOf(this.child.pid);
  }

  /** Whether each process has some connections. */
  async onAll(): Promise<boolean> {
    const pids = [this.child.pid, ...await this.workers()];
    const counts = await Promise.all(pids.map((pid) => connectionsOf(pid, this.port)));
    return counts.every((count) => count >= 2);
  }

  /** Enough clients for each process. */
  async clientsOnAll(atLeast: number): Promise<SynclineClient[]> {
    const clients: SynclineClient[] = [];
    for (;;) {
      clients.push(new SynclineClient(this.url, { polling: false, webSocket: WebSocket }));
      await until(() => clients.every((client) => client.connectionState().isConnected));
      if (clients.length >= atLeast && await this.onAll()) return clients;
      assert.ok(clients.length < 200, "some process gets no connection");
    }
  }

  async call<Value>(kind: string, path: string, args: object = {}): Promise<Value> {
    const response = await fetch(`${this.url}/api/${kind}`, {
      method: "POST",
      body: JSON.stringify({ path, args }),
      headers: { connection: "close" },
    });
    const answer = await response.json();
    assert.equal(answer.status, "success", JSON.stringify(answer));
    return answer.value;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.child[Symbol.asyncDispose]();
  }
}

/** Pause between transfers of a client. Each one updates the subscriptions of all clients. */
const MOVE_PAUSE_MS = 100;

/** Transfers money at random until it is stopped, and checks that all views are consistent and never older than before. */
class Mover {
  readonly acknowledged: number[] = [];
  readonly faults: string[] = [];
  views = 0;
  readonly #client: SynclineClient;
  readonly #by: string;
  #seen = -1;
  #stopped = false;
  readonly #loop: Promise<void>;
  readonly #releases: readonly (() => void)[];

  constructor(client: SynclineClient, by: string) {
    this.#client = client;
    this.#by = by;
    this.#releases = [
      client.subscribe("bank:balances", {}, (value) => {
        this.views++;
        const sum = (value as number[]).reduce((a, b) => a + b, 0);
        if (sum !== ACCOUNTS * EACH) this.faults.push(`torn view: ${JSON.stringify(value)}`);
      }),
      client.subscribe("bank:moved", {}, (value) => {
        if (Number(value) < this.#seen) this.faults.push(`went back from ${this.#seen} to ${value}`);
        this.#seen = Number(value);
      }),
    ];
    this.#loop = this.#run();
  }

  get by(): string {
    return this.#by;
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const from = Math.floor(Math.random() * ACCOUNTS);
      const to = Math.floor(Math.random() * ACCOUNTS);
      const before = this.#seen;
      await this.#client.mutation("bank:move", { by: this.#by, n, from, to, amount: 1 + n % 5 });
      this.acknowledged.push(n);
      // The client sees its acknowledged write.
      if (before >= 0 && this.#seen <= before) this.faults.push(`does not show its own write ${n}`);
      await pause(MOVE_PAUSE_MS);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
    for (const release of this.#releases) release();
  }
}

async function checkMoves(server: Server, movers: readonly Mover[]): Promise<void> {
  for (const { by, acknowledged, faults } of movers) {
    assert.deepEqual(faults, [], by);
    const found = await server.call<number[]>("query", "bank:movesOf", { by });
    assert.deepEqual(found, acknowledged, `${by}: what was acknowledged is there once, and nothing else`);
  }
  const balances = await server.call<number[]>("query", "bank:balances");
  assert.equal(balances.reduce((a, b) => a + b, 0), ACCOUNTS * EACH);
}

async function progress(movers: readonly Mover[]): Promise<void> {
  const before = movers.map(({ acknowledged }) => acknowledged.length);
  await until(() => movers.every(({ acknowledged }, i) => acknowledged.length > (before[i] ?? 0) + 2), {
    what: "every client continues",
  });
}

Deno.test("[WK1] several processes share the port", async (t) => {
  await using folder = await TempFolder.with(APP);
  await using collector = new OtlpCollector();
  // Only traces of clients that ask for it.
  const telemetry = ["--otlp-endpoint", collector.endpoint, "--otlp-sample", "0"];
  const flags = [
    "--workers",
    String(WORKERS),
    "--metrics",
    "--functions",
    folder.at("one"),
    ...telemetry,
    "--port",
  ];
  await using server = await new Server(folder, ...flags, "0").serving();
  const { url, port } = server;
  await until(async () => (await server.workers()).length === WORKERS - 1);
  await server.call("mutation", "bank:open", { count: ACCOUNTS, each: EACH });

  await t.step("[WK1] every process answers every request alike", async () => {
    const texts = new Set<string>();
    for (let i = 0; i < 24; i++) {
      const headers = { connection: "close" };
      const [health, page, about, admin, unknown, echo] = await Promise.all([
        fetch(`${url}/api/health`, { headers }),
        fetch(`${url}/deep/link`, { headers: { ...headers, accept: "text/html" } }),
        fetch(`${url}/_/about`, { headers }),
        fetch(`${url}/api/admin/stats`, { headers }),
        fetch(`${url}/api/none`, { headers }),
        fetch(`${url}/echo`, { method: "POST", body: "é".repeat(100_000), headers }),
      ]);
      assert.equal((await health.json()).status, "ok");
      assert.match(await page.text(), /a page/);
      assert.equal(echo.headers.get("x-url"), `${url}/echo`);
      assert.equal((await echo.text()).length, 100_000);
      const plain = [about, admin, unknown].map(async (answer) => {
        const headers = [...answer.headers].filter(([name]) => !VARYING.includes(name));
        return [answer.status, headers, await answer.text()];
      });
      texts.add(JSON.stringify(await Promise.all(plain)));
    }
    assert.equal(texts.size, 1, [...texts].join("\n"));
    assert.deepEqual(await server.call("action", "bank:twice", { by: "twice" }), [1, 2]);
  });

  await t.step("[OT2] [OT3] [OT7] every process exports requests, runs and log lines", async () => {
    const parents = new Map<string, string>();
    for (let i = 0; i < 24; i++) {
      const [traceId, parent] = [randomHex(16), randomHex(8)];
      parents.set(traceId, parent);
      const headers = { connection: "close", traceparent: `00-${traceId}-${parent}-01` };
      const path = i % 2 === 0 ? "bank:said" : "bank:twice";
      const kind = i % 2 === 0 ? "query" : "action";
      const args = i % 2 === 0 ? { i } : { by: `traced ${i}` };
      const body = JSON.stringify({ path, args });
      const answer = await fetch(`${url}/api/${kind}`, { method: "POST", body, headers });
      await answer.body?.cancel();
    }
    for (const [traceId, parent] of parents) {
      const spans = () => collector.spans.filter((span) => span.traceId === traceId);
      const request = () => spans().find(({ parentSpanId }) => parentSpanId === parent);
      const run = () => spans().find(({ parentSpanId }) => parentSpanId === request()?.spanId);
      await until(() => run() !== undefined, { what: () => JSON.stringify(spans()) });
      const [outer, inner] = [request(), run()];
      assert.match(
        `${outer?.name} ${inner?.name}`,
        /^POST \/api\/(query query bank:said|action action bank:twice)$/,
      );
      const lines = () =>
        collector.logs.filter((line) => line.traceId === traceId)
          .map(({ spanId, body }) => `${spanId} ${body.stringValue}`);
      // Reports arrive later, but have the time of the end.
      if (inner?.name.startsWith("query")) {
        assert.ok(BigInt(inner.endTimeUnixNano) <= BigInt(outer?.endTimeUnixNano ?? 0));
        await until(() => lines().length > 0);
        assert.deepEqual(lines(), [`${inner.spanId} said`]);
        continue;
      }
      // Equal lines of an action and of its calls, each with the span of its run.
      const noted = () =>
        spans().filter(({ name, parentSpanId }) =>
          name === "mutation bank:noted" && parentSpanId === inner?.spanId
        );
      await until(() => noted().length === 2 && lines().length >= 3);
      const runs = [...noted(), inner];
      assert.deepEqual(lines().toSorted(), runs.map((span) => `${span?.spanId} noted`).toSorted());
    }
    // Each process logs the failures of its own readers.
    await until(async () => {
      await fetch(`${url}/api/query`, {
        method: "POST",
        body: JSON.stringify({ path: "bank:broken", args: {} }),
        headers: { connection: "close" },
      }).then((answer) => answer.body?.cancel());
      const failures = collector.logs.filter(({ severityText }) => severityText === "ERROR");
      const names = new Set(failures.map((line) => attributesOf(line)["worker"] ?? "main"));
      return names.size === WORKERS;
    }, { what: "failures that each process has logged" });
  });

  await t.step("[WK2] a repeated request gets the same response from any process", async () => {
    const session = crypto.randomUUID();
    const headers = { connection: "close", "Syncline-Request": `${session} 7` };
    const body = JSON.stringify({
      path: "bank:move",
      args: { by: "again", n: 1, from: 0, to: 1, amount: 1 },
    });
    const answers = await Promise.all(
      Array.from({ length: 24 }, async () => {
        const answer = await fetch(`${url}/api/mutation`, { method: "POST", body, headers });
        assert.equal(answer.headers.get("syncline-request"), "recognised");
        return await answer.text();
      }),
    );
    assert.equal(new Set(answers).size, 1, answers.join("\n"));
    assert.deepEqual(await server.call("query", "bank:movesOf", { by: "again" }), [1]);
  });

  await t.step("[WK5] an ended session is closed in every process", async () => {
    const clients = await server.clientsOnAll(12);
    const account = { email: "a@example.org", password: "a long password of mine" };
    const signUp = await fetch(`${url}/api/auth/signup`, {
      method: "POST",
      headers: JSON_BODY,
      body: JSON.stringify(account),
    });
    const tokens = await signUp.json();
    assert.equal(typeof tokens.accessToken, "string", JSON.stringify(tokens));
    const users = clients.map(() => undefined as unknown);
    clients.forEach((client, i) => {
      client.setAuth(() => Promise.resolve(tokens.accessToken), () => {});
      client.subscribe("bank:me", {}, (value) => users[i] = value);
    });
    await until(() => users.every((user) => typeof user === "string"));
    const signOut = await fetch(`${url}/api/auth/signout`, {
      method: "POST",
      headers: { ...JSON_BODY, authorization: `Bearer ${tokens.accessToken}` },
      body: JSON.stringify({ refreshToken: tokens.refreshToken }),
    });
    await signOut.body?.cancel();
    await until(() => users.every((user) => user === null), { what: "no user is signed in any more" });
    for (const client of clients) client.close();
  });

  const movers: Mover[] = [];
  const clients = await server.clientsOnAll(16);
  await t.step("[WK11] every process reports the sockets, runs and requests of all", async () => {
    const figure = async (line: RegExp) => {
      const text = await (await fetch(`${url}/metrics`, { headers: { connection: "close" } })).text();
      return Number(line.exec(text)?.[1] ?? NaN);
    };
    const everywhere = async (line: RegExp, is: (value: number) => boolean) => {
      for (let i = 0; i < 12; i++) if (!is(await figure(line))) return false;
      return true;
    };
    await until(() => everywhere(/^syncline_sockets (\d+)$/m, (sockets) => sockets === clients.length));
    const requests = /^syncline_http_requests_total\{route="call",status="2xx"\} (\d+)$/m;
    const runs = /^syncline_function_runs_total\{kind="query",outcome="success"\} (\d+)$/m;
    const [requestsBefore, runsBefore] = [await figure(requests), await figure(runs)];
    const count = 40;
    for (let i = 0; i < count; i++) await server.call("query", "bank:movesOf", { by: `nobody ${i}` });
    await until(() => everywhere(requests, (now) => now >= requestsBefore + count));
    await until(() => everywhere(runs, (now) => now >= runsBefore + count));
  });

  await t.step("[WK2] all clients see every mutation completely and in order, on all processes", async () => {
    movers.push(...clients.map((client, i) => new Mover(client, `mover ${i}`)));
    await progress(movers);
    assert.ok(movers.every(({ views }) => views > 0));
  });

  await t.step(
    "[WK3] killed workers: no write is lost or repeated, and no view is torn",
    async () => {
      for (let round = 0; round < WORKERS - 1; round++) {
        const victim = (await server.workers())[round] ?? 0;
        Deno.kill(victim, "SIGKILL");
        await progress(movers);
        await until(async () => (await areAlive([victim])).length === 0);
        await until(async () => (await server.workers()).length === WORKERS - 1);
      }
      await server.clientsOnAll(0).then((more) => more.forEach((client) => client.close()));
    },
  );

  await t.step("[WK4] a worker that hangs is killed, and its sockets reconnect", async () => {
    const [victim = 0] = await server.workers();
    Deno.kill(victim, "SIGSTOP");
    await until(async () => (await areAlive([victim])).length === 0, {
      what: "the suspended worker has ended",
    });
    await progress(movers);
    await until(async () => (await server.workers()).length === WORKERS - 1);
  });

  await t.step(
    "[WK6] when the writing process is killed, all processes end, and a new start continues",
    async () => {
      const workers = await server.workers();
      Deno.kill(server.child.pid, "SIGKILL");
      await until(async () => (await areAlive(workers)).length === 0, { what: "the workers end" });
      await using next = await new Server(folder, ...flags, String(port)).serving();
      await progress(movers);
      for (const mover of movers) await mover.stop();
      await checkMoves(next, movers);
      for (const client of clients) client.close();

      // Some may start after the server serves.
      await until(async () => (await next.workers()).length === WORKERS - 1);
      const left = await next.workers();
      Deno.kill(next.child.pid, "SIGTERM");
      assert.equal((await next.child.exited).code, 0);
      assert.deepEqual(await areAlive(left), []);
    },
  );
});

Deno.test("[WK11] reports contain all facts of runs, and are limited in number and length", () => {
  const reports: FollowerReport[] = [];
  const connection = {
    unsentBytes: 0,
    report(report: FollowerReport) {
      const message = parseFromFollower(JSON.parse(JSON.stringify({ t: "runs", ...report })));
      assert.ok(message.t === "runs");
      const { t: _, ...received } = message;
      assert.deepEqual(received, report);
      reports.push(received);
    },
  };
  const receivers = new Set<LogReceiver>();
  const write: Log = (level, message, fields = {}) =>
    forwardLine(receivers, { at: 1, level, message, fields: plainFields(fields) });
  const log = Object.assign(write, { receivers });
  const { reportRunsMax, reportCharsMax, reportBytesBehind } = workerLimits;
  using reporter = new RunReporter(connection, { log, telemetry: { sample: 1, logs: true } });
  const run = (logLines: readonly string[] = []) =>
    reporter.runEnded("query", {
      call: { udfPath: "bank:said", identity: anonymous },
      outcome: { ok: true, value: "1", logLines },
      ...{ ms: 1, durationMs: 1, queuedMs: 0, use: null, request: 36, ts: 7, version: "ab12" },
    });
  run(["[INFO] a line"]);
  reporter.flush();
  assert.deepEqual(reports.map(({ runs }) => runs.map(({ version }) => version)), [["ab12"]]);

  // The link does not accept reports: nothing is logged about them in the meantime.
  connection.unsentBytes = reportBytesBehind + 1;
  const { logCharsMax } = telemetryLimits;
  const fitting = Math.floor(reportCharsMax / (2 * logCharsMax));
  assert.ok(fitting < reportRunsMax);
  for (let i = 0; i < fitting + 5; i++) {
    log("info", "x".repeat(2 * logCharsMax), { stack: "y".repeat(2 * logCharsMax) });
  }
  const kept = fitting - 1;
  run(["z".repeat(2 * logCharsMax)]);
  for (let i = 0; i < reportRunsMax + 1; i++) reporter.spans?.start("").end(200);
  for (let i = 0; i < 3; i++) reporter.flush();
  assert.equal(reports.length, 1);
  connection.unsentBytes = 0;
  reporter.flush();
  const [, backlog] = reports;
  assert.deepEqual([backlog?.logged.length, backlog?.runs.length, backlog?.traced.length], [
    kept,
    0,
    reportRunsMax,
  ]);
  const [line] = backlog?.logged ?? [];
  assert.deepEqual([line?.message.length, String(line?.fields["stack"]).length], [logCharsMax, logCharsMax]);
  reporter.flush();
  assert.deepEqual(reports[2]?.logged.map(({ message, fields }) => [message, fields]), [[
    "Dropped run reports because too many were pending",
    { runs: 1, spans: 1, logLines: 6 },
  ]]);
  reporter.flush();
  assert.equal(reports.length, 3);
});

Deno.test("[WK7] all processes serve edited functions, with their tables", async () => {
  await using folder = await TempFolder.with(APP);
  const flags = [
    "--workers",
    "2",
    "--dev",
    "--skip-type-check",
    "--functions",
    folder.at("one"),
    "--port",
    "0",
  ];
  await using server = await new Server(folder, ...flags).serving();
  await server.call("mutation", "bank:open", { count: ACCOUNTS, each: EACH });
  const clients = await server.clientsOnAll(6);
  const versions = clients.map(() => 0);
  const faults: string[] = [];
  clients.forEach((client, i) => {
    const failed = (error: Error) => faults.push(error.message);
    client.subscribe("bank:version", {}, (value) => versions[i] = Number(value), failed);
    client.subscribe("bank:balances", {}, () => {}, failed);
  });
  const movers = clients.map((client, i) => new Mover(client, `mover ${i}`));
  await until(() => versions.every((version) => version === 1));
  for (const version of [2, 3]) {
    await progress(movers);
    // The index of all queries has another name. In one file, because a reload may come between two writes.
    await folder.write({
      "one/schema.ts": APP["one/schema.ts"]
        .replace("VERSION = 1", `VERSION = ${version}`)
        .replace('"by_n"', `"by_number_${version}"`),
    });
    await until(() => versions.every((known) => known === version));
    await progress(movers);
  }
  for (const mover of movers) await mover.stop();
  await checkMoves(server, movers);
  assert.deepEqual(faults, []);
  for (const client of clients) client.close();
});

Deno.test("[WK8] options that exclude several processes are refused in one line", async () => {
  await using folder = await TempFolder.with(APP);
  for (
    const [flags, reason] of [
      [["--takeover"], /ERROR --workers and --takeover cannot be combined/],
      [["--follow", folder.at("replica")], /ERROR --workers and --follow cannot be combined/],
      [
        ["--dev", "--dev-frontend", "http://localhost:1"],
        /ERROR --workers and --dev-frontend cannot be combined/,
      ],
      [["--cluster", "postgres://app@127.0.0.1/app"], /ERROR --workers and --cluster cannot be combined/],
    ] as const
  ) {
    await using server = new Server(folder, "--workers", "2", ...flags);
    assert.equal((await server.child.exited).code, 1);
    await server[Symbol.asyncDispose]();
    assert.match(server.child.lastOutput, reason);
  }
});
