/** Fair queues: the order of callers, without loss and without overtaking among the calls of one caller. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Costs } from "../../../mod/functions/host/costs.ts";
import { FairQueue } from "../../../mod/functions/host/fair_queue.ts";

interface Item {
  readonly caller: string;
  readonly n: number;
  readonly ms: number;
}

const turns = () => new FairQueue<Item>({ callerOf: ({ caller }) => caller, costOf: ({ ms }) => ms });

function all(line: FairQueue<Item>): string {
  const out: string[] = [];
  for (let item = line.take(); item !== undefined; item = line.take()) out.push(`${item.caller}${item.n}`);
  return out.join(" ");
}

Deno.test("FA3 the queue is fair to callers, regardless of how many calls each has", () => {
  const line = turns();
  for (let n = 1; n <= 4; n++) line.push({ caller: "a", n, ms: 1 });
  for (let n = 1; n <= 2; n++) line.push({ caller: "b", n, ms: 1 });
  line.push({ caller: "c", n: 1, ms: 1 });
  assert.equal(all(line), "a1 b1 c1 a2 b2 a3 a4");
});

Deno.test("FA3 slow calls run after later ones of other callers, but not indefinitely", () => {
  const line = turns();
  for (const caller of ["x", "y", "z"]) line.push({ caller, n: 1, ms: 5_000 });
  assert.equal(line.take()?.caller, "x");
  line.push({ caller: "quick", n: 1, ms: 0.1 });
  assert.equal(line.take()?.caller, "quick");
  // An endless crowd: each time a new caller.
  let turnsUntil = 0;
  for (;; turnsUntil++) {
    line.push({ caller: `new ${turnsUntil}`, n: 1, ms: 1 });
    if (line.take()?.caller === "y") break;
    assert(turnsUntil < 2_000, "it waits for ever");
  }
  assert(turnsUntil > 20, "it was not behind");
});

Deno.test("FA3 callers with much served time run after those with little", () => {
  const line = turns();
  for (let n = 1; n <= 3; n++) line.push({ caller: "much", n, ms: 100 });
  line.take();
  for (let n = 1; n <= 5; n++) line.push({ caller: "little", n, ms: 10 });
  assert.equal(all(line), "little1 little2 little3 little4 little5 much2 much3");
});

Deno.test("MU4 the calls of one caller keep their order, returned calls included", () => {
  const given = fc.array(
    fc.record({ caller: fc.constantFrom("a", "b", "c", "d"), ms: fc.constantFrom(0.1, 3, 400) }),
    { maxLength: 60 },
  );
  fc.assert(fc.property(given, fc.infiniteStream(fc.nat(9)), (items, dice) => {
    const line = turns();
    const counts = new Map<string, number>();
    const next = new Map<string, number>();
    let out = 0;
    let held: Item[] = [];
    const done = () => {
      for (const { caller, n } of held) {
        assert.equal(n, (next.get(caller) ?? 0) + 1, `of ${caller}`);
        next.set(caller, n);
        out++;
      }
      held = [];
    };
    const step = (roll: number) => {
      if (roll < 5) {
        const item = line.take();
        if (item !== undefined) held.push(item);
      } else if (roll < 7) done();
      else if (roll === 9) {
        line.requeue(held);
        held = [];
      }
    };
    for (const { caller, ms } of items) {
      const n = (counts.get(caller) ?? 0) + 1;
      counts.set(caller, n);
      line.push({ caller, n, ms });
      step(dice.next().value);
      step(dice.next().value);
    }
    done();
    while (line.size > 0) {
      step(0);
      done();
    }
    assert.equal(out, items.length);
    assert.equal(line.callers, 0);
  }));
});

Deno.test("a full queue drops calls of the caller with the most, for a caller with far less", () => {
  const line = turns();
  for (let n = 1; n <= 9; n++) line.push({ caller: "a", n, ms: 1 });
  for (let n = 1; n <= 3; n++) line.push({ caller: "b", n, ms: 1 });
  const one = () => 1;
  assert.deepEqual(line.evictFor({ caller: "c", n: 1, ms: 1 }, one), { caller: "a", n: 9, ms: 1 });
  assert.equal(line.evictFor({ caller: "b", n: 4, ms: 1 }, one), null);
  assert.equal(line.evictFor({ caller: "a", n: 9, ms: 1 }, one), null);
  assert.equal(line.size, 11);
});

Deno.test("items can be removed at any position", () => {
  const line = turns();
  for (const caller of ["a", "b", "c"]) for (let n = 1; n <= 3; n++) line.push({ caller, n, ms: 1 });
  const odd = line.takeOut(({ n, caller }) => n % 2 === 1 || caller === "c");
  assert.deepEqual(odd.map(({ caller, n }) => caller + n), ["a1", "a3", "b1", "b3", "c1", "c2", "c3"]);
  assert.equal(all(line), "a2 b2");
});

Deno.test("a slow run counts immediately, quick ones reduce the estimate gradually", () => {
  const costs = new Costs();
  assert(costs.of("f") < 1);
  costs.took("f", 1_000);
  assert.equal(costs.of("f"), 1_000);
  costs.took("f", 0);
  assert.equal(costs.of("f"), 500);
  for (let i = 0; i < 10; i++) costs.took("f", 0);
  assert(costs.of("f") < 1);
});
