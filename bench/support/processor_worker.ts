/**
 * Receives a number of loops and returns the milliseconds of each. The loop computes four independent sums over values in the
 * first-level cache, so that its speed depends only on the processor.
 */
/// <reference lib="deno.worker" />

const VALUES = 4096;
const PASSES = 600;
const values = Int32Array.from({ length: VALUES }, (_, index) => index);

function sum(): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let pass = 0; pass < PASSES; pass++) {
    for (let i = 0; i < VALUES; i += 4) {
      a = (a + (values[i] ?? 0) ^ pass) | 0;
      b = (b + (values[i + 1] ?? 0) ^ pass) | 0;
      c = (c + (values[i + 2] ?? 0) ^ pass) | 0;
      d = (d + (values[i + 3] ?? 0) ^ pass) | 0;
    }
  }
  return a ^ b ^ c ^ d;
}

/** Uses the results, so that the compiler does not remove the loops. */
let result = 0;

self.onmessage = ({ data: loops }: MessageEvent<number>) => {
  const times: number[] = [];
  for (let loop = 0; loop < loops; loop++) {
    const startedAt = performance.now();
    result ^= sum();
    times.push(performance.now() - startedAt);
  }
  self.postMessage(times);
};
