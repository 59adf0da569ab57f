/** Segments that were merged from many and are too large to be read at once. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import {
  type ObjectBody,
  ObjectLostError,
  type ObjectStore,
} from "../../../mod/kit/locations/object_store.ts";
import { replicationLimits } from "../../../mod/ops/limits.ts";
import { listGenerations, planRestore, stagePoint } from "../../../mod/ops/replication/mod.ts";
import { wrappedTarget } from "./faulty_target.ts";
import { documentsIn, Rig, sorted } from "./rig.ts";

const GROUPS = 20;

/** A replica with one segment, of 3 MB. */
async function rigWithLargeSegment(): Promise<Rig> {
  // With the row of the schema.
  const rig = await Rig.start({ merges: [{ spanMs: 1e12, pieces: GROUPS + 1, bytes: 1e12 }] });
  await rig.ship();
  for (let n = 0; n < GROUPS; n++) {
    rig.now += 1_000;
    rig.db.openGroup();
    const tx = rig.db.beginMutation({ at: rig.now });
    const id = tx.insert("items", { n, text: randomBytes(150_000).toString("hex") });
    const model = new Map(rig.models.at(-1)).set(id, JSON.stringify(tx.get(id)));
    const { ts } = rig.db.releaseMutation() ?? assert.fail();
    rig.db.commitGroup("");
    [rig.models[ts], rig.times[ts]] = [model, rig.now];
    await rig.ship();
  }
  await rig.close();
  return rig;
}

async function restored(rig: Rig, { target, toTs }: { target: ObjectStore; toTs: number }) {
  const plan = planRestore(await listGenerations(target), { toTs }, {
    now: Date.now(),
    location: target.location,
  });
  const dataDir = await Deno.makeTempDir({ dir: rig.folder });
  await stagePoint(target, plan, { dataDir, localFiles: false });
  await applyStagedRestore(dataDir, new Date());
  return sorted(documentsIn(join(dataDir, "data.db")));
}

Deno.test("[PT2] [RP16] a large segment is restored in pieces, resumes after an interruption, and nothing after damage is applied", async () => {
  await using rig = await rigWithLargeSegment();
  await using target = await rig.target();
  const [{ segments: [segment] } = assert.fail(), ...others] = await listGenerations(target);
  assert.ok(segment !== undefined && others.length === 0);
  const { file, level, toTs: last } = segment;
  assert.deepEqual([level, last], [1, rig.models.length - 1]);
  assert.ok(file.size > replicationLimits.segmentBytesWhole);

  /** Wraps the body of the segment; `through` gets its chunks and the number of earlier reads. */
  const reading = (
    through: (chunks: ObjectBody, reads: number) => AsyncIterable<Uint8Array<ArrayBuffer>>,
  ) => {
    let reads = 0;
    return wrappedTarget(target, async (operation, name, run) => {
      const result = await run();
      if (operation !== "get" || name !== file.name || result === null) return result;
      return ReadableStream.from(through(result as ObjectBody, reads++)) as typeof result;
    });
  };
  let [inMemory, most] = [0, 0];
  const bounded = reading(async function* (chunks) {
    inMemory = 0;
    for await (const chunk of chunks) {
      most = Math.max(most, inMemory += chunk.length);
      yield chunk;
      // Reached once the reader requests the next chunk.
      inMemory -= chunk.length;
    }
  });
  for (const toTs of [last - 7, last]) {
    assert.deepEqual(await restored(rig, { target: bounded, toTs }), sorted(rig.models[toTs]), `ts ${toTs}`);
  }
  assert.ok(most > 0 && most < file.size / 4, `${most} bytes at once`);

  // It disappears after a part of it was read, and is found again.
  let reads = 0;
  const going = reading(async function* (chunks, earlier) {
    reads++;
    let left = 6;
    for await (const chunk of chunks) {
      if (earlier === 0 && left-- === 0) throw new ObjectLostError(file.name, "gone");
      yield chunk;
    }
  });
  assert.deepEqual(await restored(rig, { target: going, toTs: last }), sorted(rig.models[last]));
  assert.equal(reads, 2);

  const path = join(rig.replica, file.name);
  const sound = await Deno.readFile(path);
  for (const how of ["flipped", "cut off"]) {
    const middle = sound.length >> 1;
    const bytes = how === "cut off" ? sound.slice(0, middle) : sound.slice();
    if (how === "flipped") bytes[middle] = (bytes[middle] ?? 0) ^ 16;
    await Deno.writeFile(path, bytes);
    const error = await restored(rig, { target, toTs: last }).catch((error: unknown) => error);
    const [, reached] = String(error).match(/--to-ts (\d+) restores it/) ?? assert.fail(String(error));
    assert.ok(Number(reached) > 0 && Number(reached) < last, `${how}: ${reached}`);
    const model = await restored(rig, { target, toTs: Number(reached) });
    assert.deepEqual(model, sorted(rig.models[Number(reached)]), how);
  }
});
