/**
 * Answers a number of loops with the milliseconds that each took. The loop has four sums that do not wait for one another,
 * over values that fit the first cache: it is as fast as the processor's units are free.
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

/** Results of the loops, so that the compiler does not remove them. */
let found = 0;

self.onmessage = ({ data: loops }: MessageEvent<number>) => {
  const times: number[] = [];
  for (let loop = 0; loop < loops; loop++) {
    const begun = performance.now();
    found ^= sum();
    times.push(performance.now() - begun);
  }
  self.postMessage(times);
};
