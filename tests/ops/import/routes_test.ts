/** Imports over HTTP: responses and leftovers. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import { z } from "zod";
import type { FunctionHost } from "../../../mod/functions/host_port.ts";
import { defineTable } from "../../../mod/functions/api/mod.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { failed } from "../../../mod/functions/outcome.ts";
import { failureResponse } from "../../../mod/kit/error_response.ts";
import { SystemCalls } from "../../../mod/functions/system_calls.ts";
import { AdminWork } from "../../../mod/ops/admin/mod.ts";
import type { AdminEnv } from "../../../mod/ops/admin/admin_guard.ts";
import { importRoutes } from "../../../mod/ops/tables/import/mod.ts";
import { until } from "../../support/waiting.ts";
import { ImportWorld, jsonl } from "./support/import_world.ts";

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown> & {
    readonly errorMessage?: string;
    readonly errorData?: { code: string };
  };
}

class RoutesWorld extends ImportWorld {
  readonly tempDir = Deno.makeTempDirSync();
  readonly logged: string[] = [];
  /** Principals of all calls of the importer. */
  readonly callers = new Set<string | null>();
  readonly calls = new SystemCalls({
    mutate: (call) => this.host.mutate(call),
    query: (call) => this.query(call),
  });
  readonly #app: Hono<AdminEnv>;

  constructor(mutate?: FunctionHost["mutate"]) {
    super({ notes: defineTable({ text: z.string(), n: z.number().optional() }) });
    const log = (_: string, message: string) => void this.logged.push(message);
    this.#app = new Hono<AdminEnv>().use("*", async (c, next) => {
      c.set("adminId", "root");
      c.set("sessionId", "session");
      c.set("confirmAccess", () => Promise.resolve());
      await next();
    }).route(
      "/api/admin",
      importRoutes({
        port: {
          mutate: (call) => {
            this.callers.add(call.identity.principal);
            return mutate === undefined ? this.host.mutate(call) : mutate(call);
          },
        },
        works: this.nextServer(),
        tempDir: this.tempDir,
        bodyBytesMax: 100_000,
        stallMs: 200,
        log,
      }),
    );
    this.#app.onError((error) => failureResponse(error, log));
  }

  async post(path: string, body: BodyInit, signal: AbortSignal | null = null): Promise<Answer> {
    const response = await this.#app.request(`/api/admin/import/${path}`, { method: "POST", body, signal });
    return { status: response.status, body: await response.json() };
  }

  // deno-lint-ignore no-explicit-any -- a body of JSON
  async status(): Promise<any> {
    return await (await this.#app.request("/api/admin/import")).json();
  }

  /** Background tasks of a server on this database. */
  nextServer(): AdminWork {
    return new AdminWork({ calls: this.calls, now: () => this.clock.now, log: () => {} });
  }

  /** Background tasks as administrators see them. */
  async works(): Promise<Record<string, unknown>[]> {
    const call = { udfPath: "_admin/work:list", args: {}, identity: anonymous, origin: "system" } as const;
    const outcome = await this.query(call);
    assert.ok(outcome.ok);
    return JSON.parse(outcome.value) as Record<string, unknown>[];
  }

  async asAdmin(udfPath: string, args: Record<string, unknown>): Promise<void> {
    const { outcome } = await this.host.mutate({ udfPath, args, identity: anonymous, origin: "system" });
    assert.ok(outcome.ok, JSON.stringify(outcome));
  }

  async forget(workId: unknown): Promise<void> {
    await this.asAdmin("_admin/work:forget", { workId });
  }

  /** Files left in the folder of bodies. */
  leftOver(): string[] {
    return [...Deno.readDirSync(this.tempDir)].map(({ name }) => name);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await Deno.remove(this.tempDir, { recursive: true });
  }
}

const row = jsonl([{ text: "a" }]);

Deno.test("[IM12] a body is imported, and the response has the number of rows, the table and the ts", async () => {
  await using world = new RoutesWorld();
  assert.deepEqual(await world.post("notes", jsonl([{ text: "a" }, { text: "b" }])), {
    status: 200,
    body: { imported: 2, table: "notes", ts: 2 },
  });
  assert.deepEqual(await world.post("notes?mode=replace&format=csv", "text,n\nc,42\n"), {
    status: 200,
    body: { imported: 1, table: "notes", ts: 6 },
  });
  assert.deepEqual(await world.fields("notes"), [{ text: "c", n: 42 }]);
  assert.deepEqual(world.leftOver(), []);
  assert.deepEqual([...world.callers], ["admin:root"]);
});

Deno.test("[IM12] the columns of a CSV file are imported into the fields given for them", async () => {
  await using world = new RoutesWorld();
  const path = (columns: unknown) =>
    `notes?format=csv&columns=${encodeURIComponent(JSON.stringify(columns))}`;
  const csv = "Title,Author,Count\na,Ada,1\nb,Bob,2\n";
  assert.equal((await world.post(path(["text", null, "n"]), csv)).status, 200);
  assert.deepEqual(await world.fields("notes"), [{ text: "a", n: 1 }, { text: "b", n: 2 }]);
  const short = await world.post(path(["text"]), csv);
  assert.match(short.body.errorMessage ?? "", /line 1: the header has 3 columns, and 1 fields were given/);
  assert.equal((await world.post("notes?format=csv&columns=text", csv)).status, 400);
});

Deno.test("[IM18] a dry run reports errors by line and writes nothing", async () => {
  await using world = new RoutesWorld();
  assert.deepEqual((await world.post("notes?dryRun=true", jsonl([{ text: "a" }, { text: "b" }]))).body, {
    table: "notes",
    rows: 2,
    faults: [],
    more: false,
  });
  const { status, body } = await world.post("notes?dryRun=true", `${row}{"text":1}\n${row}not json\n`);
  const { faults } = body as unknown as { faults: { line: number; message: string }[] };
  assert.deepEqual([status, body["rows"], faults.map(({ line }) => line)], [200, 0, [2, 4]]);
  assert.match(faults[0]?.message ?? "", /text: /);
  assert.match(faults[1]?.message ?? "", /Not JSON/);
  const columns = await world.post("notes?format=csv&dryRun=true", "wrong\na\n");
  const [fault] = columns.body["faults"] as { line: number | null; message: string }[];
  assert.equal(fault?.line, null);
  assert.match(fault?.message ?? "", /no field "wrong"/);
  assert.equal((await world.post("nothing?dryRun=true", row)).status, 404);
  assert.deepEqual(await world.rows("notes"), []);
  assert.deepEqual(world.leftOver(), []);
});

for (
  const [name, path, body, status, code, message] of [
    ["a bad row", "notes", `${row}{"text":1}\n`, 400, "bad_request", /notes\.jsonl, line 2: .*text: /],
    ["an unknown column", "notes?format=csv", "wrong\na\n", 400, "bad_request", /no field "wrong"/],
    ["an unknown table", "nothing", row, 404, "not_found", /There is no table "nothing"/],
    ["a table of the service", "_users", row, 404, "not_found", /it is a system table/],
    ["an unknown mode", "notes?mode=merge", row, 400, "bad_request", /insert, upsert, replace/],
    ["a source with a line break", "notes?source=a%0Ab", row, 400, "bad_request", /source/],
    ["an unknown format", "notes?format=xml", row, 400, "bad_request", /jsonl, csv/],
    ["a body that is too large", "notes", row.repeat(10_000), 413, "body_too_large", /too large/],
  ] as const
) {
  Deno.test(`[IM12] rejected: ${name}`, async () => {
    await using world = new RoutesWorld();
    const answer = await world.post(path, body);
    assert.equal(answer.status, status);
    assert.equal(answer.body.errorData?.code, code);
    assert.match(answer.body.errorMessage ?? "", message);
    assert.deepEqual(await world.rows("notes"), []);
    assert.deepEqual(world.leftOver(), []);
  });
}

Deno.test("[IM13] one import runs at a time, and the next is accepted afterwards", async () => {
  await using world = new RoutesWorld();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const first = world.post("notes", readable);
  await writer.write(new TextEncoder().encode(row));
  const second = await world.post("notes", row);
  assert.deepEqual([second.status, second.body.errorData?.code], [503, "overloaded"]);
  await writer.close();
  assert.equal((await first).status, 200);
  assert.equal((await world.post("notes", row)).status, 200);
  assert.equal((await world.rows("notes")).length, 2);
});

Deno.test("[IM13] an incomplete or stalled body writes nothing", async () => {
  await using world = new RoutesWorld();
  const halves = (end: (controller: ReadableStreamDefaultController<Uint8Array>) => void) =>
    new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(row)),
      pull: end,
    });
  const broken = await world.post("notes", halves((controller) => controller.error(new Error("reset"))));
  assert.deepEqual([broken.status, broken.body.errorMessage], [400, "The request body was incomplete"]);
  const still = await world.post("notes", halves(() => {}));
  assert.deepEqual([still.status, still.body.errorMessage], [
    400,
    "The request body stalled",
  ]);
  assert.deepEqual(await world.rows("notes"), []);
  assert.deepEqual(world.leftOver(), []);
});

Deno.test("[IM13] nothing is written for a client that disconnected during the check", async () => {
  const gone = new AbortController();
  const world: RoutesWorld = new RoutesWorld((call) => {
    gone.abort();
    return world.host.mutate(call);
  });
  await using _ = world;
  const answer = await world.post("notes", row, gone.signal);
  assert.deepEqual([answer.status, answer.body.errorData?.code], [400, "bad_request"]);
  assert.deepEqual(await world.rows("notes"), []);
});

Deno.test("[IM13] for a disconnected client deleting and writing stop, and the log has the progress", async () => {
  const gone = new AbortController();
  const world: RoutesWorld = new RoutesWorld((call) => {
    if (call.udfPath === "_system/import:empty") gone.abort();
    return world.host.mutate(call);
  });
  await using _ = world;
  await world.post("notes", row.repeat(600));
  const answer = await world.post("notes?mode=replace", row, gone.signal);
  assert.equal(answer.body.errorData?.code, "import_stopped");
  assert.match(
    answer.body.errorMessage ?? "",
    /The client disconnected\n.* 512 documents deleted before, 0 rows written/,
  );
  assert.equal((await world.rows("notes")).length, 88);
  assert.equal(world.logged.at(-1), "Import interrupted");
});

Deno.test("[IM8] over HTTP an interrupted import and one that could not start are reported", async () => {
  let calls = 0;
  let failsAt = 0;
  const world: RoutesWorld = new RoutesWorld(async (call) => {
    if (++calls < failsAt) return await world.host.mutate(call);
    return { outcome: failed("internal", "disk is full", { retryable: true }), ts: 1, replayed: false };
  });
  await using _ = world;
  const early = await world.post("notes", row);
  assert.deepEqual([early.status, early.body.errorData?.code], [503, "unavailable"]);
  // Two batches are checked, the first is written, the second fails.
  [calls, failsAt] = [0, 4];
  const late = await world.post("notes", row.repeat(300));
  assert.deepEqual([late.status, late.body.errorData?.code], [500, "import_stopped"]);
  assert.match(late.body.errorMessage ?? "", /disk is full\n.*: 256 rows written and kept/);
  assert.equal((await world.rows("notes")).length, 256);
});

Deno.test("[IM21] the progress of an import and the end of the last one are reported", async () => {
  const received: { running: Record<string, unknown> | null; last: Record<string, unknown> | null }[] = [];
  const look = async (world: RoutesWorld) => received.push(await world.status());
  let inWriter: () => Promise<unknown> = () => Promise.resolve();
  await using world: RoutesWorld = new RoutesWorld(async (call) => {
    await inWriter();
    return await world.host.mutate(call);
  });
  assert.deepEqual(await world.status(), { running: null, last: null });
  inWriter = () => look(world);
  const text = jsonl(Array.from({ length: 300 }, (_, n) => ({ text: "a".repeat(100), n })));
  assert.equal((await world.post("notes?mode=replace", text)).status, 200);
  const steps = received.map(({ running }) => running);
  assert.deepEqual([...new Set(steps.map((running) => running?.["step"]))], [
    "checking",
    "deleting",
    "writing",
  ]);
  for (const running of steps) {
    assert.equal(running?.["table"], "notes");
    assert.equal(running?.["of"], text.length);
    assert.equal(running?.["dryRun"], false);
  }
  // The second batch of each pass reports the first.
  assert.deepEqual(steps.map((running) => running?.["rows"]), [0, 256, 0, 0, 256]);
  assert.equal(steps.at(-1)?.["done"], text.length);
  const { running, last } = await world.status();
  assert.equal(running, null);
  assert.equal(last?.["imported"], 300);
  assert.equal(last?.["error"], null);

  inWriter = () => Promise.resolve();
  assert.equal((await world.post("notes", '{"text":1}')).status, 400);
  assert.match(String((await world.status()).last?.["error"]), /Nothing was imported[^]*line 1/);
  assert.equal((await world.post("notes?detached=perhaps", row)).status, 400);
});

Deno.test("[IM21] a detached import continues without its client, others do not", async () => {
  for (const detached of ["false", "true"]) {
    const client = new AbortController();
    await using world: RoutesWorld = new RoutesWorld(async (call) => {
      client.abort();
      return await world.host.mutate(call);
    });
    await world.post(`notes?detached=${detached}`, row, client.signal).catch(() => {});
    await until(async () => (await world.status()).last !== null);
    assert.equal((await world.fields("notes")).length, detached === "true" ? 1 : 0);
  }
});

/** A world in which the third written batch blocks until released. */
function heldWorld(): { world: RoutesWorld; held: Promise<void>; release: () => void } {
  const [held, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let writes = 0;
  const world: RoutesWorld = new RoutesWorld(async (call) => {
    if (call.udfPath === "_system/import:write" && ++writes === 3) {
      held.resolve();
      await going.promise;
    }
    return await world.host.mutate(call);
  });
  return { world, held: held.promise, release: going.resolve };
}

for (const mode of ["insert", "replace"] as const) {
  Deno.test(`[IM22] an import interrupted by a server stop is reported after the restart: ${mode}`, async () => {
    const { world, held, release } = heldWorld();
    await using _ = world;
    for (let n = 0; n < 3; n++) await world.insert("notes", { text: "before" });
    const answer = world.post(`notes?mode=${mode}`, row.repeat(700));
    await held;
    const [running] = await world.works();
    assert.deepEqual([running?.["state"], running?.["changed"]], ["running", 512]);
    await world.nextServer().start();
    const [received] = await world.works();
    assert.deepEqual(
      [
        received?.["kind"],
        received?.["table"],
        received?.["mode"],
        received?.["state"],
        received?.["changed"],
        received?.["emptied"],
      ],
      ["importRows", "notes", mode, "interrupted", 512, mode === "replace" ? 3 : undefined],
    );
    // If it still exists, it does not continue, so the report remains true.
    release();
    const { status, body } = await answer;
    assert.deepEqual([status, body.errorData?.code], [500, "import_stopped"]);
    assert.match(body.errorMessage ?? "", /The server that ran the import was replaced\n.*512 rows written/);
    assert.equal((await world.rows("notes")).length, mode === "replace" ? 512 : 515);
    assert.equal((await world.works())[0]?.["state"], "interrupted");
    await world.forget(received?.["_id"]);
    assert.deepEqual(await world.works(), []);
  });
}

Deno.test("[IM22] an import is canceled between batches; a running one cannot be deleted", async () => {
  const { world, held, release } = heldWorld();
  await using _ = world;
  const answer = world.post("notes", row.repeat(700));
  await held;
  const [running] = await world.works();
  await world.forget(running?.["_id"]);
  assert.equal((await world.works()).length, 1);
  await world.asAdmin("_admin/work:cancel", { workId: running?.["_id"] });
  release();
  assert.match((await answer).body.errorMessage ?? "", /The import was canceled\n.*512 rows written/);
  assert.deepEqual((await world.works()).map(({ state, changed }) => [state, changed]), [["canceled", 512]]);
  assert.equal((await world.rows("notes")).length, 512);
});

Deno.test("[IM22] an import stopped while writing stays listed, one without writes does not", async () => {
  let writes = 0;
  const world: RoutesWorld = new RoutesWorld(async (call) => {
    if (call.udfPath !== "_system/import:write" || ++writes < 2) return await world.host.mutate(call);
    return { outcome: failed("internal", "disk is full", { retryable: true }), ts: 1, replayed: false };
  });
  await using _ = world;
  assert.equal((await world.post("notes?dryRun=true", row)).status, 200);
  assert.equal((await world.post("notes", '{"text":1}')).status, 400);
  assert.equal((await world.post("nothing", row)).status, 404);
  assert.deepEqual(await world.works(), []);
  assert.equal((await world.post("notes", row.repeat(300))).status, 500);
  const [stopped] = await world.works();
  assert.deepEqual([stopped?.["state"], stopped?.["changed"]], ["failed", 256]);
  assert.match(String(stopped?.["error"]), /disk is full[^]*256 rows written and kept/);
});
