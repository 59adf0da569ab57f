/** Kills of a server's child processes: the one that ships, and the one that restores a point in time. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { applyStagedRestore, stagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import {
  listGenerations,
  openTarget,
  planRestore,
  stageInProcess,
  stagePoint,
} from "../../../mod/ops/replication/mod.ts";
import { startTestServer } from "../../auth/server/test_server.ts";
import { childrenOf, commandLine, killAll } from "../../support/processes/process_tree.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { found, until } from "../../support/waiting.ts";
import { FakeBucket } from "../scheduled/fake_bucket.ts";
import { replicationTo } from "./replicating.ts";
import { documentsIn, Rig, sorted } from "./rig.ts";

/** The process that uses the target for a data folder, except for a known one. */
async function processOf(dataDir: string, known: number | null = null): Promise<number> {
  return await found(async () => {
    for (const pid of await childrenOf(Deno.pid)) {
      const line = await commandLine(pid) ?? "";
      if (pid !== known && line.includes("replication/process/main.ts") && line.includes(dataDir)) return pid;
    }
    return null;
  });
}

const functions = {
  "notes.ts": `
import { untypedMutation } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { n: z.number() }, handler: (ctx, { n }) => ctx.db.insert("notes", { n }) });
`,
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ n: z.number() }) });
`,
};

Deno.test("[RP2] [RP6] [RP7] the shipping process is killed repeatedly: commits continue, and are all shipped in their generation", async () => {
  await using folder = new TempFolder();
  const replica = folder.at("replica");
  await using server = await startTestServer({
    functions,
    config: { metrics: { token: null }, replication: replicationTo(replica) },
  });
  let pid: number | null = null;
  let n = 0;
  for (let kill = 0; kill < 3; kill++) {
    pid = await processOf(server.dataDir, pid);
    for (let more = 0; more < 5; more++) {
      if (more === 3) await killAll([pid]);
      const { body } = await server.post("/api/mutation", { path: "notes:add", args: { n: n++ } });
      assert.equal(body.status, "success", JSON.stringify(body));
    }
  }
  await until(async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    return /^syncline_replication_lag_commits 0$/m.test(metrics);
  }, { what: "all is shipped" });
  assert.ok(server.logged.some((line) => /process that ships to the replica ended/.test(line)));
  await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
  const generations = await listGenerations(target);
  assert.equal(generations.length, 1);
  const dataDir = folder.at("restored");
  await Deno.mkdir(dataDir);
  const plan = planRestore(generations, {}, { now: Date.now(), location: replica });
  await stagePoint(target, plan, { dataDir, localFiles: false });
  await applyStagedRestore(dataDir, new Date());
  const notes = [...documentsIn(join(dataDir, "data.db")).values()].flatMap((text) =>
    JSON.parse(text).n ?? []
  );
  assert.deepEqual(notes.sort((a, b) => a - b), Array.from({ length: n }, (_, at) => at));
});

Deno.test("[PT4] a killed or canceled restore to a point in time has no effect and can be repeated", async () => {
  await using service = new FakeBucket();
  const place = { kind: "bucket", bucket: service.location("replica/") } as const;
  await using rig = await Rig.start({ seed: 47, place, merges: [] });
  await rig.ship();
  for (let group = 0; group < 5; group++) rig.group();
  await rig.ship();
  await rig.close();
  const last = rig.models.length - 1;
  const { dataDir } = await rig.restore({ toTs: 2 });
  const stage = (point: { readonly toTs?: number }, { signal } = new AbortController()) =>
    stageInProcess({ dataDir, target: place, point, localFiles: false, signal });
  await stage({ toTs: 3 });
  for (const way of ["killed", "given up"]) {
    const asked = Promise.withResolvers<void>();
    // It hangs after the snapshot until it is ended.
    const hangs = Promise.withResolvers<Response>();
    service.fault = ({ method, key }) => {
      if (method !== "GET" || !key.includes("/segments/")) return null;
      asked.resolve();
      return hangs.promise;
    };
    const giving = new AbortController();
    // The bucket's answer ends in any case, because closing the bucket waits for it.
    const refused = assert.rejects(stage({}, giving), /exited before it had finished/, way)
      .finally(() => hangs.resolve(new Response()));
    await asked.promise;
    if (way === "killed") await killAll([await processOf(dataDir)]);
    else giving.abort();
    await refused;
    service.fault = () => null;
    assert.equal((await stagedRestore(dataDir))?.ts, 3, `${way}: what was staged`);
    assert.deepEqual(sorted(documentsIn(join(dataDir, "data.db"))), sorted(rig.models[2]), way);
  }
  assert.equal((await stage({})).ts, last);
  await applyStagedRestore(dataDir, new Date());
  assert.deepEqual(sorted(documentsIn(join(dataDir, "data.db"))), sorted(rig.models[last]));
});
