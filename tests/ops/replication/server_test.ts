/** Replication of a whole server: its endpoints, and an earlier point restored by the next start. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bearerOf, startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { found, until } from "../../support/waiting.ts";
import { replicationTo, statusOf } from "./replicating.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text) });
`,
};

async function add(server: TestServer, text: string): Promise<number> {
  const { body } = await server.post("/api/mutation", { path: "notes:add", args: { text } });
  assert.equal(body.status, "success", JSON.stringify(body));
  return body.ts as number;
}

const notes = async (server: TestServer) =>
  (await server.post("/api/query", { path: "notes:list", args: {} })).body.value as string[];

Deno.test("[RP11] a server without replication reports that, and has no restore points", async () => {
  await using server = await startTestServer({ functions });
  const bearer = await bearerOf(server);
  const headers = { Authorization: `Bearer ${bearer}` };
  const status = await fetch(`${server.url}/api/admin/replication`, { headers });
  assert.deepEqual(await status.json(), { enabled: false });
  for (
    const path of [
      "/api/admin/replication/snapshot",
      "/api/admin/restore/point-in-time",
      "/api/admin/restore/point-in-time/export/notes",
    ]
  ) {
    const { status, body } = await server.post(path, {}, { bearer });
    assert.equal(status, 409);
    assert.equal(body.errorData.code, "replication_off");
    assert.equal((await server.post(path, {})).status, 401);
  }
});

Deno.test("[RP4] [RP6] [RP11] [RP12] [RP13] [PT4] a replicating server reports its progress, takes snapshots, and restores an early commit", async () => {
  const place = await Deno.makeTempDir({ prefix: "syncline-replica-" });
  const replication = replicationTo(join(place, "replica"));
  try {
    await using server = await startTestServer({ functions, config: { replication } });
    const bearer = await bearerOf(server);
    const admin = async (path: string) => {
      const response = await fetch(`${server.url}/api/admin${path}`, {
        headers: { Authorization: `Bearer ${bearer}` },
      });
      return await response.json();
    };
    await add(server, "one");
    const two = await add(server, "two");
    // A time between two commits.
    const twoAt = Date.now();
    await until(() => Date.now() > twoAt);
    await add(server, "three");
    let status: Record<string, unknown> = {};
    await until(async () => {
      status = await statusOf(server, bearer);
      return status.lagCommits === 0 && status.lastSnapshot !== null;
    }, { what: "everything is shipped" });
    assert.deepEqual(Object.keys(status), [
      "enabled",
      "target",
      "generation",
      "currentTs",
      "shippedTs",
      "lagCommits",
      "lagMs",
      "journalBytes",
      "lastSegment",
      "lastSnapshot",
      "takenBy",
      "errors",
      "counts",
      "generations",
    ]);
    assert.equal(status.enabled, true);
    assert.equal(status.target, join(place, "replica"));
    assert.equal(status.shippedTs, status.currentTs);
    assert.equal(status.lagMs, 0);
    assert.equal(status.journalBytes, 0);
    assert.deepEqual(status.errors, []);
    const listed = (await admin("/backups")).replication;
    assert.deepEqual(listed.generation, status.generation);
    assert.equal(listed.generations.length, 1);

    const taken = await server.post("/api/admin/replication/snapshot", {}, { bearer });
    assert.equal(taken.status, 200, JSON.stringify(taken.body));
    assert.equal(taken.body.generation, status.generation);
    assert.ok(taken.body.snapshot.bytes > 0);

    const beyond = await server.post("/api/admin/restore/point-in-time", { toTs: 1_000_000 }, { bearer });
    assert.equal(beyond.status, 400);
    assert.equal(beyond.body.errorData.code, "point_unreachable");
    assert.match(beyond.body.errorMessage, /Restorable from/);
    for (
      const wrong of [{ toTs: -1 }, { toTs: 1, toTime: "2030-01-01T00:00:00Z" }, { toTime: "monday" }, {
        x: 1,
      }]
    ) {
      const { status } = await server.post("/api/admin/restore/point-in-time", wrong, { bearer });
      assert.equal(status, 400, JSON.stringify(wrong));
    }
    const { generation } = status;
    for (const point of [{}, { toTs: two }, { toTime: new Date(twoAt).toISOString(), generation }]) {
      const staged = await server.post("/api/admin/restore/point-in-time", point, { bearer });
      assert.equal(staged.status, 200, JSON.stringify(staged.body));
      const { ts } = staged.body.restore;
      const newest = Object.keys(point).length === 0;
      assert.ok(
        newest ? ts >= (status.currentTs as number) : ts === two,
        `${JSON.stringify(point)}: ts ${ts}`,
      );
    }
    assert.equal((await admin("/restore")).restore.ts, two);
    // The staged restore stays as it is.
    const exported = (table: string, point: object) =>
      fetch(`${server.url}/api/admin/restore/point-in-time/export/${table}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" },
        body: JSON.stringify(point),
      });
    const early = await exported("notes", { toTime: new Date(twoAt).toISOString() });
    assert.equal(early.headers.get("content-type"), "application/x-ndjson; charset=utf-8");
    const lines = (await early.text()).trimEnd().split("\n");
    assert.deepEqual(lines.map((line) => JSON.parse(line).text), ["one", "two"]);
    for (
      const [table, point, code] of [
        ["notes", { toTs: 1_000_000 }, "point_unreachable"],
        ["absent", { toTs: two }, "not_found"],
      ] as const
    ) {
      const refused = await exported(table, point);
      assert.equal((await refused.json()).errorData.code, code);
    }
    const unread = await exported("notes", { toTs: two });
    await unread.body?.cancel();
    const incoming = join(server.dataDir, "incoming");
    await until(() => [...Deno.readDirSync(incoming)].length === 0, {
      what: "rebuilt databases are removed",
    });
    assert.equal((await admin("/restore")).restore.ts, two);
    await add(server, "four");
    assert.equal((await notes(server)).length, 4, "the running server continues");
    await server.restart();
    assert.deepEqual(await notes(server), ["one", "two"]);
    await add(server, "five");
    await until(async () => {
      const { generation, lagCommits } = await statusOf(server, bearer);
      return generation !== status.generation && lagCommits === 0;
    }, { what: "it continues in another generation" });
  } finally {
    await Deno.remove(place, { recursive: true });
  }
});

Deno.test("[RP11] the age of waiting commits is reported before they are shipped", async () => {
  await using folder = new TempFolder();
  const before = performance.now();
  await using server = await startTestServer({
    functions,
    config: { replication: replicationTo(folder.at("replica"), { everyMs: 3_600_000 }) },
  });
  const bearer = await bearerOf(server);
  const status = () => statusOf(server, bearer);
  // After the snapshot of the start, nothing is shipped for an hour.
  const { lagCommits: waiting } = await found(async () => {
    const received = await status();
    return received.lastSnapshot === null ? null : received;
  });
  await add(server, "one");
  const received = await found(async () => {
    const { lagMs, lagCommits } = await status();
    return lagMs > 100 ? { lagMs, lagCommits } : null;
  });
  assert.ok(received.lagCommits > waiting);
  assert.ok(received.lagMs <= Math.ceil(performance.now() - before));
});

Deno.test("[RP7] [RP8] a journal beyond its bound is dropped: commits continue, and log, status and metrics report it", async () => {
  await using folder = new TempFolder();
  const replica = folder.at("replica");
  await using server = await startTestServer({
    functions,
    config: { metrics: { token: null }, replication: replicationTo(replica, { maxPendingBytes: 50_000 }) },
  });
  const bearer = await bearerOf(server);
  const status = () => statusOf(server, bearer);
  const shipped = async () => {
    const { lagCommits, lastSnapshot, generation } = await status();
    return lagCommits === 0 && lastSnapshot !== null ? generation : null;
  };
  const first = await found(shipped, { what: "all is shipped" });
  await Deno.rename(replica, folder.at("unmounted"));
  for (let n = 0; n < 30; n++) await add(server, `${n} ${"x".repeat(2_000)}`);
  const { errors } = await found(async () => {
    const received = await status();
    return received.counts.overflows === 1 ? received : null;
  }, { what: "it is reported while the target is unreachable" });
  assert.ok(errors.some(({ message }: { message: string }) => /The journal was dropped/.test(message)));
  await Deno.rename(folder.at("unmounted"), replica);
  await found(async () => {
    const generation = await shipped();
    return generation !== null && generation !== first ? generation : null;
  }, { what: "another generation is shipped" });
  assert.ok(server.logged.includes("warn Replication started a generation"));
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /^syncline_replication_overflows_total 1$/m);
  const { generations } = await status();
  assert.deepEqual(generations.map(({ generation }: { generation: string }) => generation).indexOf(first), 0);
  assert.equal((await notes(server)).length, 30);
});
