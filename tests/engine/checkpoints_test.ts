/** The write-ahead log stays short under light load, and is left alone by groups that are not small. */
import assert from "node:assert/strict";
import { engineLimits } from "../../mod/limits.ts";
import { openReaderDatabase } from "../../mod/engine/mod.ts";
import { anyTable, TestDatabase } from "./support.ts";

const tables = { items: anyTable() };
const PAGE_BYTES = 4096 + 24;
const TEXT = "x".repeat(20_000);

/** Commits a group that puts about ten pages into the log. */
function commitGroups(db: TestDatabase, count: number, { tended }: { readonly tended: boolean }): void {
  for (let n = 0; n < count; n++) {
    db.commit((tx) => tx.insert("items", { text: TEXT }));
    if (tended) db.writer.tend();
  }
}

function logPages(db: TestDatabase): number {
  return Deno.statSync(`${db.path}-wal`).size / PAGE_BYTES;
}

Deno.test("between small groups the log is copied long before it has to be", () => {
  using db = new TestDatabase(tables);
  commitGroups(db, 600, { tended: true });
  const bound = engineLimits.earlyCheckpointPages + engineLimits.groupsBetweenLooks * 20;
  assert.ok(logPages(db) <= bound, `${logPages(db)} pages`);
  commitGroups(db, 600, { tended: false });
  assert.ok(logPages(db) > 2 * bound, `${logPages(db)} pages`);
});

Deno.test("a reader's snapshot stays whole while the log is tended, and the log is copied when it is gone", () => {
  using db = new TestDatabase(tables);
  commitGroups(db, 1, { tended: true });
  using reader = openReaderDatabase(db.path);
  reader.useSchema(db.schema);
  const count = () =>
    [...reader.beginQuery().scan("items", "by_creation_time", { eq: [] }, { order: "asc" })].length;
  reader.openSnapshot();
  commitGroups(db, 300, { tended: true });
  assert.equal(count(), 1);
  const held = logPages(db);
  assert.ok(held > engineLimits.earlyCheckpointPages);
  reader.closeSnapshot();
  commitGroups(db, 300, { tended: true });
  assert.ok(logPages(db) < 1.5 * held, `${logPages(db)} pages after ${held}`);
  reader.openSnapshot();
  assert.equal(count(), 601);
  reader.closeSnapshot();
});
