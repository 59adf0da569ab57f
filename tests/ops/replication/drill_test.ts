/**
 * The drill: a server runs through schemas, files, schedules, users and a restart, and its state at each commit is
 * restored from the replica. In the end the running server is restored to an earlier state, with its files unchanged.
 */
import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { openExport } from "../../../mod/engine/mod.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import {
  listGenerations,
  openTarget,
  planRestore,
  stagePoint,
  verifyReplica,
} from "../../../mod/ops/replication/mod.ts";
import { rowsOf } from "../../../mod/ops/replication/segment.ts";
import { bearerOf, startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { repeats } from "../../support/long_runs.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";
import { replicationTo, shipped, statusOf } from "./replicating.ts";
import { documentsIn, type Model, sorted } from "./rig.ts";

const RESTORES = repeats(20, 50);
const FILE_TEXT = "contents that no journal may hold";

const schema = (more = "") => `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  notes: defineTable({ text: z.string(), n: z.number() })${more},
  done: defineTable({ text: z.string() }),
});
`;

const functions = {
  "schema.ts": schema(),
  "notes.ts": `
import { api, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const write = untypedMutation({
  args: { text: z.string(), n: z.number() },
  handler: async (ctx, { text, n }) => {
    const known = await ctx.db.query("notes").collect();
    const old = known[n % (known.length + 1)];
    if (old === undefined || n % 3 === 0) return await ctx.db.insert("notes", { text, n });
    if (n % 3 === 1) await ctx.db.patch(old._id, { text });
    else await ctx.db.delete(old._id);
    return null;
  },
});
export const later = untypedMutation({
  args: { text: z.string() },
  handler: (ctx, { text }) => ctx.scheduler.runAfter(0, "notes:note", { text }),
});
export const note = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("done", { text }) });
export const noted = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("done").collect()).length });
export const uploadUrl = untypedMutation({ args: {}, handler: (ctx) => ctx.storage.generateUploadUrl() });
export const remove = untypedMutation({ args: { id: z.string() }, handler: (ctx, { id }) => ctx.storage.delete(id) });
`,
};

/** Recorded states of a database, by ts. */
class Seen {
  readonly #path: string;
  readonly models = new Map<number, Model>();

  constructor(dataDir: string) {
    this.#path = join(dataDir, "data.db");
  }

  /** One snapshot of the database: its ts and its documents. */
  look(): number {
    using all = openExport(this.#path);
    const model = new Map<string, string>();
    for (const table of all.tables) {
      for (const text of all.documents(table)) model.set((JSON.parse(text) as { _id: string })._id, text);
    }
    this.models.set(all.ts, model);
    return all.ts;
  }
}

async function call(
  server: TestServer,
  kind: "query" | "mutation",
  name: string,
  args: object,
): Promise<unknown> {
  const { body } = await server.post(`/api/${kind}`, { path: `notes:${name}`, args });
  assert.equal(body.status, "success", JSON.stringify(body));
  return body.value;
}

async function upload(server: TestServer, text: string): Promise<string> {
  const url = await call(server, "mutation", "uploadUrl", {});
  const response = await fetch(new URL(String(url), server.url), {
    method: "POST",
    body: text,
    headers: { "Content-Type": "text/plain" },
  });
  return (await response.json()).storageId;
}

const read = async (server: TestServer, id: string) => {
  const response = await fetch(`${server.url}/api/storage/${id}`);
  return response.status === 200 ? await response.text() : (await response.body?.cancel(), null);
};

/** Paths of the contents of files in a data folder. */
async function blobs(dataDir: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name } of Deno.readDir(join(dataDir, "storage"))) {
    if (!/^[0-9a-f]{2}$/.test(name)) continue;
    for await (const blob of Deno.readDir(join(dataDir, "storage", name))) {
      paths.push(join(dataDir, "storage", name, blob.name));
    }
  }
  return paths;
}

Deno.test("[RP10] [PT2] [PT5] [RP11] a drill: schemas, files, schedules, users and a restart, and a restore of many of its commits", async () => {
  await using folder = new TempFolder();
  let beats = 0;
  await using watcher = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    beats++;
    return new Response();
  });
  const replica = folder.at("replica");
  await using server = await startTestServer({
    functions,
    config: {
      metrics: { token: null },
      storage: {
        s3: null,
        uploadBytesMax: 1e6,
        privateReads: false,
        keepDeletedMs: 7 * 86_400_000,
        thumbnailSizes: null,
      },
      replication: replicationTo(replica, { heartbeatUrl: `http://127.0.0.1:${watcher.addr.port}/` }),
    },
  });
  const bearer = await bearerOf(server);
  await shipped(server, bearer);

  const seen = new Seen(server.dataDir);
  const first = seen.look();
  const write = async (from: number, count: number) => {
    for (let n = from; n < from + count; n++) {
      await call(server, "mutation", "write", { text: `note ${n}`, n });
      seen.look();
    }
  };
  await write(0, 12);
  const kept = await upload(server, FILE_TEXT);
  const deleted = await upload(server, "deleted later");
  const withBoth = seen.look();
  for (let n = 0; n < 5; n++) {
    await server.post("/api/auth/signup", { email: `user${n}@example.com`, password: "correct horse" });
    seen.look();
  }
  for (let n = 0; n < 6; n++) {
    await call(server, "mutation", "later", { text: `later ${n}` });
    seen.look();
  }
  await until(async () => await call(server, "query", "noted", {}) === 6, { what: "what was scheduled ran" });
  seen.look();
  await server.restart(async () => {
    await Deno.writeTextFile(
      join(server.dataDir, "../functions/schema.ts"),
      schema(`.index("by_n", ["n"]).searchIndex("words", { searchField: "text" })`),
    );
  });
  await write(12, 24);
  await call(server, "mutation", "remove", { id: deleted });
  const late = await upload(server, "after the point");
  await write(36, 4);
  const last = seen.look();
  await shipped(server, bearer);
  assert.equal(await read(server, deleted), null);

  // Status and metrics.
  const reported = await statusOf(server, bearer);
  assert.equal(reported.shippedTs, reported.currentTs);
  assert.ok(reported.counts.segments > 0);
  assert.ok(beats >= 2, "heartbeats were sent");
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /^syncline_replication_lag_commits 0$/m);
  assert.match(metrics, /^syncline_replication_lag_seconds 0$/m);
  assert.match(metrics, new RegExp(`^syncline_replication_segments_total ${reported.counts.segments}$`, "m"));
  assert.match(metrics, /^syncline_replication_failures_total 0$/m);
  assert.match(metrics, /^syncline_replication_taken 0$/m);

  // Any of its commits.
  await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
  const generations = await listGenerations(target);
  assert.equal(generations.length, 1);
  const all = [...seen.models.keys()].filter((ts) => ts >= (generations[0]?.snapshots[0]?.ts ?? first));
  const stepped = Array.from({ length: RESTORES }, (_, at) => all[(at * 37) % all.length] ?? last);
  for (const toTs of new Set([...stepped, withBoth, last])) {
    const dataDir = await Deno.makeTempDir({ dir: folder.path });
    const plan = planRestore(generations, { toTs }, { now: Date.now(), location: target.location });
    const staged = await stagePoint(target, plan, { dataDir, localFiles: false });
    assert.equal(staged.ts, toTs);
    await applyStagedRestore(dataDir, new Date());
    assert.deepEqual(
      sorted(documentsIn(join(dataDir, "data.db"))),
      sorted(seen.models.get(toTs)),
      `ts ${toTs}`,
    );
    await Deno.remove(dataDir, { recursive: true });
  }
  assert.ok(new Set(stepped).size >= RESTORES * 0.8, `${new Set(stepped).size} different commits`);

  // No row contains file contents, and all files are intact.
  const bodies = await Array.fromAsync(rowsOf(target, generations[0]?.segments ?? []), ({ body }) => body);
  assert.ok(bodies.some((body) => body.includes("note 1")));
  assert.ok(!bodies.some((body) => body.includes(FILE_TEXT)));
  const drill = await Deno.makeTempDir({ dir: folder.path });
  const report = await verifyReplica(target, { folder: drill });
  assert.deepEqual(report.faults, []);
  assert.equal(report.rebuilt?.ts, reported.shippedTs);
  assert.ok(report.segments > 0 && report.rows >= report.segments && report.bytes > 0);

  // Contents that are not there any more are named.
  const stage = async () => {
    const { status, body } = await server.post("/api/admin/restore/point-in-time", { toTs: withBoth }, {
      bearer,
    });
    assert.equal(status, 200, JSON.stringify(body));
    return body.restore;
  };
  const paths = await blobs(server.dataDir);
  const texts = await Promise.all(paths.map((path) => Deno.readTextFile(path)));
  const lost = paths[texts.indexOf(FILE_TEXT)] ?? "";
  await Deno.rename(lost, folder.at("lost"));
  const { missingFiles, missingFilesCount } = await stage();
  assert.deepEqual([missingFiles, missingFilesCount], [[basename(lost)], 1]);
  await Deno.rename(folder.at("lost"), lost);

  // Restores the server and its files.
  assert.equal((await stage()).missingFilesCount, 0);
  await server.restart();
  assert.equal(await read(server, kept), FILE_TEXT);
  assert.equal(await read(server, deleted), "deleted later", "contents of deleted files are kept");
  assert.equal(await read(server, late), null);
  assert.equal(
    (await blobs(server.dataDir)).length,
    3,
    "the folder stays as it was, with what came after the point",
  );
});
