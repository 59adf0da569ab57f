/** The history of a document, read from the segments of a replica. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { decodeId, newId } from "../../../mod/engine/mod.ts";
import { statIfThere } from "../../../mod/kit/durable_files.ts";
import type { ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import { replicationLimits } from "../../../mod/ops/limits.ts";
import { documentHistory } from "../../../mod/ops/replication/document_history.ts";
import { generationsOf } from "../../../mod/ops/replication/history.ts";
import { GENERATIONS } from "../../../mod/ops/replication/names.ts";
import type { ReplicaReader } from "../../../mod/ops/replication/replica_target.ts";
import { HANG_MS } from "../../support/waiting.ts";
import { Rig } from "./rig.ts";

const { historyStatesMax, historyMs } = replicationLimits;

/** Commits one change, a second after the last one. */
function commit<Result>(rig: Rig, change: (tx: ReturnType<Rig["db"]["beginMutation"]>) => Result): Result {
  rig.now += 1_000;
  rig.db.openGroup();
  const result = change(rig.db.beginMutation({ at: rig.now }));
  rig.db.releaseMutation();
  rig.db.commitGroup("");
  return result;
}

/** Removes the objects of a replica whose name contains a text. */
async function removeAll(target: ObjectStore, text: string): Promise<void> {
  const names = (await Array.fromAsync(target.list(GENERATIONS))).map(({ name }) => name);
  await target.delete(...names.filter((name) => name.includes(text)));
}

Deno.test("SY30 the newest states of a document are returned, with the time from which all are known", async () => {
  await using rig = await Rig.start();
  await rig.ship();
  const id = commit(rig, (tx) => tx.insert("items", { n: 0, text: "" }));
  commit(rig, (tx) => tx.patch(id, { n: 1 }));
  await rig.ship();
  await using target = await rig.target();
  const folder = join(rig.folder, "unpacked");
  const insertedAt = rig.now - 1_000;
  const shown = ({ states }: Awaited<ReturnType<typeof documentHistory>>) =>
    states.map(({ at, text }) => [at, text === null ? null : JSON.parse(text).n]);

  const all = await documentHistory(target, id, { folder });
  assert.deepEqual(shown(all), [[rig.now, 1], [insertedAt, 0]]);
  assert.ok(all.since !== null && all.since <= insertedAt);
  assert.equal(all.before, null);

  // One segment with more states than are returned.
  for (let n = 2; n < historyStatesMax + 10; n++) commit(rig, (tx) => tx.patch(id, { n }));
  commit(rig, (tx) => tx.delete(id));
  await rig.ship();
  const newest = await documentHistory(target, id, { folder });
  assert.equal(newest.states.length, historyStatesMax);
  assert.deepEqual(shown(newest).slice(0, 2), [[rig.now, null], [rig.now - 1_000, historyStatesMax + 9]]);
  assert.equal(newest.since, rig.now - (historyStatesMax - 1) * 1_000);

  // Out of time in the newest segment.
  let clock = 0;
  const late = await documentHistory(target, id, { folder, now: () => clock += historyMs });
  assert.deepEqual(late, { states: [], since: null, before: null });
});

Deno.test("SY30 the state before the first change in the segments is read from the snapshot before it", async () => {
  await using rig = await Rig.start();
  const older = commit(rig, (tx) => tx.insert("items", { n: 0, text: "" }));
  const deleted = commit(rig, (tx) => tx.insert("items", { n: 7, text: "" }));
  const unchanged = commit(rig, (tx) => tx.insert("items", { n: 8, text: "" }));
  await rig.ship();
  rig.shipper.wantSnapshot();
  await rig.ship();
  await using target = await rig.target();
  // Retention removes older segments.
  await removeAll(target, "/segments/");
  const listed = await Array.fromAsync(target.list(GENERATIONS));
  const snapshotAt = generationsOf(listed)[0]?.snapshots.at(-1)?.at;
  assert.ok(snapshotAt !== undefined);
  commit(rig, (tx) => tx.patch(older, { n: 1 }));
  commit(rig, (tx) => tx.delete(deleted));
  await rig.ship();
  const folder = join(rig.folder, "unpacked");
  const historyOf = (id: string) => documentHistory(target, id, { folder });
  const nBefore = async (id: string) => {
    const { states, before } = await historyOf(id);
    assert.equal(states.length, 1);
    assert.ok(before !== null && before.text !== null);
    assert.equal(before.at, snapshotAt);
    return JSON.parse(before.text).n;
  };

  assert.equal(await nBefore(older), 0);
  assert.equal(await nBefore(deleted), 7);
  assert.deepEqual(await historyOf(unchanged), {
    states: [],
    since: rig.now - 1_000,
    before: null,
  });
  assert.equal(await statIfThere(folder), null);

  // A document of an earlier time that was inserted later, as imports do.
  const imported = newId(decodeId(older)?.tableNumber ?? 0);
  const document = { _id: imported, _creationTime: 1_000, n: 3, text: "" };
  commit(rig, (tx) => tx.importDocument("items", document, { mode: "insert" }));
  await rig.ship();
  assert.deepEqual((await historyOf(imported)).before, { at: snapshotAt, text: null });

  // A snapshot whose bytes stop arriving.
  const canceled = Promise.withResolvers<void>();
  const stalled: ReplicaReader = {
    location: target.location,
    list: (prefix) => target.list(prefix),
    head: (name) => target.head(name),
    [Symbol.asyncDispose]: () => Promise.resolve(),
    get: (name, range) =>
      name.includes("/snapshots/")
        ? Promise.resolve(new ReadableStream({ cancel: () => canceled.resolve() }))
        : target.get(name, range),
  };
  // The timeout of a signal does not keep the process running.
  const running = setTimeout(() => {}, HANG_MS);
  const late = await documentHistory(stalled, older, { folder, snapshotMs: 1 });
  assert.deepEqual([late.states.length, late.before], [1, null]);
  await canceled.promise;
  clearTimeout(running);
  assert.equal(await statIfThere(folder), null);

  // A lost snapshot.
  await removeAll(target, "/snapshots/");
  const { states, before } = await historyOf(older);
  assert.deepEqual([states.length, before], [1, null]);
});
