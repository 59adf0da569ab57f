import assert from "node:assert/strict";
import { ServiceError } from "../../mod/errors.ts";
import { BackupCounts } from "../../mod/ops/backups/backup_counts.ts";
import { scheduledName } from "../../mod/ops/backups/scheduled/names.ts";
import { ScheduledBackups } from "../../mod/ops/backups/scheduled/scheduled_backups.ts";
import { DAY, HOUR, MemoryTarget, summary } from "./scheduled/support.ts";

Deno.test("[ME8] backups count when they are there, and those the end of the server cut off do not count", async () => {
  const counts = new BackupCounts();
  counts.found(1_000);
  counts.found(500);
  assert.deepEqual(counts.last, { at: 1_000, ms: null });
  await assert.rejects(counts.count(() => Promise.reject(new Error("the disk is full"))), /disk is full/);
  await assert.rejects(counts.count(() => Promise.reject(new ServiceError("overloaded"))));
  await assert.rejects(counts.count(() => Promise.reject(new ServiceError("unavailable"))));
  assert.deepEqual([counts.made, counts.failed, counts.last?.at], [0, 2, 1_000]);
  const before = Date.now();
  assert.equal(await counts.count(() => Promise.resolve("it")), "it");
  const { last } = counts;
  assert.ok(last !== null && last.at >= before && last.ms !== null && last.ms >= 0);
  counts.found(last.at + 1);
  assert.equal(counts.last, last, "what is found later is the one just made, or older");
  assert.equal(counts.made, 1);
});

Deno.test("[ME8] a scheduled backup counts when it is in its place, and those found there are known", async () => {
  const outgoingDir = await Deno.makeTempDir();
  const target = new MemoryTarget();
  const counts = new BackupCounts();
  const madeAt = Date.now() - HOUR;
  target.names.push(scheduledName(new Date(madeAt)));
  const clock = { now: () => Date.now(), after: () => () => {} };
  const make = () => Promise.resolve(summary);
  const options = { target, make, outgoingDir, everyMs: DAY, keep: 2, withFiles: true, clock, counts };
  try {
    await using backups = new ScheduledBackups({ ...options, log: () => {} });
    target.putFailure = new Error("the bucket is gone");
    assert.equal((await backups.run()).kind, "failed");
    assert.deepEqual([counts.made, counts.failed, counts.last], [0, 1, null]);
    target.putFailure = null;
    assert.equal((await backups.run()).kind, "made");
    assert.deepEqual([counts.made, counts.failed], [1, 1]);
    const later = new BackupCounts();
    await using restarted = new ScheduledBackups({ ...options, counts: later, log: () => {} });
    restarted.start();
    while (later.last === null) await new Promise((resolve) => setTimeout(resolve, 0));
    assert.equal(later.made, 0);
    assert.ok(later.last.at > madeAt && later.last.at <= Date.now());
  } finally {
    await Deno.remove(outgoingDir, { recursive: true });
  }
});
