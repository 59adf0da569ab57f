/** Limit of recursive scheduling, with a clock controlled by the test. */
import assert from "node:assert/strict";
import { schedulerLimits } from "../../mod/functions/limits.ts";
import { ChainLimiter } from "../../mod/scheduler/isolate_functions/schedule.ts";
import { World } from "./support/test_scheduler.ts";

const { chainWaitingMax, chainStepMs } = schedulerLimits;
const DAY = 86_400_000;

Deno.test("[FA10] exponential scheduling becomes slow linear growth above the limit", () => {
  const growth = new ChainLimiter();
  // Times at which functions run, soonest first.
  let due = [{ at: 0, putOff: false }];
  let runs = 0;
  const runsBy: number[] = [];
  const wait = (at: number, putOff: boolean) => {
    let place = due.length;
    while (place > 0 && (due[place - 1]?.at ?? 0) > at) place--;
    due.splice(place, 0, { at, putOff });
  };
  const runUntil = (end: number) => {
    for (;;) {
      const next = due[0];
      if (next === undefined || next.at > end) break;
      due = due.slice(1);
      const now = next.at;
      const later = next.putOff ? null : growth.deferUntil("root", now);
      if (later !== null) {
        wait(later, true);
        continue;
      }
      runs++;
      growth.onNotPending("root", next.putOff);
      for (let i = 0; i < 2; i++) {
        const at = growth.onScheduled("root", now, now);
        wait(at, at > now);
      }
    }
    runsBy.push(runs);
  };
  for (const minutes of [0, 1, 5]) runUntil(minutes * 60_000);
  const [first = 0, second = 0, third = 0] = runsBy;
  assert.ok(first <= chainWaitingMax, `${first} runs at once`);
  assert.ok(second - first <= 60_000 / chainStepMs, `${second - first} runs in a minute`);
  assert.ok(third - second <= 4 * 60_000 / chainStepMs, `${third - second} in four more`);
  assert.ok(due.length < chainWaitingMax + 6 * 60_000 / chainStepMs, `${due.length} wait`);
});

Deno.test("[FA10] a chain over the limit remains limited after its writer was lost", () => {
  const growth = new ChainLimiter();
  growth.onNotPending("root", true);
  assert.equal(growth.onScheduled("root", 0, 0), 0);
  assert.ok(growth.onScheduled("root", 0, 0) > 0);
  // An unknown chain starts from zero.
  growth.onNotPending("other", false);
  assert.equal(growth.onScheduled("other", 5, 0), 5);
});

Deno.test("[FA10] the number of tracked chains is bounded", () => {
  const growth = new ChainLimiter();
  for (let n = 0; n <= chainWaitingMax; n++) growth.onScheduled("first", 0, 0);
  assert.ok(growth.onScheduled("first", 0, 0) > 0);
  for (let n = 0; n < schedulerLimits.chainsKnownMax; n++) growth.onScheduled(`other ${n}`, 0, 0);
  assert.equal(growth.onScheduled("first", 0, 0), 0);
});

// deno-lint-ignore no-explicit-any -- jobs have many shapes
async function jobs(world: World): Promise<any[]> {
  // deno-lint-ignore no-explicit-any -- as above
  return await world.query("app:jobs") as any[];
}

Deno.test("[FA10] jobs carry their chain through mutations and actions", async () => {
  await using world = await World.open();
  const at = world.clock.now() + DAY;
  const leaf = { path: "app:note", args: { text: "leaf" }, when: at, after: false };
  const inner = { path: "app:schedule", args: leaf, when: 0 };
  const viaAction = { path: "app:scheduleByAction", args: { ...leaf, when: DAY }, when: 0 };
  for (const given of [inner, viaAction]) {
    const root = await world.mutate("app:schedule", { path: "app:schedule", args: given, when: 0 });
    await world.quiet();
    const chains = (await jobs(world)).filter(({ _id, chain }) => _id === root || chain?.root === root)
      .map(({ chain }) => chain ?? null);
    assert.deepEqual(chains, [null, { root, generation: 1 }, { root, generation: 2 }]);
  }
});

Deno.test("[FA10] jobs scheduled by jobs are deferred above the limit, which is logged", async () => {
  await using world = await World.open();
  const at = world.clock.now() + 1_000;
  const args = { texts: Array.from({ length: 2_000 }, (_, n) => `${n}`), at };
  const root = await world.mutate("app:schedule", {
    path: "app:repeat",
    args: { times: 4, path: "app:scheduleMany", args },
    when: 0,
  });
  await world.quiet();
  const all = (await jobs(world)).filter(({ name, chain }) => name === "app:note" && chain.root === root);
  // The fourth job is deferred itself.
  assert.equal(all.length, 6_000);
  const putOff = all.filter(({ chain }) => chain.putOff);
  // The first of these would have run later anyway.
  const { length } = putOff;
  assert.ok(length <= 6_000 - chainWaitingMax && length > 6_000 - chainWaitingMax - 1_000 / chainStepMs - 2);
  assert.ok(
    all.every(({ scheduledTime, chain }) => chain.putOff ? scheduledTime > at : scheduledTime === at),
  );
  assert.ok(putOff.every(({ scheduledTime }, n) => scheduledTime > (putOff[n - 1]?.scheduledTime ?? at)));
  // One line per function: those deferred while being scheduled, and the fourth.
  const reported = world.logged.filter((line) => line.includes("Deferring"));
  assert.deepEqual(
    reported,
    new Array(2).fill("warn Deferring jobs of a function that keeps scheduling more jobs"),
  );
});

Deno.test("[FA10] a job that reschedules itself and thousands scheduled by one job run on time", async () => {
  await using world = await World.open();
  const texts = Array.from({ length: 6_000 }, (_, n) => `${n}`);
  await world.mutate("app:schedule", {
    path: "app:scheduleMany",
    args: { texts, at: world.clock.now() + 10 * DAY },
    when: 0,
  });
  await world.mutate("app:schedule", { path: "app:count", args: { left: 300 }, when: 0 });
  await world.quiet();
  const all = await jobs(world);
  assert.equal(all.filter(({ chain }) => chain?.putOff).length, 0);
  assert.equal(all.filter(({ name, state }) => name === "app:count" && state.kind === "success").length, 301);
});

Deno.test("[FA10] a due job of a chain over the limit is deferred once and then runs", async () => {
  await using world = await World.open();
  const at = world.clock.now() + 60_000;
  const texts = Array.from({ length: 3_000 }, (_, n) => `${n}`);
  for (const path of ["app:note", "app:wait"]) {
    // Three jobs that together exceed the limit, and one that becomes due while these are pending.
    const job = { path: "app:scheduleMany", args: { texts, at: at + 1_000_000 } };
    const root = await world.mutate("app:schedule", {
      path: "app:repeatThen",
      args: { times: 2, ...job, then: { path, args: { text: `last of ${path}` } } },
      when: 0,
    });
    await world.advance(1);
    const last = async () =>
      (await jobs(world)).find(({ name, chain }) =>
        name === path && chain?.root === root && chain.generation === 1
      );
    const waiting = await last();
    assert.deepEqual([waiting.state, waiting.chain.putOff], [{ kind: "pending" }, true]);
    assert.ok(waiting.scheduledTime > world.clock.now());
    await world.advance(waiting.scheduledTime - world.clock.now());
    world.holds.releaseAll();
    await world.quiet();
    assert.deepEqual((await last()).state, { kind: "success" });
  }
});

Deno.test("[FA10] rolled back scheduling does not count: nested, in a failing job, from an action", async () => {
  await using world = await World.open();
  const at = world.clock.now() + DAY;
  const texts = Array.from({ length: 2_000 }, (_, n) => `${n}`);
  const failing = { texts, at, fails: true };
  const tries: [path: string, args: Record<string, unknown>][] = [
    ["app:tryMany", { texts, at }],
    ["app:scheduleMany", failing],
    ["app:tryManyByAction", { texts, at }],
  ];
  for (const [path, args] of tries) {
    const then = { path: "app:scheduleMany", args: { texts: ["last"], at } };
    const root = await world.mutate("app:schedule", {
      path: "app:repeatThen",
      args: { times: 4, path, args, then },
      when: 0,
    });
    await world.advance(1);
    await world.quiet();
    const kin = (await jobs(world)).filter(({ chain }) => chain?.root === root);
    const notes = kin.filter(({ name }) => name === "app:note");
    assert.equal(notes.length, 1, path);
    assert.deepEqual(kin.filter(({ chain }) => chain.putOff), [], path);
  }
});

Deno.test("[FA10] undoing a removal counts the job again", () => {
  const growth = new ChainLimiter();
  for (let n = 0; n < chainWaitingMax; n++) growth.onScheduled("root", 0, 0);
  growth.onNotPending("root", false)();
  assert.ok(growth.onScheduled("root", 0, 0) > 0);
  assert.doesNotThrow(growth.onNotPending("unknown", false));
  assert.equal(growth.onScheduled("unknown", 0, 0), 0);
});
