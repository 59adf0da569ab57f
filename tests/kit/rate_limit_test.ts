import assert from "node:assert/strict";
import { RateLimiter } from "../../mod/kit/rate_limit.ts";

function limiter({ keysMax = 100 } = {}) {
  const clock = { now: 1_000 };
  return { clock, limit: new RateLimiter({ burst: 3, perMinute: 6, keysMax, now: () => clock.now }) };
}

Deno.test("a rate limit allows its burst, then one call for each interval, and returns the time to wait", () => {
  const { clock, limit } = limiter();
  assert.deepEqual([1, 2, 3, 4].map(() => limit.take("a")), [0, 0, 0, 10_000]);
  clock.now += 4_000;
  assert.equal(limit.take("a"), 6_000);
  clock.now += 6_000;
  assert.deepEqual([1, 2].map(() => limit.take("a")), [0, 10_000]);
});

Deno.test("a rate limit refills up to its burst", () => {
  const { clock, limit } = limiter();
  limit.take("a");
  clock.now += 3_600_000;
  assert.deepEqual([1, 2, 3, 4].map(() => limit.take("a") === 0), [true, true, true, false]);
});

Deno.test("keys of a rate limit are independent, and refunded calls do not count", () => {
  const { limit } = limiter();
  for (let i = 0; i < 10; i++) limit.take("a");
  assert.equal(limit.take("b"), 0);
  limit.refund("a");
  assert.equal(limit.wait("a"), 0);
  assert.equal(limit.take("a"), 0);
  assert.ok(limit.take("a") > 0);
});

Deno.test("a rate limit keeps a bounded number of keys, the most recently used ones", () => {
  const { limit } = limiter({ keysMax: 50 });
  for (let i = 0; i < 3; i++) limit.take("kept");
  for (let i = 0; i < 10_000; i++) {
    limit.take(`flood-${i}`);
    if (i % 40 === 0) assert.ok(limit.take("kept") > 0);
  }
  assert.ok(limit.size <= 50);
});

Deno.test("a clock set back neither opens nor locks a rate limit", () => {
  const { clock, limit } = limiter();
  for (let i = 0; i < 3; i++) limit.take("a");
  clock.now -= 500_000;
  assert.equal(limit.take("a"), 10_000);
});
