/**
 * `kill -9` of a whole replicating server under load: the target holds a whole state of the past, and when the server is
 * back the target catches up with it, document by document. `SYNCLINE_DURABILITY_ROUNDS` makes it more kills.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { listGenerations, openTarget, planRestore, stagePoint } from "../../../mod/ops/replication/mod.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { killNow, processTree } from "../../bench/support/process_tree.ts";
import { ServerProcess } from "../../bench/support/server_process.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { found, pause, until } from "../../support/waiting.ts";
import { random, seed } from "../../durability/support/rounds.ts";
import { documentsIn, type Model, sorted } from "./rig.ts";

const ROUNDS = Number(Deno.env.get("SYNCLINE_DURABILITY_ROUNDS") ?? 2);
const WRITERS = 8;

async function restored(folder: TempFolder): Promise<{ readonly ts: number; readonly model: Model } | null> {
  await using target = await openTarget({ kind: "folder", path: folder.at("replica") }, { make: false });
  const generations = await listGenerations(target);
  if (generations.every(({ snapshots }) => snapshots.length === 0)) return null;
  const plan = planRestore(generations, {}, { now: Date.now(), place: target.place });
  const dataDir = await Deno.makeTempDir({ dir: folder.path, prefix: "restored-" });
  const { ts } = await stagePoint(target, plan, { dataDir, localFiles: false });
  await applyStagedRestore(dataDir, new Date());
  return { ts, model: documentsIn(join(dataDir, "data.db")) };
}

/** Each append is two documents and two counters in one commit: half of one is seen. */
function checkWhole(model: Model, where: string): void {
  const sums = { lefts: 0, rights: 0 };
  const seen = new Set<string>();
  for (const text of model.values()) {
    const { _id, _creationTime, ...fields } = JSON.parse(text) as Record<string, unknown>;
    if (!("sequence" in fields)) continue;
    const side = seen.has(`${fields.writer} ${fields.sequence}`) ? "rights" : "lefts";
    seen.add(`${fields.writer} ${fields.sequence}`);
    sums[side]++;
  }
  assert.equal(sums.lefts, sums.rights, `${where} has half an append (seed ${seed})`);
}

Deno.test("[RP6] killed at random moments under load, what is shipped is whole, and nothing is missing once it is back", async () => {
  await using folder = new TempFolder();
  const options = {
    dataDir: folder.at("data"),
    functions: "tests/durability/functions",
    flags: ["--replicate-to", folder.at("replica")],
  };
  const sequences = new Array<number>(WRITERS).fill(0);
  const acknowledged = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const server = await ServerProcess.start(options);
    let ended = false;
    const writers = sequences.map(async (_, writer) => {
      while (!ended) {
        const sequence = sequences[writer] ?? 0;
        sequences[writer] = sequence + 1;
        try {
          await server.call("mutation", "log:append", { writer, sequence });
          acknowledged.add(`${writer} ${sequence}`);
        } catch {
          return;
        }
      }
    });
    await until(() => acknowledged.size > (round + 1) * 50, { what: "the writers write" });
    await pause(random() * 2_000);
    await killNow(await processTree(server.pid));
    ended = true;
    await Promise.all(writers);
    await server.kill();
    const state = await restored(folder);
    if (state !== null) checkWhole(state.model, `round ${round}`);
  }
  {
    await using _server = await ServerProcess.start(options);
    await found(async () => {
      const local = documentsIn(join(options.dataDir, "data.db"));
      for (const key of acknowledged) {
        const [writer, sequence] = key.split(" ");
        const text = `"writer":${writer},"sequence":${sequence}}`;
        if (![...local.values()].some((doc) => doc.endsWith(text))) {
          assert.fail(`${key} is lost (seed ${seed})`);
        }
      }
      return await restored(folder);
    });
  }
  // An orderly stop ships what is left.
  const state = await restored(folder);
  assert.ok(state !== null);
  checkWhole(state.model, "the last state");
  assert.deepEqual(sorted(state.model), sorted(documentsIn(join(options.dataDir, "data.db"))));
});
