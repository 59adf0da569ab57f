import assert from "node:assert/strict";
import { AdaptiveSpinner } from "../../mod/kit/adaptive_spinner.ts";

/** Simulates a wait of this many milliseconds and the event loop during it. */
function world(cores = 2) {
  const clock = { now: 0 };
  const turns: (() => void)[] = [];
  const awake = new AdaptiveSpinner(1, { now: () => clock.now, later: (run) => turns.push(run), cores });
  /** Runs the callbacks of the next tick; a tick takes a tenth of a millisecond. */
  const turn = () => {
    clock.now += 0.1;
    for (const run of turns.splice(0)) run();
  };
  const wait = (ms: number): number => {
    let turned = 0;
    awake.waitStarted();
    for (const end = clock.now + ms; clock.now < end;) {
      if (turns.length > 0) turned++;
      turn();
    }
    awake.waitEnded();
    return turned;
  };
  return { wait, turn, turns, clock, awake };
}

Deno.test("a short wait spins if the previous one was short", () => {
  const { wait, turn, turns } = world();
  assert.equal(wait(0.5), 0, "the first one was spent awake");
  assert.ok(wait(0.5) >= 4);
  assert.ok(wait(0.5) >= 4);
  turn();
  assert.equal(turns.length, 0, "awake though nothing is waited for");
});

Deno.test("a wait that turns out to be long stops spinning, and the next one does not spin", () => {
  const { wait, turns } = world();
  wait(0.5);
  const turned = wait(100);
  assert.ok(turned >= 9 && turned <= 11, String(turned));
  assert.equal(wait(0.5), 0);
  assert.equal(turns.length, 0);
  assert.ok(wait(0.5) > 0);
});

Deno.test("consecutive waits schedule one callback for each tick", () => {
  const { wait, turns } = world();
  wait(0.5);
  for (let i = 0; i < 10; i++) wait(0.1);
  assert.ok(turns.length <= 1, String(turns.length));
});

Deno.test("short waits with long pauses between them do not spin", () => {
  const { wait, clock } = world();
  for (let i = 0; i < 5; i++) {
    assert.equal(wait(0.4), 0);
    clock.now += 2;
  }
});

Deno.test("a pending tick does not make the wait after a long one spin", () => {
  const { wait, turns, clock, awake } = world();
  wait(0.5);
  awake.waitStarted();
  clock.now += 5;
  awake.waitEnded();
  assert.equal(turns.length, 1);
  assert.ok(wait(0.5) <= 1);
});

Deno.test("a single processor never spins", () => {
  const { wait } = world(1);
  for (let i = 0; i < 5; i++) assert.equal(wait(0.2), 0);
});
