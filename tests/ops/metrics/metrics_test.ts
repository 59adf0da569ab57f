/** Metrics without a server: access, and exposed values. */
import assert from "node:assert/strict";
import { failed, type Outcome } from "../../../mod/functions/outcome.ts";
import type { RunEnd } from "../../../mod/functions/host/mod.ts";
import { overloaded, tookTooLong } from "../../../mod/functions/host/outcomes.ts";
import { Exposition } from "../../../mod/ops/metrics/exposition.ts";
import { Metrics, type ServerFigures } from "../../../mod/ops/metrics/mod.ts";
import { requestPath } from "../../../mod/kit/http_request.ts";
import { statsLimits } from "../../../mod/ops/limits.ts";
import { routeClass } from "../../../mod/ops/metrics/mod.ts";
import { Histogram, RunStats } from "../../../mod/ops/stats/mod.ts";
import { parseMetrics, valueOf } from "../support/prometheus_text.ts";

const figures: ServerFigures = {
  version: "1.2.3",
  runtime: "2.9.6",
  startedAt: 1_700_000_000_500,
  ts: () => 42,
  commits: () => 40,
  mutationsWaiting: () => 3,
  sockets: () => 2,
  subscriptions: () => 5,
  sharedQueries: () => 4,
  transitions: () => 9,
  rooms: () => ({ rooms: 2, members: 7 }),
  streams: () => ({ open: 3, readers: 8, bytes: 4_096 }),
  isolates: () => ({
    writer: { running: 1, starts: 2, lost: 1 },
    reader: { running: 2, starts: 2, lost: 0 },
    runner: { running: 0, starts: 0, lost: 0 },
  }),
  files: () => ({ uploads: 1, uploadedBytes: 10, reads: 2, readBytes: 20 }),
  backups: () => Promise.resolve({ made: 0, failed: 1, lastAt: null, lastMs: null }),
  databaseBytes: () => Promise.resolve({ data: 4096, wal: 0 }),
  memory: () => Promise.resolve({ main: 1000, isolates: null }),
};

function metrics(
  { token = null, changes = {} }: { token?: string | null; changes?: Partial<ServerFigures> } = {},
) {
  const stats = new RunStats({ now: Date.now });
  const made = new Metrics({ token, authOperations: ["sign_in"], runs: stats.totals });
  made.define({ ...figures, ...changes });
  return Object.assign(made, { stats });
}

/** The end of a run. */
function ended(outcome: Outcome, ms: number): RunEnd {
  const identity = { principal: null, userId: null, adminId: null, sessionId: null };
  const call = { udfPath: "notes:add", identity };
  return { call, outcome, ms, durationMs: ms, queuedMs: 0, use: null, request: 1, ts: null, version: null };
}

const request = (headers: HeadersInit = {}, method = "GET") =>
  new Request("http://server/metrics", { headers, method });

const read = async (made: Metrics) => parseMetrics(await (await made.respond(request())).text());

const ok: Outcome = { ok: true, value: "1", logLines: [] };

const TOKEN = "s3cret-token.of_24~chars";
const tokens: readonly { readonly name: string; readonly header: string | null; readonly status: number }[] =
  [
    { name: "[ME3] the token", header: `Bearer ${TOKEN}`, status: 200 },
    { name: "[ME3] the token, in the way others write it", header: `bearer  ${TOKEN} `, status: 200 },
    { name: "[ME4] no token", header: null, status: 401 },
    { name: "[ME4] an empty one", header: "Bearer ", status: 401 },
    { name: "[ME4] another of the same length", header: `Bearer ${TOKEN.replace("s3", "t3")}`, status: 401 },
    { name: "[ME4] its beginning", header: `Bearer ${TOKEN.slice(0, -1)}`, status: 401 },
    { name: "[ME4] one that begins with it", header: `Bearer ${TOKEN}x`, status: 401 },
    { name: "[ME4] the token without its scheme", header: TOKEN, status: 401 },
    { name: "[ME4] the token as a password", header: `Basic ${btoa(`prometheus:${TOKEN}`)}`, status: 401 },
  ];

for (const { name, header, status } of tokens) {
  Deno.test(name, async () => {
    using made = metrics({ token: TOKEN });
    for (const method of ["GET", "HEAD", "POST"]) {
      const answer = await made.respond(request(header === null ? {} : { Authorization: header }, method));
      const text = await answer.text();
      assert.equal(answer.status, status === 200 && method === "POST" ? 405 : status, method);
      assert.equal(answer.headers.get("cache-control"), "no-store");
      if (status === 200) continue;
      assert.equal(answer.headers.get("www-authenticate"), "Bearer");
      assert.equal(JSON.parse(text).errorData.code, "invalid_token");
      assert.ok(!text.includes("syncline_"));
    }
  });
}

Deno.test("[ME2] without a token anyone can read them, in Prometheus text format", async () => {
  using made = metrics();
  for (const headers of [{}, { Authorization: "Bearer anything" }]) {
    const answer = await made.respond(request(headers));
    assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert.ok(parseMetrics(await answer.text()).size > 20);
  }
});

Deno.test("[ME5] every metric has a help text and, if applicable, a unit, and every histogram adds up", async () => {
  using made = metrics();
  made.stats.runEnded("query", ended(ok, 700));
  for (const [name, { type, help, samples }] of await read(made)) {
    assert.match(name, /^syncline_[a-z_]+$/);
    assert.ok(help.length > 10, name);
    assert.equal(name.endsWith("_total"), type === "counter", name);
    if (type !== "histogram") continue;
    const labelled = Map.groupBy(samples.get(`${name}_bucket`) ?? [], ({ labels }) => labels.kind);
    for (const [kind, buckets] of labelled) {
      const labels: Record<string, string> = kind === undefined ? {} : { kind };
      const counts = buckets.map(({ value }) => value);
      assert.deepEqual(counts, counts.toSorted((a, b) => a - b), name);
      assert.equal(buckets.at(-1)?.labels.le, "+Inf");
      assert.equal(
        counts.at(-1),
        valueOf(new Map([[name, { type, help, samples }]]), `${name}_count`, labels),
      );
    }
  }
});

Deno.test("[ME5] values are read on each scrape, and missing ones omitted", async () => {
  let sockets = 2;
  using made = metrics({
    changes: {
      sockets: () => sockets,
      backups: () => Promise.resolve({ made: 1, failed: 0, lastAt: 1_500, lastMs: 250 }),
      memory: () => Promise.resolve({ main: 1, isolates: new Map([["writer", 7] as const]) }),
    },
  });
  assert.equal(valueOf(await read(made), "syncline_sockets"), 2);
  sockets = 1;
  const now = await read(made);
  assert.equal(valueOf(now, "syncline_sockets"), 1);
  assert.equal(valueOf(now, "syncline_backup_last_success_timestamp_seconds"), 1.5);
  assert.equal(valueOf(now, "syncline_backup_last_duration_seconds"), 0.25);
  assert.equal(valueOf(now, "syncline_memory_resident_bytes", { process: "writer" }), 7);
  using without = metrics();
  const nothing = await read(without);
  assert.equal(valueOf(nothing, "syncline_backup_last_success_timestamp_seconds"), undefined);
  assert.equal(valueOf(nothing, "syncline_memory_resident_bytes", { process: "writer" }), undefined);
  assert.equal(valueOf(nothing, "syncline_memory_resident_bytes", { process: "main" }), 1000);
  assert.equal(valueOf(nothing, "syncline_backups_total", { outcome: "error" }), 1);
  assert.equal(valueOf(nothing, "syncline_start_time_seconds"), 1_700_000_000.5);
  assert.equal(valueOf(nothing, "syncline_build_info", { version: "1.2.3", deno: "2.9.6" }), 1);
});

const endings: readonly { readonly name: string; readonly outcome: Outcome; readonly counted: string }[] = [
  { name: "[ME6] a success", outcome: ok, counted: "success" },
  { name: "[ME6] an error of the user's", outcome: failed("user", "no"), counted: "user_error" },
  { name: "[ME6] wrong arguments", outcome: failed("args", "no"), counted: "user_error" },
  { name: "[ME6] an unknown function", outcome: failed("unknown_function", "no"), counted: "user_error" },
  { name: "[ME6] a bug", outcome: failed("internal", "x is not a function"), counted: "error" },
  { name: "[ME6] a query over its time", outcome: tookTooLong("query", 30_000), counted: "timeout" },
  { name: "[ME6] a mutation over its time", outcome: tookTooLong("mutation", 5_000), counted: "timeout" },
  { name: "[ME6] an action over its time", outcome: tookTooLong("action", 600_000), counted: "timeout" },
  { name: "[ME6] a full queue", outcome: overloaded("many"), counted: "refused" },
];

for (const { name, outcome, counted } of endings) {
  Deno.test(name, async () => {
    using made = metrics();
    made.stats.runEnded("mutation", ended(outcome, 3));
    const families = await read(made);
    const runs = families.get("syncline_function_runs_total")?.samples.get("syncline_function_runs_total") ??
      [];
    assert.deepEqual(runs.filter(({ value }) => value > 0), [
      { labels: { kind: "mutation", outcome: counted }, value: 1 },
    ]);
    const seconds = (le: string) =>
      valueOf(families, "syncline_function_run_duration_seconds_bucket", { kind: "mutation", le });
    assert.deepEqual([seconds("0.0025"), seconds("0.005")], [0, 1]);
    assert.equal(
      valueOf(families, "syncline_function_run_duration_seconds_sum", { kind: "mutation" }),
      0.003,
    );
  });
}

Deno.test("[ME6] refusals of rate limits count, and errors that look alike do not", async () => {
  using made = metrics();
  const refused = (data: unknown): Outcome => {
    const error = { kind: "user", message: "Too many", data: { code: "rate_limited", data } } as const;
    return { ok: false, error, logLines: [] };
  };
  made.stats.runEnded("mutation", ended(refused({ name: "send", retryAfter: 5 }), 1));
  made.stats.runEnded("mutation", ended(refused({ name: "send", retryAfter: 4 }), 1));
  made.stats.runEnded("mutation", ended(refused(null), 1));
  made.stats.runEnded("mutation", ended(refused({ name: "x".repeat(1_000) }), 1));
  made.stats.runEnded("action", ended(refused({ name: "send", retryAfter: 5 }), 1));
  for (let n = 0; n < statsLimits.refusedLimitsMax; n++) {
    made.stats.runEnded("mutation", ended(refused({ name: `limit ${n}`, retryAfter: 5 }), 1));
  }
  const { refusedLimits } = made.stats.totals;
  assert.equal(refusedLimits.limits[0]?.count, 2);
  assert.equal(refusedLimits.limits.length, statsLimits.refusedLimitsMax);
  const total = valueOf(await read(made), "syncline_rate_limit_refusals_total");
  assert.equal(total, 2 + statsLimits.refusedLimitsMax);
});

Deno.test("[ME5] rooms and streams are read at the leader, and absent on its followers", async () => {
  const names = ["rooms", "room_members", "streams", "stream_readers", "stream_memory_bytes"];
  const valuesOf = async (made: Metrics) => {
    const families = await read(made);
    return names.map((name) => valueOf(families, `syncline_${name}`));
  };
  using made = metrics();
  assert.deepEqual(await valuesOf(made), [2, 7, 3, 8, 4_096]);
  using follower = metrics({ changes: { rooms: () => null, streams: () => null } });
  assert.deepEqual(await valuesOf(follower), names.map(() => undefined));
});

Deno.test("[ME7] the set of series does not depend on requests", async () => {
  using made = metrics();
  const series = async () =>
    [...(await read(made)).values()].flatMap(({ samples }) =>
      [...samples].flatMap(([name, all]) => all.map(({ labels }) => `${name} ${JSON.stringify(labels)}`))
    );
  const before = await series();
  for (let i = 0; i < 50; i++) {
    const path = `/${["", "api/", "_/", "api/auth/"][i % 4]}${crypto.randomUUID()}`;
    made.requests.count(path, new Response(null, { status: 200 + i * 7 % 300 }));
    await made.requests.count(path, Promise.resolve(new Response(null, { status: 599 })));
    made.countAuth("sign_in", [200, 401, 429, 500][i % 4] ?? 0);
    made.stats.runEnded("route", ended(failed("internal", crypto.randomUUID()), i ** 4));
    made.stats.groupCommitted(i * 100);
  }
  assert.deepEqual(await series(), before);
  assert.ok(before.length < 400, `${before.length} series`);
});

Deno.test("[ME7] a request counts for the route class of its path", () => {
  const expected = {
    "/api/query": "call",
    "/api/mutation?x=/metrics": "call",
    "/api/action/": "call",
    "/api/sync": "sync",
    "/api/auth/signin": "auth",
    "/api/storage/abc": "storage",
    "/api/admin/backups/x": "admin",
    "/api/health": "health",
    "/api": "unknown",
    "/api/nope": "unknown",
    "/metrics": "metrics",
    "/metrics?a=b": "metrics",
    "/metrics/x": "app",
    "/_/index.html": "dashboard",
    "/": "app",
    "/?api/query": "app",
    "/page/api/query": "app",
  };
  for (const [path, route] of Object.entries(expected)) {
    assert.equal(routeClass(requestPath({ url: `http://a${path}` })), route, path);
  }
});

Deno.test("[ME7] requests count once answered, failed ones as 5xx", async () => {
  using made = metrics();
  const call = "/api/query";
  const answer = Promise.withResolvers<Response>();
  assert.equal(
    made.requests.count(call, answer.promise),
    answer.promise,
    "the response is returned unchanged",
  );
  const counted = async (status: string) =>
    valueOf(await read(made), "syncline_http_requests_total", { route: "call", status });
  assert.equal(await counted("2xx"), 0);
  answer.resolve(new Response("x"));
  await answer.promise;
  assert.equal(await counted("2xx"), 1);
  await assert.rejects(made.requests.count(call, Promise.reject<Response>(new Error("lost"))));
  assert.equal(await counted("5xx"), 1);
});

Deno.test("[ME5] a histogram counts a value in the first bound it does not exceed", () => {
  const sizes = new Histogram([1, 2, 4]);
  for (const value of [0, 1, 1.5, 2, 3, 4, 5, 100]) sizes.add(value);
  assert.deepEqual(sizes.cumulative, [2, 4, 6]);
  assert.deepEqual([sizes.count, sizes.sum], [8, 116.5]);
  sizes.unpack([0, 2 ** 32]);
  assert.equal(sizes.count, 2 ** 32 + 8, "counts since the start do not overflow");
});

Deno.test("[ME5] label values and help texts are escaped", async () => {
  const exposition = new Exposition();
  exposition.gauge({
    name: "x",
    help: "a\nb\\c",
    labels: ["label"],
    read: () => [{ labels: { label: 'quote " line\n back\\' }, value: 1 }],
  });
  const families = parseMetrics(await exposition.text());
  assert.equal(families.get("x")?.help, "a\\nb\\\\c");
  assert.equal(families.get("x")?.samples.get("x")?.[0]?.labels.label, 'quote \\" line\\n back\\\\');
});
