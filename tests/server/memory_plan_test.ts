/** How the memory of a machine is shared out. */
import assert from "node:assert/strict";
import { authLimits } from "../../mod/auth/limits.ts";
import { memoryPlan } from "../../mod/config/memory.ts";
import { usualMemory } from "../../mod/functions/host/mod.ts";

const MiB = 1024 * 1024;

Deno.test("a machine with enough memory gets the documented limits", () => {
  for (const bytes of [3072 * MiB, 64 * 1024 * MiB]) {
    const { isolates, hashesAtOnce } = memoryPlan({ bytes, cores: 8 });
    assert.deepEqual(isolates, usualMemory);
    assert.equal(hashesAtOnce, authLimits.hashesAtOnceMax);
  }
});

Deno.test("with less memory no part may use more, and a single isolate never more than the machine has", () => {
  const sizes = [128, 256, 512, 1023, 1024, 2048, 3071, 3072, 8192].map((size) => size * MiB);
  const plans = sizes.map((bytes) => ({ bytes, ...memoryPlan({ bytes, cores: 4 }) }));
  const amounts = ({ isolates, hashesAtOnce }: (typeof plans)[number]) => [
    isolates.heapMiB,
    isolates.dataMiB,
    isolates.writerSemiSpaceMiB,
    isolates.semiSpaceMiB ?? Infinity,
    isolates.readersMax,
    isolates.writerCacheBytes ?? Infinity,
    isolates.readerCacheBytes ?? Infinity,
    hashesAtOnce,
  ];
  for (const [at, plan] of plans.entries()) {
    const next = plans[at + 1];
    const more = next === undefined ? [] : amounts(next);
    assert.ok(more.every((amount, part) => amount >= (amounts(plan)[part] ?? 0)), `${plan.bytes}`);
    assert.ok(plan.isolates.heapMiB * MiB <= plan.bytes, `${plan.bytes}`);
  }
});

Deno.test("the heap of an isolate is never so small that no app could be loaded", () => {
  for (const bytes of [1, 512, 64 * MiB, 128 * MiB]) {
    assert.equal(memoryPlan({ bytes, cores: 1 }).isolates.heapMiB, 64, `${bytes}`);
  }
});

Deno.test("one processor computes one hash at a time and has two readers, and each number is at least one", () => {
  const { isolates, hashesAtOnce } = memoryPlan({ bytes: 8192 * MiB, cores: 1 });
  assert.deepEqual([isolates.readersMax, hashesAtOnce], [2, 1]);
});
