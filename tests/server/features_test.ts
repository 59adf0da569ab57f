import assert from "node:assert/strict";
import type { IsolateHost } from "../../mod/functions/host/mod.ts";
import { type Feature, Features } from "../../mod/server/feature.ts";

const host: Pick<IsolateHost, "onCommits" | "onReload"> = { onCommits() {}, onReload() {} };

/** Two features that note what becomes of them; of a cluster's leader alone is the second one. */
function noting(): { readonly features: Features; readonly noted: string[] } {
  const features = new Features(host);
  const noted: string[] = [];
  const feature = (name: string, leads: boolean): Feature => ({
    ...(leads && { leads: true }),
    start: () => void noted.push(`${name} begins`),
    stop: () => void noted.push(`${name} ends`),
  });
  features.add(feature("all", false));
  features.add(feature("leader", true));
  return { features, noted };
}

Deno.test("[PG8] what a leader does by itself does not begin once it was told to rest", async () => {
  const { features, noted } = noting();
  await features.rest();
  await features.begin(() => {});
  await features[Symbol.asyncDispose]();
  assert.deepEqual(noted, ["leader ends", "all begins", "all ends"]);
});

Deno.test("what has begun ends once", async () => {
  const { features, noted } = noting();
  await features.begin(() => {});
  await features.rest();
  await features[Symbol.asyncDispose]();
  assert.deepEqual(noted, ["all begins", "leader begins", "leader ends", "all ends"]);
});
