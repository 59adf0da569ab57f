/** The history of a document, read from the segments of a replica. */
import assert from "node:assert/strict";
import { replicationLimits } from "../../../mod/ops/limits.ts";
import { documentHistory } from "../../../mod/ops/replication/document_history.ts";
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

Deno.test("SY30 the newest states of a document are returned, with the time from which all are known", async () => {
  await using rig = await Rig.start();
  await rig.ship();
  const id = commit(rig, (tx) => tx.insert("items", { n: 0, text: "" }));
  commit(rig, (tx) => tx.patch(id, { n: 1 }));
  await rig.ship();
  await using target = await rig.target();
  const insertedAt = rig.now - 1_000;
  const shown = ({ states }: Awaited<ReturnType<typeof documentHistory>>) =>
    states.map(({ at, text }) => [at, text === null ? null : JSON.parse(text).n]);

  const all = await documentHistory(target, id);
  assert.deepEqual(shown(all), [[rig.now, 1], [insertedAt, 0]]);
  assert.ok(all.since !== null && all.since <= insertedAt);

  // One segment with more states than are returned.
  for (let n = 2; n < historyStatesMax + 10; n++) commit(rig, (tx) => tx.patch(id, { n }));
  commit(rig, (tx) => tx.delete(id));
  await rig.ship();
  const newest = await documentHistory(target, id);
  assert.equal(newest.states.length, historyStatesMax);
  assert.deepEqual(shown(newest).slice(0, 2), [[rig.now, null], [rig.now - 1_000, historyStatesMax + 9]]);
  assert.equal(newest.since, rig.now - (historyStatesMax - 1) * 1_000);

  // Out of time in the newest segment.
  let clock = 0;
  const late = await documentHistory(target, id, { now: () => clock += historyMs });
  assert.deepEqual(late, { states: [], since: null });
});
