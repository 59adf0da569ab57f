/** Checkpoints keep the write-ahead log short under light load, and do not run between larger groups. */
import assert from "node:assert/strict";
import { engineLimits } from "../../mod/engine/limits.ts";
import { openReaderDatabase } from "../../mod/engine/mod.ts";
import { anyTable, TestDatabase } from "./support.ts";

const tables = { items: anyTable() };
const PAGE_BYTES = 4096 + 24;
const TEXT = "x".repeat(20_000);

/** Commits groups that each add about ten pages to the log. `calls` is their reported number of calls. */
function commitGroups(db: TestDatabase, count: number, calls: (n: number) => number): void {
  for (let n = 0; n < count; n++) {
    db.commit((tx) => tx.insert("items", { text: TEXT }));
    db.writer.maintain(calls(n));
  }
}

const lone = () => 1;
/** One group in five is large. */
const mixed = (n: number) => n % 5 === 0 ? engineLimits.smallGroupCallsMax + 1 : 1;

function logPages(db: TestDatabase): number {
  return Deno.statSync(`${db.path}-wal`).size / PAGE_BYTES;
}

Deno.test("a checkpoint runs early while groups are small, and not among larger ones", () => {
  using db = new TestDatabase(tables);
  commitGroups(db, 600, lone);
  const bound = engineLimits.earlyCheckpointPages + engineLimits.groupsBetweenChecks * 20;
  assert.ok(logPages(db) <= bound, `${logPages(db)} pages`);
  commitGroups(db, 600, mixed);
  assert.ok(logPages(db) > 2 * bound, `${logPages(db)} pages`);
});

Deno.test("a reader's snapshot stays valid during maintenance, and the checkpoint runs after it is closed", () => {
  using db = new TestDatabase(tables);
  commitGroups(db, 1, lone);
  using reader = openReaderDatabase(db.path);
  reader.useSchema(db.schema);
  const count = () =>
    [...reader.beginQuery().scan("items", "by_creation_time", { eq: [] }, { order: "asc" })].length;
  reader.openSnapshot();
  commitGroups(db, 300, lone);
  assert.equal(count(), 1);
  const held = logPages(db);
  assert.ok(held > engineLimits.earlyCheckpointPages);
  reader.closeSnapshot();
  commitGroups(db, 300, lone);
  assert.ok(logPages(db) < 1.5 * held, `${logPages(db)} pages after ${held}`);
  reader.openSnapshot();
  assert.equal(count(), 601);
  reader.closeSnapshot();
});
