import assert from "node:assert/strict";
import { CommitPublisher } from "../../mod/functions/host/commit_publisher.ts";
import type { IsolateHost } from "../../mod/functions/host/mod.ts";
import { steadyClock } from "../../mod/kit/clock.ts";
import { Features } from "../../mod/server/feature.ts";

const host: Pick<IsolateHost, "onCommits" | "onReload"> = { onCommits() {}, onReload() {} };

Deno.test("features start in order, and all stop before one is released", async () => {
  const features = new Features(host);
  const events: string[] = [];
  for (const name of ["first", "second"]) {
    features.add({
      start: () => void events.push(`start ${name}`),
      stop: () => void events.push(`stop ${name}`),
      [Symbol.asyncDispose]: () => Promise.resolve(void events.push(`release ${name}`)),
    });
  }
  await features.start();
  await features[Symbol.asyncDispose]();
  assert.deepEqual(events, [
    ...["start first", "start second", "stop first", "stop second"],
    ...["release second", "release first"],
  ]);
});

Deno.test("[PG5] features receive another server's commits if system tables changed, and their own always", () => {
  const heard: string[] = [];
  const news = new CommitPublisher({ clock: steadyClock, log: () => {} });
  const features = new Features({
    onCommits: (listener, passes) => news.onCommits(listener, passes),
    onReload() {},
  });
  features.add({ applyCommits: (entries) => void heard.push(`${entries.length} at ${news.ts}`) });
  const entry = { ts: 1, at: 0, changes: [] };
  const group = (ts: number, ofService: boolean) =>
    news.followed({
      ts,
      count: 1,
      keySpaces: new Set(),
      changesSystemTables: ofService,
      entries: () => [entry],
    });
  group(1, false);
  group(2, true);
  news.group([entry, entry], 4);
  assert.deepEqual(heard, ["1 at 2", "2 at 4"]);
});
