import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { DatabaseSync } from "node:sqlite";
import { Hono } from "hono";
import { copySqliteFile } from "../../../mod/engine/mod.ts";
import { failureResponse } from "../../../mod/kit/error_response.ts";
import { exportRoutes, type ExportRoutesOptions } from "../../../mod/ops/tables/export/mod.ts";
import { tableExports } from "../../../mod/ops/tables/export/routes.ts";
import { ServiceError } from "../../../mod/errors.ts";
import type { AdminEnv } from "../../../mod/ops/admin/admin_guard.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { anyTable, TestDatabase } from "../../engine/support.ts";
import { databaseOf } from "./support.ts";

interface Served {
  readonly database: TestDatabase;
  readonly handle: (request: Request) => Response | Promise<Response>;
  readonly get: (path: string, init?: RequestInit) => Promise<Response>;
  /** Path of the staged restore's database. */
  staged: string | null;
  /** Lines of the log. */
  readonly logged: string[];
  /** Resolves with the first of them. */
  readonly reported: Promise<void>;
}

/** The routes on a database with a table of this many documents of 1,000 characters. */
function serve(documents: number, limits?: ExportRoutesOptions["limits"]): Served & Disposable {
  const database = new TestDatabase({
    items: anyTable(),
    odd: anyTable(),
    _users: anyTable(),
    _codes: anyTable(),
  });
  for (let from = 0; from < documents; from += 5_000) {
    database.commit((tx) => {
      for (let n = from; n < Math.min(from + 5_000, documents); n++) {
        tx.insert("items", { n, body: "x".repeat(1000) });
      }
    });
  }
  database.commit((tx) => {
    tx.insert("odd", { half: "\udfff" });
    tx.insert("_users", { email: "a@example.com" });
  });
  const logged: string[] = [];
  const reported = Promise.withResolvers<void>();
  const log = (_level: string, message: string, fields?: Record<string, unknown>) => {
    logged.push(`${message} ${fields?.error}`);
    reported.resolve();
  };
  const app = new Hono();
  app.onError((error) => failureResponse(error, log));
  app.notFound(() => new Response("elsewhere", { status: 404 }));
  app.route(
    "/api/admin",
    exportRoutes({
      databasePath: database.path,
      stagedDatabase: () => Promise.resolve(served.staged),
      log,
      ...(limits && { limits }),
    }),
  );
  const served: Served & Disposable = {
    database,
    staged: null,
    logged,
    reported: reported.promise,
    handle: (request) => app.fetch(request),
    get: async (path, init) => await app.request(`/api/admin/export/${path}`, init),
    [Symbol.dispose]: () => database[Symbol.dispose](),
  };
  return served;
}

/** Whether a connection has an old snapshot, which prevents a full checkpoint. */
function hasReaders(database: TestDatabase): boolean {
  database.commit((tx) => tx.insert("items", { n: -1 }));
  using file = openSqlite(database.path);
  const row = file.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number };
  return row.busy !== 0;
}

function openSqlite(path: string): Disposable & { prepare: DatabaseSync["prepare"] } {
  const file = new DatabaseSync(path, { timeout: 0 });
  return { prepare: (sql) => file.prepare(sql), [Symbol.dispose]: () => file.close() };
}

const FEW = { ...opsLimits, exportsAtOnceMax: 2 };

Deno.test("[EX10] a table is downloaded as JSONL or CSV, under its name and never cached", async () => {
  using served = serve(3);
  for (
    const [query, type, file, lines] of [
      ["items", "application/x-ndjson; charset=utf-8", "items.jsonl", 3],
      ["items?format=jsonl", "application/x-ndjson; charset=utf-8", "items.jsonl", 3],
      ["items?format=csv", "text/csv; charset=utf-8; header=present", "items.csv", 4],
      ["_users?format=csv", "text/csv; charset=utf-8; header=present", "_users.csv", 2],
    ] as const
  ) {
    const response = await served.get(query);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), type);
    assert.equal(response.headers.get("content-disposition"), `attachment; filename="${file}"`);
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal((await response.text()).trimEnd().split("\n").length, lines);
  }
  assert.equal(hasReaders(served.database), false);
});

Deno.test("[EX18] a table of the staged restore is downloaded, which leaves its file unchanged", async () => {
  using served = serve(1);
  const get = (query = "") =>
    Promise.resolve(served.handle(new Request(`http://localhost/api/admin/restore/export/items${query}`)));
  const refused = await get();
  assert.equal(refused.status, 404);
  const { errorMessage, errorData } = await refused.json();
  assert.deepEqual([errorMessage, errorData.code], ["No restore is prepared", "not_found"]);
  using staged = databaseOf([{ n: "staged" }]);
  const folder = await Deno.makeTempDir();
  served.staged = `${folder}/staged.db`;
  await copySqliteFile(staged.path, served.staged);
  const before = await Deno.readFile(served.staged);
  const response = await get();
  assert.match(await response.text(), /^\{[^\n]*"n":"staged"\}\n$/);
  assert.deepEqual(await Deno.readFile(served.staged), before);
  const filtered = await get("?where=%7B%7D");
  assert.equal(filtered.status, 400);
  assert.match(await filtered.text(), /Filters are not allowed in the URL"/);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("[EX11] unknown and secret tables are not found, other formats and unsuitable documents are bad requests", async () => {
  using served = serve(1);
  for (
    const [path, status, code, message] of [
      [
        "absent",
        404,
        "not_found",
        /Cannot export table "absent": not found\. Available tables: items, odd, _users/,
      ],
      ["_codes", 404, "not_found", /Cannot export table "_codes"/],
      ["items%2F..%2Fx", 404, "not_found", /Cannot export table "items\/..\/x"/],
      ["items?format=xml", 400, "bad_request", /Unknown export format "xml"\. Use jsonl or csv/],
      ["items?format=constructor", 400, "bad_request", /Unknown export format/],
      ["items?format=", 400, "bad_request", /Unknown export format/],
      ["odd?format=csv", 400, "bad_request", /Cannot write table "odd" as CSV.*jsonl/],
    ] as const
  ) {
    const response = await served.get(path);
    const body = await response.json();
    assert.equal(response.status, status, path);
    assert.equal(body.errorData.code, code);
    assert.match(body.errorMessage, message);
  }
  assert.deepEqual(served.logged, []);
  assert.equal(hasReaders(served.database), false);
});

Deno.test("[EX12] concurrent exports are limited until one ends or its client disconnects", async () => {
  using served = serve(2_000, FEW);
  const first = await served.get("items");
  const second = await served.get("items?format=csv");
  const reader = first.body!.getReader();
  assert.ok(((await reader.read()).value?.length ?? 0) > 0);
  const refused = await served.get("items");
  assert.equal(refused.status, 503);
  assert.equal((await refused.json()).errorData.code, "overloaded");
  assert.equal(hasReaders(served.database), true);

  await reader.cancel();
  const third = await served.get("items");
  assert.equal(third.status, 200);
  assert.equal((await third.text()).split("\n").length, 2_002);
  assert.equal((await second.text()).split("\r\n").length, 2_002);
  assert.equal((await served.get("items", { method: "HEAD" })).status, 200);
  assert.equal((await served.get("absent")).status, 404);
  assert.equal((await served.get("odd?format=csv")).status, 400);
  assert.equal(hasReaders(served.database), false, "a snapshot was left open");
  assert.deepEqual(served.logged, []);
});

Deno.test("[EX12] a disconnecting client closes the snapshot of its export", async () => {
  using served = serve(20_000, { ...FEW, exportsAtOnceMax: 1 });
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, served.handle);
  const url = `http://127.0.0.1:${server.addr.port}/api/admin/export/items`;
  const gone = new AbortController();
  const response = await fetch(url, { signal: gone.signal });
  const reader = response.body!.getReader();
  await reader.read();
  const refused = await fetch(url);
  assert.equal(refused.status, 503);
  await refused.body?.cancel();
  gone.abort();
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  });
  // Only one is allowed: the next is accepted when the server has detected the disconnect.
  let next = await fetch(url);
  while (next.status === 503) {
    await next.body?.cancel();
    next = await fetch(url);
  }
  assert.equal((await next.text()).split("\n").length, 20_001);
  assert.equal(hasReaders(served.database), false);
});

Deno.test("[EX12] a client that disconnects before the first byte leaves no snapshot behind", async () => {
  using served = serve(2_000, FEW);
  const gone = new AbortController();
  const response = served.get("items?format=csv", { signal: gone.signal });
  gone.abort();
  assert.equal((await response).status, 503);
  assert.equal(hasReaders(served.database), false);
  assert.deepEqual(served.logged, []);
});

Deno.test("[EX12] a stalled client loses its snapshot", async () => {
  using served = serve(2_000, { ...FEW, exportStallMs: 1 });
  const stalled = await served.get("items");
  await served.reported;
  await assert.rejects(stalled.text(), /stopped reading the export/);
  assert.equal(hasReaders(served.database), false);
  assert.deepEqual(served.logged, [
    "Export aborted Error: The client stopped reading the export",
  ]);
});

Deno.test("[EX12] an export is aborted if the write-ahead log grows too large", async () => {
  using served = serve(2_000, { ...FEW, exportLogBytesMax: 0, exportLogCheckMs: 1 });
  const slow = await served.get("items");
  const reader = slow.body!.getReader();
  assert.equal((await reader.read()).done, false);
  for (let n = 0; n < 20; n++) {
    served.database.commit((tx) => tx.insert("odd", { body: "x".repeat(500_000) }));
  }
  await served.reported;
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, /write-ahead log grew too large/);
  assert.equal(hasReaders(served.database), false);
  assert.match(served.logged.join(), /^Export aborted Error: The write-ahead log/);
});

Deno.test("[EX12] log size and time are checked before a CSV has any output", async () => {
  using served = serve(2_000, { ...FEW, exportLogBytesMax: 0 });
  let answered = false;
  const response = served.get("items?format=csv").finally(() => answered = true);
  while (!answered) {
    served.database.commit((tx) => tx.insert("odd", { body: "x".repeat(500_000) }));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const refused = await response;
  assert.equal(refused.status, 503);
  assert.match((await refused.json()).errorMessage, /write-ahead log grew too large before/);
  assert.equal(hasReaders(served.database), false);
  assert.match(served.logged.join(), /^Export aborted .*write-ahead log/);
  using late = serve(2_000, { ...FEW, exportMsMax: 0 });
  const tooLate = await late.get("items?format=csv");
  assert.equal(tooLate.status, 503);
  assert.match((await tooLate.json()).errorMessage, /timed out/);
});

Deno.test("[EX12] a JSONL response starts before the first matching document", async () => {
  using served = serve(2_000, { ...FEW, exportMsMax: 0 });
  const where = JSON.stringify({ conditions: [{ field: "n", op: "eq", value: -5 }] });
  const response = await served.get("items", { method: "POST", body: where });
  assert.equal(response.status, 200);
  await assert.rejects(response.text(), /timed out/);
});

Deno.test("[EX12] an export over the maximum duration loses its snapshot", async () => {
  using served = serve(2_000, { ...FEW, exportMsMax: 0 });
  await assert.rejects((await served.get("items")).text(), /timed out/);
  assert.equal(hasReaders(served.database), false);
});

Deno.test("[EX13] nothing is read ahead of the client, and other work runs between pieces", async () => {
  using served = serve(2_000);
  const response = await served.get("items?format=csv");
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  let chunks = 0;
  for await (const chunk of response.body!) {
    chunks++;
    assert.ok(chunk.length <= opsLimits.exportPieceChars + 2_000, String(chunk.length));
  }
  counting = false;
  assert.ok(chunks > 30, String(chunks));
  assert.ok(turns >= chunks, `${turns} turns of the event loop for ${chunks} pieces`);
  await new Promise((resolve) => setImmediate(resolve));
});

Deno.test("[EX1] over HTTP an export contains a single state too, however slowly it is read", async () => {
  using served = serve(2_000);
  const response = await served.get("items");
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    served.database.commit((tx) => tx.insert("items", { n: -1 }));
  }
  const numbers = text.trimEnd().split("\n").map((line) => JSON.parse(line).n);
  assert.deepEqual(numbers, Array.from({ length: 2_000 }, (_, n) => n));
});

Deno.test("[EX12] [EX18] a database is built only for an export that may run, and removed after every outcome", async () => {
  using served = serve(1);
  const events: string[] = [];
  let build = () => Promise.resolve(served.database.path);
  const exported = tableExports({
    databasePath: "/absent",
    log: () => {},
    limits: { ...FEW, exportsAtOnceMax: 1 },
  });
  const app = new Hono<AdminEnv>();
  app.onError((error) => failureResponse(error, () => {}));
  app.post("/:table", (c) =>
    exported(c, {
      table: c.req.param("table"),
      build() {
        events.push("built");
        return build();
      },
      onEnd: () => void events.push("removed"),
    }));
  const statusOf = async (path: string) => {
    const response = await app.request(path, { method: "POST" });
    await response.text();
    return [response.status, ...events.splice(0)];
  };
  assert.deepEqual(await statusOf("/items?format=xml"), [400]);
  assert.deepEqual(await statusOf("/items"), [200, "built", "removed"]);
  assert.deepEqual(await statusOf("/absent"), [404, "built", "removed"]);
  const building = Promise.withResolvers<string>();
  build = () => building.promise;
  const first = statusOf("/items");
  assert.deepEqual((await app.request("/items", { method: "POST" })).status, 503);
  building.reject(new ServiceError("disk_full"));
  assert.deepEqual(await first, [507, "built", "removed"]);
  build = () => Promise.resolve(served.database.path);
  assert.deepEqual(await statusOf("/items"), [200, "built", "removed"]);
});
