/** Names of scheduled backups, and which of them are deleted. */
import assert from "node:assert/strict";
import {
  expiredBackups,
  newestScheduled,
  scheduledAt,
  scheduledName,
} from "../../../mod/ops/backups/scheduled/backup_target.ts";

const name = (day: number, random = "0123abcd") =>
  `scheduled-203001${String(day).padStart(2, "0")}T030405Z-${random}.tar.zst`;

Deno.test("[SB5] a name contains the start time, and other names are not scheduled backups", () => {
  const now = new Date("2030-01-02T03:04:05.678Z");
  const made = scheduledName(now);
  assert.match(made, /^scheduled-20300102T030405Z-[0-9a-f]{8}\.tar\.zst$/);
  assert.equal(scheduledAt(made), Date.UTC(2030, 0, 2, 3, 4, 5));
  assert.notEqual(made, scheduledName(now));
  for (
    const other of [
      "backup-20300102T030405Z-0123abcd.tar.zst",
      "scheduled-20300102T030405Z-0123abcd.tar.zst.old",
      "my-scheduled-20300102T030405Z-0123abcd.tar.zst",
      ".scheduled-20300102T030405Z-0123abcd.tar.zst",
      "scheduled-20300102T030405Z-0123ABCD.tar.zst",
      "scheduled-20300102T030405Z-0123abc.tar.zst",
      "scheduled-20300102T030405Z-0123abcd.tar.zst\n",
      "scheduled-20300102T030405-0123abcd.tar.zst",
      "scheduled-20300231T030405Z-0123abcd.tar.zst",
      "scheduled-20301302T030405Z-0123abcd.tar.zst",
      "scheduled-20300102T250405Z-0123abcd.tar.zst",
      "scheduled-monday.tar.zst",
      "",
    ]
  ) assert.equal(scheduledAt(other), null, other);
  assert.equal(
    newestScheduled([name(2), name(9), "backup-20310102T030405Z-0123abcd.tar.zst", name(3)]),
    scheduledAt(name(9)),
  );
  assert.equal(newestScheduled(["scheduled-monday.tar.zst"]), null);
});

Deno.test("[SB5] the oldest are deleted, never the new one or other files", () => {
  const names = [
    name(3),
    "backup-20300101T000000Z-0123abcd.tar.zst",
    name(1),
    name(4),
    "scheduled-1.tar.zst",
    name(2),
  ];
  assert.deepEqual(expiredBackups(names, { keep: 2, justMade: name(4) }), [name(2), name(1)]);
  assert.deepEqual(expiredBackups(names, { keep: 1, justMade: name(4) }), [name(3), name(2), name(1)]);
  assert.deepEqual(expiredBackups(names, { keep: 4, justMade: name(4) }), []);
  // The clock was set back, so the new backup has the oldest name.
  assert.deepEqual(expiredBackups(names, { keep: 2, justMade: name(1) }), [name(3), name(2)]);
});
