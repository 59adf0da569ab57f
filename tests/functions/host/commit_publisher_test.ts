import assert from "node:assert/strict";
import type { CommitEntry } from "../../../mod/engine/types.ts";
import { CommitPublisher } from "../../../mod/functions/host/commit_publisher.ts";
import { steadyClock } from "../../../mod/kit/clock.ts";

const entry = {} as CommitEntry;

function news() {
  const logged: string[] = [];
  const noted: string[] = [];
  const it = new CommitPublisher({
    clock: steadyClock,
    log: (level, message) => void logged.push(`${level} ${message}`),
  });
  it.onCommits((entries) => void noted.push(`commits ${entries.length} at ${it.ts}`));
  it.onGroup(() => void noted.push(`group at ${it.ts}`));
  it.onReload(() => void noted.push(`reload at ${it.ts}`));
  it.onPublished((ts) => void noted.push(`reported ${ts}`));
  return { it, logged, noted };
}

Deno.test("listeners are notified of commits, then of groups, at their ts; waiters resolve last", async () => {
  const { it, noted } = news();
  const waiting = it.published(2).then(() => noted.push("waited for 2"));
  it.begin(1);
  it.group([entry], 2);
  it.group([], 3);
  it.gap(5);
  await waiting;
  assert.deepEqual(noted, [
    "reported 1",
    "commits 1 at 2",
    "group at 2",
    "reported 2",
    "group at 3",
    "reported 3",
    "reload at 5",
    "reported 5",
    "waited for 2",
  ]);
  await it.published(5);
});

Deno.test("a failing listener is logged, and others still receive commits", () => {
  const { it, logged, noted } = news();
  it.onCommits(() => {
    throw new Error("a fault");
  });
  it.onCommits(() => void noted.push("the next"));
  it.group([entry], 1);
  assert.deepEqual(noted, ["commits 1 at 1", "the next", "group at 1", "reported 1"]);
  assert.deepEqual(logged, ["error A commit listener failed"]);
});

Deno.test("once publishing stops, nothing waits for commits", async () => {
  const { it, noted } = news();
  it.begin(1);
  const waiting = it.published(9);
  it.close();
  await waiting;
  await it.published(10);
  assert.deepEqual(noted, ["reported 1"]);
});

Deno.test("commits of another server are decoded once, and only when a listener needs them", () => {
  const { it, noted } = news();
  let made = 0;
  const group = (ts: number, changesSystemTables: boolean) => ({
    ...{ ts, count: 2, keySpaces: new Set<string>(), changesSystemTables },
    entries: () => [entry, { ...entry, ts: ++made }],
  });
  const concerned = new CommitPublisher({ clock: steadyClock, log: () => {} });
  const reported: string[] = [];
  concerned.onCommits(
    () => void reported.push("of the service"),
    ({ changesSystemTables }) => !changesSystemTables,
  );
  concerned.onCommits((entries) => void reported.push(`rare ${entries.length}`), ({ ts }) => {
    reported.push(`asked at ${ts} of ${concerned.ts}`);
    return ts < 8;
  });
  concerned.onGroup(() => void reported.push("group"));
  concerned.followed(group(4, false));
  assert.equal(made, 0);
  concerned.followed(group(6, true));
  concerned.followed(group(8, true));
  assert.equal(made, 2);
  assert.deepEqual(reported, [
    ...["asked at 4 of 4", "group"],
    ...["asked at 6 of 6", "of the service", "group"],
    ...["asked at 8 of 8", "of the service", "rare 2", "group"],
  ]);
  assert.equal(concerned.count, 6);
  it.followed(group(2, false));
  it.followed({ ...group(2, false), count: 0 });
  assert.deepEqual(noted, ["commits 2 at 2", "group at 2", "reported 2", "group at 2", "reported 2"]);
});

Deno.test("after rows that contradict published ones all listeners resync", () => {
  const { it, logged, noted } = news();
  const entries = () => {
    throw new RangeError("a row says something else");
  };
  it.followed({ ts: 3, count: 1, keySpaces: new Set(), changesSystemTables: false, entries });
  assert.deepEqual(noted, ["reload at 3", "group at 3", "reported 3"]);
  assert.deepEqual(logged, ["error Cannot publish the commits of applied rows"]);
});

Deno.test("an answer waits until the commits that it reflects were published", async () => {
  const { it } = news();
  it.begin(4);
  await it.published(4);
  let isPublished = false;
  const waiting = it.published(6).then(() => isPublished = true);
  it.group([entry], 5);
  await Promise.resolve();
  assert.ok(!isPublished);
  it.group([entry], 6);
  await waiting;
});

Deno.test("a listener that fails in its skip check receives the group, and others do too", () => {
  const { it, logged, noted } = news();
  it.onCommits(() => void noted.push("published anyway"), () => {
    throw new Error("a fault");
  });
  it.followed({ ts: 1, count: 1, keySpaces: new Set(), changesSystemTables: false, entries: () => [entry] });
  assert.deepEqual(noted, ["commits 1 at 1", "published anyway", "group at 1", "reported 1"]);
  assert.deepEqual(logged, ["error A commit listener failed"]);
});
