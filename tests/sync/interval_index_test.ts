/** The interval index against a plain list. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { DocumentChange, Interval, KeySpace } from "../../mod/engine/types.ts";
import { CommitMemory } from "../../mod/sync/queries/commit_memory.ts";
import { IntervalIndex, Invalidation } from "../../mod/sync/queries/invalidation.ts";

const key = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 3 });
const interval: fc.Arbitrary<Interval> = fc.oneof(
  fc.tuple(key),
  fc.tuple(key, key),
);
const step = fc.record({ add: fc.boolean(), interval, owner: fc.nat(5) });

/** A change of a document with unchanged keys, which are computed on demand. */
function keptChange(
  { space, key, onAsked = () => {}, chars = 1 }: {
    readonly space: KeySpace;
    readonly key: string;
    readonly onAsked?: (space: KeySpace) => void;
    readonly chars?: number;
  },
): DocumentChange {
  const spaces = ["t9", space, "i9"];
  return {
    table: "x",
    tableNumber: 1,
    id: "x",
    get keys(): never {
      throw new Error("All keys were made");
    },
    unchanged: {
      spaces,
      chars,
      key(place) {
        onAsked(spaces[place] ?? "");
        return key;
      },
    },
  };
}

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

Deno.test("SH3 a late answer learns which commit touched it first", () => {
  const commit = fc.record({ space: fc.constantFrom("t1", "i2"), before: key, after: fc.option(key) });
  const kept = fc.record({ space: fc.constantFrom("t1", "i2"), before: key, isKept: fc.constant(true) })
    .map((change) => ({ ...change, after: change.before }));
  const readSet = fc.record({
    t1: fc.array(interval, { maxLength: 5 }),
    i2: fc.array(interval, { maxLength: 5 }),
  });
  fc.assert(
    fc.property(
      fc.array(fc.oneof(commit, kept), { maxLength: 30 }),
      readSet,
      fc.nat(30),
      (commits, reads, after) => {
        const memory = new CommitMemory(0);
        commits.forEach((commit, i) => {
          const { space, before, after } = commit;
          const change = "isKept" in commit
            ? keptChange({ space, key: before })
            : { table: "x", tableNumber: 1, id: "x", keys: [[space, before, after]] as const };
          memory.add({ ts: i + 1, at: 0, changes: [change] });
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

Deno.test("SH3 keys of a document with unchanged keys are computed only if a query read nearby", () => {
  const asked: KeySpace[] = [];
  const change = keptChange({ space: "i2", key: "k", onAsked: (space) => asked.push(space) });
  const entry = { ts: 1, at: 0, changes: [change] };
  const invalidation = new Invalidation<string>();
  const touched: string[] = [];
  const stab = () => invalidation.stab(entry, (owner) => touched.push(owner));
  invalidation.add("another table's", { t1: [["a", "z"]] });
  const memory = new CommitMemory(0);
  memory.add(entry);
  stab();
  assert.equal(memory.firstTouch({ t1: [["a", "z"]] }, 0), null);
  assert.deepEqual([asked, touched], [[], []]);
  invalidation.add("before", { i2: [["a", "k"]] });
  invalidation.add("one", { i2: [["k"]] });
  invalidation.add("range", { i2: [["j", "l"]] });
  stab();
  assert.deepEqual(touched.sort(), ["one", "range"]);
  assert.equal(memory.firstTouch({ i2: [["a", "k"]] }, 0), null);
  assert.equal(memory.firstTouch({ i2: [["k"]] }, 0), 1);
  assert.deepEqual([...new Set(asked)], ["i2"]);
});

Deno.test("SH3 changes that keep much in memory are forgotten sooner", () => {
  const memory = new CommitMemory(0, 1_000);
  const large = (ts: number) => ({
    ts,
    at: 0,
    changes: [keptChange({ space: "i2", key: "k", chars: 150_000 })],
  });
  memory.add(large(1));
  assert.equal(memory.firstTouch({ t1: [["other"]] }, 0), null);
  memory.add(large(2));
  assert.equal(memory.firstTouch({ t1: [["other"]] }, 0), 1);
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
