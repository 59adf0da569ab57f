import assert from "node:assert/strict";
import type { CommitEntry } from "../../../mod/engine/types.ts";
import { CommitNews } from "../../../mod/functions/host/commit_news.ts";
import { steadyClock } from "../../../mod/kit/clock.ts";

const entry = {} as CommitEntry;

function news() {
  const logged: string[] = [];
  const noted: string[] = [];
  const it = new CommitNews({
    clock: steadyClock,
    log: (level, message) => void logged.push(`${level} ${message}`),
  });
  it.onCommits((entries) => void noted.push(`commits ${entries.length} at ${it.ts}`));
  it.onGroup(() => void noted.push(`group at ${it.ts}`));
  it.onReload(() => void noted.push(`reload at ${it.ts}`));
  it.onTold((ts) => void noted.push(`told ${ts}`));
  return { it, logged, noted };
}

Deno.test("listeners hear of commits, then of groups, and at the ts they are of; who waits for that comes last", async () => {
  const { it, noted } = news();
  const waiting = it.told(2).then(() => noted.push("waited for 2"));
  it.begin(1);
  it.group([entry], 2);
  it.group([], 3);
  it.gap(5);
  await waiting;
  assert.deepEqual(noted, [
    "told 1",
    "commits 1 at 2",
    "group at 2",
    "told 2",
    "group at 3",
    "told 3",
    "reload at 5",
    "told 5",
    "waited for 2",
  ]);
  await it.told(5);
});

Deno.test("a listener that fails is told of in the log, and keeps no other from hearing", () => {
  const { it, logged, noted } = news();
  it.onCommits(() => {
    throw new Error("a fault");
  });
  it.onCommits(() => void noted.push("the next"));
  it.group([entry], 1);
  assert.deepEqual(noted, ["commits 1 at 1", "the next", "group at 1", "told 1"]);
  assert.deepEqual(logged, ["error A listener of the isolates failed"]);
});

Deno.test("where no commits are told of any more nobody waits for them", async () => {
  const { it, noted } = news();
  it.begin(1);
  const waiting = it.told(9);
  it.close();
  await waiting;
  await it.told(10);
  assert.deepEqual(noted, ["told 1"]);
});
