import assert from "node:assert/strict";
import { Wakefulness } from "../../mod/kit/wakefulness.ts";

/** A wait that is over after so many milliseconds, and what the event loop did meanwhile. */
function world(cores = 2) {
  const clock = { now: 0 };
  const turns: (() => void)[] = [];
  const awake = new Wakefulness(1, { now: () => clock.now, later: (run) => turns.push(run), cores });
  /** Runs what is to run in the next turn; a turn takes a tenth of a millisecond. */
  const turn = () => {
    clock.now += 0.1;
    for (const run of turns.splice(0)) run();
  };
  const wait = (ms: number): number => {
    let turned = 0;
    awake.wait();
    for (const end = clock.now + ms; clock.now < end;) {
      if (turns.length > 0) turned++;
      turn();
    }
    awake.over();
    return turned;
  };
  return { wait, turn, turns, clock, awake };
}

Deno.test("a short wait is spent awake when the one before it was short", () => {
  const { wait, turn, turns } = world();
  assert.equal(wait(0.5), 0, "the first one was spent awake");
  assert.ok(wait(0.5) >= 4);
  assert.ok(wait(0.5) >= 4);
  turn();
  assert.equal(turns.length, 0, "awake though nothing is waited for");
});

Deno.test("a wait that turns out to be long is slept through, and so is the next", () => {
  const { wait, turns } = world();
  wait(0.5);
  const turned = wait(100);
  assert.ok(turned >= 9 && turned <= 11, String(turned));
  assert.equal(wait(0.5), 0);
  assert.equal(turns.length, 0);
  assert.ok(wait(0.5) > 0);
});

Deno.test("waits that follow one another directly turn the loop once a turn", () => {
  const { wait, turns } = world();
  wait(0.5);
  for (let i = 0; i < 10; i++) wait(0.1);
  assert.ok(turns.length <= 1, String(turns.length));
});

Deno.test("short waits far from one another are slept through", () => {
  const { wait, clock } = world();
  for (let i = 0; i < 5; i++) {
    assert.equal(wait(0.4), 0);
    clock.now += 2;
  }
});

Deno.test("a turn that is still to come does not keep the wait after a long one awake", () => {
  const { wait, turns, clock, awake } = world();
  wait(0.5);
  awake.wait();
  clock.now += 5;
  awake.over();
  assert.equal(turns.length, 1);
  assert.ok(wait(0.5) <= 1);
});

Deno.test("with a single processor nobody stays awake", () => {
  const { wait } = world(1);
  for (let i = 0; i < 5; i++) assert.equal(wait(0.2), 0);
});
