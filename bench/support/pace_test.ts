import assert from "node:assert/strict";
import { missedPace } from "./pace.ts";

Deno.test("missedPace reports only operations that fell behind", () => {
  const pace = { perSecond: 500, ms: 20_000 };
  assert.equal(missedPace({ ...pace, done: 7_860 }), "7860 of 10000 operations were done in 20 s");
  assert.notEqual(missedPace({ ...pace, done: 9_799 }), null);
  for (const done of [9_800, 10_000, 10_050]) assert.equal(missedPace({ ...pace, done }), null);
});
