/** Timing and failures of scheduled backups, on the real scheduler with a controlled clock. */
import assert from "node:assert/strict";
import { ServiceError } from "../../../mod/errors.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { unavailable } from "../../../mod/functions/outcome.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { BACKUP_PATH, backupActions } from "../../../mod/ops/backups/scheduled/mod.ts";
import { BackupWorld, DAY, HOUR, summary } from "./support.ts";

const MINUTE = 60_000;

function failures({ logged }: BackupWorld): unknown[] {
  return logged.filter(({ message }) => message === "Scheduled backup failed").map(({ fields }) =>
    fields["reason"]
  );
}

Deno.test("[SB1] one backup is created at the first start, then one per interval", async () => {
  await using world = await BackupWorld.open();
  await world.advance(3 * DAY);
  assert.deepEqual(world.hours, [0, 24, 48, 72]);
  assert.deepEqual(failures(world), []);
});

Deno.test("[SB1] a server restarted every hour makes its daily backup exactly once a day", async () => {
  await using world = await BackupWorld.open();
  for (let hour = 0; hour < 49; hour++) {
    await world.advance(HOUR - MINUTE);
    await world.restart({ downMs: MINUTE, killed: hour % 2 === 0 });
  }
  assert.deepEqual(world.hours, [0, 24, 48]);
});

Deno.test("[SB1] a backup missed while the server was off is created once, soon after the start", async () => {
  await using world = await BackupWorld.open();
  await world.advance(HOUR);
  await world.restart({ downMs: 70 * HOUR });
  await world.advance(HOUR / 2);
  assert.deepEqual(world.hours, [0, 71]);
  await world.advance(DAY);
  assert.deepEqual(world.hours, [0, 71, 72], "the beat stays as it was");
});

Deno.test("[SB1] a new target gets its first backup soon after the start", async () => {
  await using world = await BackupWorld.open();
  await world.advance(HOUR);
  world.target.names = [];
  await world.restart({ downMs: MINUTE });
  assert.equal(world.target.names.length, 1);
});

Deno.test("[SB2] two never run concurrently, and concurrent requests share the running one", async () => {
  await using world = await BackupWorld.open({ everyMs: HOUR });
  const held = Promise.withResolvers<typeof summary>();
  world.make = () => held.promise;
  const asked = [world.backups.run(), world.backups.run()];
  world.world.clock.moveTo(world.world.clock.now() + 3 * HOUR);
  await world.world.quiet();
  held.resolve(summary);
  assert.deepEqual((await Promise.all(asked)).map(({ kind }) => kind), ["made", "made"]);
  await world.settle();
  assert.equal(world.atOnceMax, 1);
});

Deno.test("[SB3] a failure is reported and retried with growing delays; the schedule stays", async () => {
  await using world = await BackupWorld.open();
  world.make = () => Promise.reject(new Error("the disk is full"));
  const before = world.made;
  await world.advance(DAY + 20 * MINUTE);
  // At the scheduled time, then after 1, 3, 7 and 15 minutes.
  assert.equal(world.made - before, 5);
  assert.deepEqual(new Set(failures(world)), new Set(["the disk is full"]));
  const { fields } = world.logged.at(-1)!;
  assert.equal(fields["nextTry"], new Date(Date.UTC(2030, 0, 2, 0, 31)).toISOString());
  assert.equal(fields["target"], "memory");
  const jobs = await world.world.query("app:jobs") as { name: string; state: unknown }[];
  assert.deepEqual(jobs.find(({ name }) => name === BACKUP_PATH)?.state, {
    kind: "failed",
    error: "Scheduled backup failed: the disk is full",
  });
  world.make = () => Promise.resolve(summary);
  await world.advance(11 * MINUTE);
  assert.deepEqual(world.hours, [0, 24 + 31 / 60]);
  await world.advance(DAY);
  assert.deepEqual(world.hours, [0, 24 + 31 / 60, 48]);
});

Deno.test("[SB3] delays are bounded, and retries continue after a restart", async () => {
  await using world = await BackupWorld.open();
  world.target.checkFailure = new Error("nobody answers");
  await world.advance(3 * DAY);
  const tries = failures(world).length;
  const least = (2 * DAY) / opsLimits.backupRetryMsMax;
  assert.ok(tries > least && tries < least + 12, String(tries));
  assert.equal(world.made, 1, "nothing is made that could not be put anywhere");
  await world.restart({ downMs: MINUTE });
  world.target.checkFailure = null;
  await world.advance(5 * MINUTE);
  assert.equal(world.hours.length, 2);
});

Deno.test("[SB3] an archive that cannot be stored in the target is removed from the data folder", async () => {
  await using world = await BackupWorld.open();
  let out = "";
  world.make = async (options) => {
    out = options.out;
    await Deno.writeTextFile(out, "an archive");
    assert.equal(options.includeSecret, false);
    return summary;
  };
  world.target.putFailure = new Error("the bucket is gone");
  await world.advance(DAY);
  assert.deepEqual(failures(world), ["the bucket is gone"]);
  await assert.rejects(Deno.stat(out), Deno.errors.NotFound);
});

Deno.test("[SB4] a backup ended by a graceful stop is created after the next start, also hours before the next scheduled time", async () => {
  await using world = await BackupWorld.open();
  const stopped = Promise.withResolvers<typeof summary>();
  world.make = () => stopped.promise;
  world.world.clock.moveTo(world.world.clock.now() + DAY);
  await world.world.quiet();
  const closing = world.restart({ downMs: MINUTE });
  world.make = () => Promise.resolve(summary);
  stopped.reject(new ServiceError("unavailable"));
  await closing;
  assert.deepEqual(failures(world), []);
  assert.deepEqual(world.hours, [0, 24 + 1 / 60]);
  await world.advance(DAY);
  assert.deepEqual(world.hours, [0, 24 + 1 / 60, 48]);
});

Deno.test("[SB4] a run after the stop is reported as unavailable, not as an error of its function", async () => {
  await using world = await BackupWorld.open();
  await world.backups[Symbol.asyncDispose]();
  const outcome = await backupActions(world.backups).get(BACKUP_PATH)?.run({}, anonymous);
  assert.deepEqual(outcome, unavailable("The backup was interrupted, or another server makes backups"));
});

Deno.test("[SB4] a backup killed with the server is created after the next start", async () => {
  await using world = await BackupWorld.open();
  const never = Promise.withResolvers<typeof summary>();
  world.make = () => never.promise;
  world.world.clock.moveTo(world.world.clock.now() + DAY);
  await world.world.quiet();
  const { hours } = world;
  assert.deepEqual(hours, [0]);
  world.make = () => Promise.resolve(summary);
  setTimeout(() => never.reject(new ServiceError("unavailable")));
  await world.restart({ downMs: MINUTE, killed: true });
  assert.deepEqual(world.hours, [0, 24 + 1 / 60]);
});

Deno.test("[SB4] a failed check for an overdue backup is repeated", async () => {
  await using world = await BackupWorld.open();
  await world.advance(HOUR);
  world.target.names = [];
  world.target.listFailure = new Error("nobody answers");
  await world.restart({ downMs: MINUTE });
  assert.equal(world.made, 1);
  world.target.listFailure = null;
  await world.advance(opsLimits.backupRetryMs);
  assert.equal(world.made, 2);
});

Deno.test("[SB5] the newest are kept; old ones are deleted after the new one is stored, other files never", async () => {
  await using world = await BackupWorld.open({ keep: 2 });
  const others = ["backup-20200101T000000Z-0123abcd.tar.zst", "scheduled-20200101T000000Z-old.tar.zst"];
  world.target.names.push(...others);
  await world.advance(4 * DAY);
  const { names, events } = world.target;
  assert.deepEqual(names.filter((name) => !others.includes(name)).map((name) => name.slice(10, 18)), [
    "20300104",
    "20300105",
  ]);
  assert.ok(others.every((name) => names.includes(name)));
  let there = 0;
  for (const event of events) {
    there += event.startsWith("put ") ? 1 : -1;
    assert.ok(there <= 3 && (there >= 2 || !event.startsWith("remove ")), events.join());
  }
  world.make = () => Promise.reject(new Error("no"));
  const before = [...world.target.names];
  await world.advance(3 * DAY);
  assert.deepEqual(world.target.names, before, "nothing goes for one that failed");
});

Deno.test("[SB5] if old ones cannot be deleted, the new one still counts", async () => {
  await using world = await BackupWorld.open({ keep: 1 });
  await world.advance(HOUR);
  world.target.listFailure = new Error("nobody answers");
  await world.advance(DAY);
  assert.deepEqual(world.hours, [0, 24]);
  assert.equal(world.logged.at(-1)?.message, "Cannot delete old scheduled backups");
  world.target.listFailure = null;
  await world.advance(DAY);
  assert.equal(world.target.names.length, 1);
});

Deno.test("[PG9] if another server may make backups, none is started and no newer one removed", async () => {
  let leads = true;
  await using world = await BackupWorld.open({ keep: 1, mayMake: () => leads });
  await world.advance(HOUR);
  leads = false;
  await world.advance(DAY);
  assert.deepEqual([world.hours, world.made, failures(world)], [[0], 1, []]);
  // No other server took over, so it is made up for, and the schedule stays.
  leads = true;
  await world.advance(10 * MINUTE);
  assert.deepEqual(world.made, 2);
  const [own] = world.target.names;
  assert.equal(world.target.names.length, 1);
  const held = Promise.withResolvers<typeof summary>();
  world.make = () => held.promise;
  world.world.clock.moveTo(world.world.clock.now() + DAY);
  await world.world.quiet();
  assert.equal(world.made, 3);
  leads = false;
  const newer = "scheduled-20300109T000000Z-0123abcd.tar.zst";
  world.target.names.push(newer);
  held.resolve(summary);
  await world.settle();
  assert.equal(world.target.names.length, 3);
  assert.ok([own, newer].every((name) => name !== undefined && world.target.names.includes(name)));
});
