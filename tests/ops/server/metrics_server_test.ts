/** Metrics of a server: they change with calls, commits, sockets and files. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { type Family, parseMetrics, valueOf } from "../support/prometheus_text.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedAction, untypedMutation, untypedQuery, UserError } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text) });
export const refuse = untypedMutation({ args: {}, handler: () => { throw new UserError("no", "never"); } });
export const fail = untypedMutation({ args: {}, handler: () => { throw new Error("a bug"); } });
export const act = untypedAction({ args: {}, handler: () => 1 });
export const uploadUrl = untypedMutation({ args: {}, handler: (ctx) => ctx.storage.generateUploadUrl() });
`,
};

const account = { email: "ada@example.com", password: "correct horse" };

async function read({ url }: TestServer, headers: HeadersInit = {}): Promise<Map<string, Family>> {
  const response = await fetch(`${url}/metrics`, { headers });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return parseMetrics(text);
}

/** Growth of series, in the given order. */
type Watched = readonly [sample: string, labels?: Readonly<Record<string, string>>];

function growth(
  before: Map<string, Family>,
  after: Map<string, Family>,
  watched: readonly Watched[],
): number[] {
  return watched.map(([sample, labels]) =>
    (valueOf(after, sample, labels) ?? NaN) - (valueOf(before, sample, labels) ?? NaN)
  );
}

async function call(server: TestServer, kind: string, path: string, args = {}) {
  return (await server.post(`/api/${kind}`, { path: `notes:${path}`, args })).body;
}

Deno.test("[ME1] without --metrics the path does not exist", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await Deno.writeTextFile(join(folder, "index.html"), "STATIC");
  await Deno.writeTextFile(join(folder, "metrics"), "STATIC");
  await using server = await startTestServer({ functions, config: { staticDir: folder } });
  for (const method of ["GET", "POST", "HEAD"]) {
    const response = await fetch(`${server.url}/metrics`, { method, headers: { Accept: "text/html" } });
    const text = await response.text();
    assert.equal(response.status, 404, method);
    assert.equal(response.headers.get("cache-control"), "no-store");
    if (method !== "HEAD") assert.equal(JSON.parse(text).errorData.code, "not_found");
  }
});

Deno.test("[ME3] [ME4] a running server requires its token; an access token is rejected", async () => {
  await using server = await startTestServer({ functions, config: { metrics: { token: "of-the-scraper" } } });
  const { body } = await server.post("/api/auth/signup", account);
  for (const authorization of [`Bearer ${body.accessToken}`, "Bearer of-the-scrapes", null]) {
    const headers = authorization === null ? {} : { Authorization: authorization };
    const response = await fetch(`${server.url}/metrics`, { headers });
    assert.deepEqual([response.status, (await response.json()).errorData.code], [401, "invalid_token"]);
  }
  const families = await read(server, { Authorization: "Bearer of-the-scraper" });
  assert.equal(valueOf(families, "syncline_http_requests_total", { route: "metrics", status: "4xx" }), 3);
  assert.equal(
    valueOf(families, "syncline_auth_requests_total", { operation: "sign_up", outcome: "success" }),
    1,
  );
});

/** Checks the queries of the dashboard against the metrics of a server that has created a backup and does not replicate. */
async function checkDashboard(families: Map<string, Family>): Promise<void> {
  const dashboard = await Deno.readTextFile(new URL("../../../docs/grafana.json", import.meta.url));
  const queries: string[] = [];
  JSON.parse(dashboard, (key, value) => {
    if (key === "expr") queries.push(value);
    return value;
  });
  assert.ok(queries.length > 20);
  const table = await Deno.readTextFile(new URL("../../../docs/metrics.md", import.meta.url));
  for (const query of queries) {
    const [name = ""] = /syncline_\w+/.exec(query) ?? [];
    // Only servers that replicate have these.
    if (name.startsWith("syncline_replication_")) {
      assert.ok(table.includes(`\`${name}\``), query);
      continue;
    }
    const family = families.get(name.replace(/_bucket$/, ""));
    const samples = family?.samples.get(name);
    assert.ok(samples !== undefined && samples.length > 0, query);
    assert.equal(/rate\(|increase\(/.test(query), family?.type !== "gauge", query);
    const grouped = /by \(([^)]*)\)/.exec(query)?.[1]?.split(", ") ?? [];
    const matched = [...query.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = ""]) => label);
    for (const label of [...grouped, ...matched].filter((label) => label !== "instance")) {
      assert.ok(samples.every(({ labels }) => label in labels), `${query}: ${label}`);
    }
  }
}

Deno.test("[ME5] [ME6] [ME8] [ME10] metrics change with calls, commits, sockets, files, sign-ins and backups", async (t) => {
  await using server = await startTestServer({ functions, config: { metrics: { token: null } } });

  await t.step("[ME6] calls by kind and outcome, and their commits", async () => {
    // Starts a reader before memory is read, which happens at most once in some seconds.
    await call(server, "query", "list");
    const before = await read(server);
    for (const text of ["one", "two"]) await call(server, "mutation", "add", { text });
    await call(server, "mutation", "add", { text: 3 });
    await call(server, "mutation", "refuse");
    await call(server, "mutation", "fail");
    await call(server, "query", "list");
    await call(server, "action", "act");
    const runs = (
      kind: string,
      outcome: string,
    ): Watched => ["syncline_function_runs_total", { kind, outcome }];
    const after = await read(server);
    assert.deepEqual(
      growth(before, after, [
        runs("mutation", "user_error"),
        runs("mutation", "error"),
        runs("action", "success"),
        ["syncline_isolate_starts_total", { role: "runner" }],
        ["syncline_http_requests_total", { route: "call", status: "2xx" }],
        ["syncline_http_requests_total", { route: "call", status: "4xx" }],
        ["syncline_http_requests_total", { route: "call", status: "5xx" }],
      ]),
      [2, 1, 1, 1, 4, 2, 1],
    );
    // System functions may run in the meantime, so there may be more of these.
    const [mutations = 0, queries = 0, commits = 0, ts = 0] = growth(before, after, [
      runs("mutation", "success"),
      runs("query", "success"),
      ["syncline_commits_total"],
      ["syncline_commit_ts"],
    ]);
    assert.ok(mutations >= 2 && queries >= 1 && commits >= 2, `${mutations}, ${queries}, ${commits}`);
    assert.equal(ts, commits);
    assert.deepEqual(
      growth(before, after, [
        ["syncline_function_run_duration_seconds_count", { kind: "mutation" }],
        ["syncline_function_run_duration_seconds_count", { kind: "query" }],
        ["syncline_commit_group_mutations_sum"],
      ]),
      [mutations + 3, queries, mutations + 3],
    );
    assert.equal(valueOf(after, "syncline_isolates", { role: "writer" }), 1);
    assert.ok((valueOf(after, "syncline_function_run_duration_seconds_sum", { kind: "mutation" }) ?? 0) > 0);
    for (const file of ["data", "wal"]) {
      assert.ok((valueOf(after, "syncline_database_bytes", { file }) ?? 0) > 0, file);
    }
    for (const process of ["main", "writer", "reader"]) {
      const bytes = valueOf(after, "syncline_memory_resident_bytes", { process }) ?? 0;
      assert.ok(bytes > 5_000_000 && bytes < 4_000_000_000, `${process}: ${bytes}`);
    }
  });

  await t.step("[ME8] sockets, subscriptions and sent transitions", async () => {
    const before = await read(server);
    const sockets: Watched[] = [["syncline_sockets"], ["syncline_subscriptions"], [
      "syncline_transitions_total",
    ]];
    {
      await using socket = await server.socket();
      const add = { type: "Add", queryId: 1, udfPath: "notes:list", args: {} };
      socket.send({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications: [add] });
      await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.querySet === 1);
      assert.deepEqual(growth(before, await read(server), sockets), [1, 1, 1]);
      await call(server, "mutation", "add", { text: "seen" });
      await socket.message(({ modifications }) => JSON.stringify(modifications)?.includes("seen"));
      const open = await read(server);
      assert.deepEqual(growth(before, open, sockets), [1, 1, 2]);
      assert.ok((valueOf(open, "syncline_shared_queries") ?? 0) >= 1);
      assert.equal(valueOf(open, "syncline_http_requests_total", { route: "sync", status: "1xx" }), 1);
    }
    // The server notices a disconnect a moment later.
    let after = await read(server);
    while (valueOf(after, "syncline_sockets") !== 0) after = await read(server);
    assert.deepEqual(growth(before, after, sockets), [0, 0, 2]);
  });

  await t.step("[ME8] files and their bytes", async () => {
    const before = await read(server);
    const { value } = await call(server, "mutation", "uploadUrl");
    const uploaded = await fetch(new URL(value, server.url), { method: "POST", body: "twelve bytes" });
    const { storageId } = await uploaded.json();
    // The first read uses the routes, later ones the fast path.
    for (let i = 0; i < 3; i++) await (await fetch(`${server.url}/api/storage/${storageId}`)).text();
    await (await fetch(`${server.url}/api/storage/${storageId}`, { headers: { Range: "bytes=0-3" } })).text();
    await fetch(`${server.url}/api/storage/${storageId}`, { method: "HEAD" });
    await (await fetch(`${server.url}/api/storage/nothing`)).text();
    assert.deepEqual(
      growth(before, await read(server), [
        ["syncline_file_uploads_total"],
        ["syncline_file_upload_bytes_total"],
        ["syncline_file_reads_total"],
        ["syncline_file_read_bytes_total"],
      ]),
      [1, 12, 4, 3 * 12 + 4],
    );
  });

  await t.step("[ME8] sign-ins and refreshes by outcome", async () => {
    const before = await read(server);
    await server.post("/api/auth/signup", account);
    await server.post("/api/auth/signin", { ...account, password: "wrong password" });
    const { body } = await server.post("/api/auth/signin", account);
    await server.post("/api/auth/refresh", { refreshToken: body.refreshToken });
    await server.post("/api/auth/refresh", { refreshToken: "none" });
    const auth = (operation: string, outcome: string): Watched => [
      "syncline_auth_requests_total",
      { operation, outcome },
    ];
    assert.deepEqual(
      growth(before, await read(server), [
        auth("sign_up", "success"),
        auth("sign_in", "success"),
        auth("sign_in", "refused"),
        auth("refresh", "success"),
        auth("refresh", "refused"),
        auth("refresh", "error"),
      ]),
      [1, 1, 1, 1, 1, 0],
    );
  });

  await t.step("[ME8] backups, also those of an earlier process", async () => {
    assert.equal(valueOf(await read(server), "syncline_backup_last_success_timestamp_seconds"), undefined);
    const token = server.setupLink?.split("=").at(-1);
    const admin = { email: "root@example.com", password: "correct horse" };
    const { body } = await server.post("/api/auth/admin/setup", { token, ...admin });
    const made = await server.post("/api/admin/backups", {}, { bearer: body.accessToken });
    const families = await read(server);
    assert.equal(valueOf(families, "syncline_backups_total", { outcome: "success" }), 1);
    assert.ok((valueOf(families, "syncline_backup_last_duration_seconds") ?? 0) > 0);
    const madeAt = Date.parse(made.body.createdAt) / 1000;
    const lastAt = valueOf(families, "syncline_backup_last_success_timestamp_seconds") ?? 0;
    assert.ok(lastAt <= madeAt && lastAt > madeAt - 60, `${lastAt}, ${madeAt}`);
    await checkDashboard(families);
    await server.restart();
    const later = await read(server);
    assert.equal(valueOf(later, "syncline_backup_last_success_timestamp_seconds"), madeAt);
    assert.equal(valueOf(later, "syncline_backups_total", { outcome: "success" }), 0);
  });
});
