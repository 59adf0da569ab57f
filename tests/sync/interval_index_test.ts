/** The interval index against a plain list. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Interval } from "../../mod/engine/types.ts";
import { CommitMemory } from "../../mod/sync/queries/commit_memory.ts";
import { IntervalIndex } from "../../mod/sync/queries/interval_index.ts";

const key = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 3 });
const interval: fc.Arbitrary<Interval> = fc.oneof(
  fc.tuple(key),
  fc.tuple(key, key),
);
const step = fc.record({ add: fc.boolean(), interval, owner: fc.nat(5) });

function contains([lo, hi]: Interval, at: string): boolean {
  return hi === undefined ? lo === at : lo <= at && at < hi;
}

Deno.test("SH3 a key finds exactly the owners whose intervals contain it", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(key, { maxLength: 10 }), (steps, keys) => {
      const index = new IntervalIndex<number>();
      const naive = new Map<string, { interval: Interval; owner: number }>();
      for (const { add, interval, owner } of steps) {
        const name = JSON.stringify([interval, owner]);
        if (add) {
          index.add(interval, owner);
          naive.set(name, { interval, owner });
        } else {
          index.remove(interval, owner);
          naive.delete(name);
        }
      }
      for (const at of keys) {
        const found = new Set<number>();
        index.stab(at, (owner) => found.add(owner));
        const expected = [...naive.values()].filter(({ interval }) => contains(interval, at));
        assert.deepEqual([...found].sort(), [...new Set(expected.map(({ owner }) => owner))].sort());
      }
      for (const { interval, owner } of naive.values()) index.remove(interval, owner);
      assert.ok(index.empty);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("SH3 the cost of finding an owner hardly grows with the number of intervals", () => {
  const fill = (count: number): IntervalIndex<number> => {
    const index = new IntervalIndex<number>();
    for (let i = 0; i < count; i++) {
      const lo = i.toString().padStart(6, "0");
      index.add([lo, `${lo}~`], i);
    }
    return index;
  };
  const visit = (index: IntervalIndex<number>, count: number): number => {
    let owners = 0;
    const start = performance.now();
    for (let i = 0; i < 2000; i++) {
      index.stab((i * 7919 % count).toString().padStart(6, "0"), () => owners++);
    }
    assert.equal(owners, 2000);
    return performance.now() - start;
  };
  // The least of several: a busy machine only ever adds.
  const least = (count: number): number => {
    const index = fill(count);
    return Math.min(...Array.from({ length: 7 }, () => visit(index, count)));
  };
  const few = least(1000);
  const many = least(100_000);
  // A hundred times the intervals; linear cost would be a hundred times the time.
  assert.ok(many < few * 20 + 5, `${few} ms for 1,000 intervals, ${many} ms for 100,000`);
});

Deno.test("SH3 a late answer learns which commit touched it first", () => {
  const commit = fc.record({ space: fc.constantFrom("t1", "i2"), before: key, after: fc.option(key) });
  const readSet = fc.record({
    t1: fc.array(interval, { maxLength: 5 }),
    i2: fc.array(interval, { maxLength: 5 }),
  });
  fc.assert(
    fc.property(
      fc.array(commit, { maxLength: 30 }),
      readSet,
      fc.nat(30),
      (commits, reads, after) => {
        const memory = new CommitMemory(0);
        commits.forEach(({ space, before, after }, i) => {
          memory.add({
            ts: i + 1,
            at: 0,
            changes: [{ table: "x", tableNumber: 1, id: "x", keys: [[space, before, after]] }],
          });
        });
        const expected = commits.findIndex((change, i) =>
          i + 1 > after &&
          (reads[change.space as "t1" | "i2"] ?? []).some((read) =>
            contains(read, change.before) || (change.after !== null && contains(read, change.after))
          )
        );
        assert.equal(memory.firstTouch(reads, after), expected < 0 ? null : expected + 1);
      },
    ),
    { numRuns: 3000 },
  );
});

Deno.test("SH3 forgotten commits count as touching", () => {
  const memory = new CommitMemory(0, 2);
  const entry = (ts: number) => ({
    ts,
    at: 0,
    changes: [{ table: "x", tableNumber: 1, id: "x", keys: [["t1", "k", "k"]] as const }],
  });
  memory.add(entry(1));
  assert.equal(memory.firstTouch({ t1: [["other"]] }, 0), null);
  memory.add(entry(2));
  memory.add(entry(3));
  assert.equal(memory.firstTouch({ t1: [["other"]] }, 0), 1);
  assert.equal(memory.firstTouch({ t1: [["k"]] }, 3), null);
  memory.add(entry(4));
  assert.equal(memory.firstTouch({ t1: [["k"]] }, 3), 4);
  assert.equal(memory.firstTouch({ "*": [] }, 3), 4);
});
