/** A full disk of the server or the target: acknowledged commits remain, and shipping continues when space is free. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import {
  listGenerations,
  openTarget,
  planRestore,
  stagePoint,
  verifyReplica,
} from "../../../mod/ops/replication/mod.ts";
import { bearerOf, startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { found } from "../../support/waiting.ts";
import { replicationTo, shipped, statusOf } from "./replicating.ts";
import { documentsIn, type Model } from "./rig.ts";
import { SmallDisk, smallDiskMissing } from "./small_disk.ts";

const missing = await smallDiskMissing();
const skipReason = missing === null ? "" : ` (skipped: ${missing})`;

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ n: z.number(), text: z.string() }) });
`,
  "notes.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({
  args: { n: z.number(), text: z.string() },
  handler: (ctx, note) => ctx.db.insert("notes", note),
});
export const newest = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").order("desc").first())?.n ?? null });
`,
};

/** 128 KiB that compress to half at best. */
const noteText = () => randomBytes(64 * 1024).toString("hex");

const replicatedTo = (path: string) => ({
  metrics: { token: null },
  replication: replicationTo(path, { everyMs: 100, maxPendingBytes: 2 ** 30 }),
});

/** Adds notes to a server and records the acknowledged ones. */
class Notes {
  readonly #server: TestServer;
  readonly #bearer: string;
  readonly acknowledged: number[] = [];
  #next = 0;

  private constructor(server: TestServer, bearer: string) {
    this.#server = server;
    this.#bearer = bearer;
  }

  static async of(server: TestServer): Promise<Notes> {
    return new Notes(server, await bearerOf(server));
  }

  /** Returns why the note was refused; `null` if it was acknowledged. */
  async add(): Promise<string | null> {
    const n = this.#next++;
    const { status, body } = await this.#server.post("/api/mutation", {
      path: "notes:add",
      args: { n, text: noteText() },
    });
    if (body.status !== "success") return `${status} ${body.errorData?.code}: ${body.errorMessage}`;
    this.acknowledged.push(n);
    return null;
  }

  /** Returns the newest note by a query. */
  async newest(): Promise<number | null> {
    const { body } = await this.#server.post("/api/query", { path: "notes:newest", args: {} });
    assert.equal(body.status, "success", JSON.stringify(body));
    return body.value;
  }

  // deno-lint-ignore no-explicit-any -- responses have many shapes
  async status(): Promise<any> {
    return await statusOf(this.#server, this.#bearer);
  }

  async shipped(): Promise<void> {
    await shipped(this.#server, this.#bearer);
  }
}

const notesIn = (model: Model) =>
  [...model.values()].map((text) => JSON.parse(text) as { n?: number }).flatMap(({ n }) => n ?? [])
    .sort((a, b) => a - b);

/** The notes of a data folder, as they would be after a kill. */
async function notesAt(dataDir: string, copy: string): Promise<number[]> {
  await Deno.mkdir(copy);
  // The log first: a checkpoint in between has moved its pages to the database, where they are the same.
  for (const name of ["data.db-wal", "data.db"]) {
    await Deno.copyFile(join(dataDir, name), join(copy, name)).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }
  return notesIn(documentsIn(join(copy, "data.db")));
}

/** The notes of the newest state of a valid replica. */
async function notesRestored(replica: string, folder: TempFolder): Promise<number[]> {
  await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
  const drill = folder.at("drill");
  await Deno.mkdir(drill);
  assert.deepEqual((await verifyReplica(target, { folder: drill })).faults, []);
  const dataDir = folder.at("restored");
  await Deno.mkdir(dataDir);
  const plan = planRestore(await listGenerations(target), {}, { now: Date.now(), location: replica });
  await stagePoint(target, plan, { dataDir, localFiles: false });
  await applyStagedRestore(dataDir, new Date());
  return notesIn(documentsIn(join(dataDir, "data.db")));
}

Deno.test({
  name:
    `[RP7] [RP8] [HC10] on a full disk with a growing journal commits are refused, no acknowledged commit is lost, and all continues with space${skipReason}`,
  ignore: missing !== null,
  fn: async () => {
    await using folder = new TempFolder();
    // Snapshots leave some space free.
    await using disk = await SmallDisk.mount(256);
    const replica = folder.at("replica");
    const dataDir = disk.at("data");
    await using server = await startTestServer({
      functions,
      config: { dataDir, ...replicatedTo(replica) },
    });
    const notes = await Notes.of(server);
    assert.equal(await notes.add(), null);
    await notes.shipped();
    await disk.fill({ leaveMiB: 48 });
    await Deno.rename(replica, folder.at("away"));
    const noRoom = "507 disk_full: There is not enough room on the server's disk";
    // Background work can free a little room after a refusal.
    for (let refusals = 0; refusals < 4;) {
      const refused = await notes.add();
      if (refused !== null) assert.equal(refused, noRoom);
      refusals = refused === null ? 0 : refusals + 1;
    }
    assert.ok(notes.acknowledged.length > 20, `${notes.acknowledged.length} were acknowledged before`);
    assert.equal(await notes.newest(), notes.acknowledged.at(-1), "queries are answered");
    assert.deepEqual(await notesAt(dataDir, folder.at("copy")), notes.acknowledged);

    await disk.makeRoom();
    assert.equal(await notes.add(), null, "writes continue without a restart");
    await Deno.rename(folder.at("away"), replica);
    await notes.shipped();
    assert.deepEqual(await notesRestored(replica, folder), notes.acknowledged);
  },
});

Deno.test({
  name:
    `[RP7] a target with a full disk delays no commit, and receives all of them when space is free${skipReason}`,
  ignore: missing !== null,
  fn: async () => {
    await using folder = new TempFolder();
    await using disk = await SmallDisk.mount(16);
    const replica = disk.at("replica");
    await using server = await startTestServer({ functions, config: replicatedTo(replica) });
    const notes = await Notes.of(server);
    assert.equal(await notes.add(), null);
    await notes.shipped();
    const { generation } = await notes.status();
    await disk.fill();
    for (let more = 0; more < 20; more++) assert.equal(await notes.add(), null);
    const received = await found(async () => {
      const status = await notes.status();
      return status.errors.length > 0 ? status : null;
    }, { what: "the error is reported" });
    assert.match(received.errors.at(-1).message, /its disk is full/);
    assert.ok(
      received.lagCommits > 0 && received.lagMs > 0 && received.journalBytes > 0,
      JSON.stringify(received),
    );
    await disk.makeRoom();
    await notes.shipped();
    assert.equal((await notes.status()).generation, generation, "nothing was dropped");
    assert.deepEqual(await notesRestored(replica, folder), notes.acknowledged);
  },
});
