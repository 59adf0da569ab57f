import assert from "node:assert/strict";
import { drawer, mulberry32, WORKLOAD_SEED } from "./random.ts";

Deno.test("mulberry32 returns its published first number for the seed 0, and the same sequence each time", () => {
  assert.equal(mulberry32(0)(), 0.26642920868471265);
  const [first, second] = [mulberry32(WORKLOAD_SEED), mulberry32(WORKLOAD_SEED)];
  for (let i = 0; i < 100; i++) assert.equal(first(), second());
});

Deno.test("Zipf draws follow the weights 1 / (i + 1) ** alpha", () => {
  const draw = drawer(1000, { alpha: 1.5, random: mulberry32(1) });
  const counts = new Array<number>(1000).fill(0);
  const draws = 200_000;
  for (let i = 0; i < draws; i++) {
    const drawn = draw();
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  const weights = counts.map((_, i) => 1 / (i + 1) ** 1.5);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  for (const i of [0, 1, 2, 9]) {
    const expected = draws * (weights[i] ?? 0) / total;
    assert(
      Math.abs((counts[i] ?? 0) - expected) < 5 * Math.sqrt(expected),
      `${i}: ${counts[i]} of ${expected}`,
    );
  }
});

Deno.test("uniform random numbers cover exactly the range", () => {
  const draw = drawer(10, { alpha: 0, random: mulberry32(2) });
  const drawn = new Set(Array.from({ length: 1000 }, draw));
  assert.deepEqual([...drawn].sort((a, b) => a - b), Array.from({ length: 10 }, (_, i) => i));
});
