import assert from "node:assert/strict";
import { statsLimits } from "../../../mod/ops/limits.ts";
import { GaugeHistory } from "../../../mod/ops/stats/server_stats.ts";

const MINUTE_MS = 60_000;

Deno.test("[ST6] sockets, memory and disk are sampled once a minute, and an hour is kept", async () => {
  let now = 10 * MINUTE_MS + 5;
  let sockets = 0;
  let broken = false;
  const gauges = new GaugeHistory({
    now: () => now,
    look: () =>
      broken
        ? Promise.reject(new Error("away"))
        : Promise.resolve({ sockets: ++sockets, subscriptions: 2, memory: 3, stored: 4, diskFree: null }),
  });
  await gauges.sample();
  assert.equal(gauges.history.length, 0, "the minute of the start");
  for (let half = 1; half <= 4; half++) {
    now += MINUTE_MS / 2;
    await Promise.all([gauges.sample(), gauges.sample()]);
  }
  assert.deepEqual(gauges.history.map(({ at, sockets }) => [at / MINUTE_MS, sockets]), [[11, 1], [12, 2]]);
  broken = true;
  now += MINUTE_MS;
  await gauges.sample();
  broken = false;
  for (let minute = 0; minute < 100; minute++) {
    now += MINUTE_MS;
    await gauges.sample();
  }
  assert.equal(gauges.history.length, Number(statsLimits.gaugesKept));
  assert.equal(gauges.history.at(-1)?.at, Math.floor(now / MINUTE_MS) * MINUTE_MS);
});
