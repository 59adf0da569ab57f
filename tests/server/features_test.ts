import assert from "node:assert/strict";
import { CommitPublisher } from "../../mod/functions/host/commit_publisher.ts";
import type { IsolateHost } from "../../mod/functions/host/mod.ts";
import { steadyClock } from "../../mod/kit/clock.ts";
import { type Feature, Features } from "../../mod/server/feature.ts";

const host: Pick<IsolateHost, "onCommits" | "onReload"> = { onCommits() {}, onReload() {} };

/** Two features that note what becomes of them; of a cluster's leader alone is the second one. */
function noting(): { readonly features: Features; readonly noted: string[] } {
  const features = new Features(host);
  const noted: string[] = [];
  const feature = (name: string, leads: boolean): Feature => ({
    ...(leads && { leaderOnly: true }),
    start: () => void noted.push(`${name} begins`),
    stop: () => void noted.push(`${name} ends`),
  });
  features.add(feature("all", false));
  features.add(feature("leader", true));
  return { features, noted };
}

Deno.test("[PG8] background work of a leader does not start once it has been paused", async () => {
  const { features, noted } = noting();
  await features.stopLeaderWork();
  await features.startAll(() => {});
  await features[Symbol.asyncDispose]();
  assert.deepEqual(noted, ["leader ends", "all begins", "all ends"]);
});

Deno.test("what has begun ends once", async () => {
  const { features, noted } = noting();
  await features.startAll(() => {});
  await features.stopLeaderWork();
  await features[Symbol.asyncDispose]();
  assert.deepEqual(noted, ["all begins", "leader begins", "leader ends", "all ends"]);
});

Deno.test("[PG5] features receive another server's commits when tables of the service changed, and their own always", () => {
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
