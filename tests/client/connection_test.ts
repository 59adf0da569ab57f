/** The connection machine: every arrow of its drawing, and the waits before reconnections. */
import assert from "node:assert/strict";
import { type ConnectionEffect, ConnectionMachine } from "../../mod/client/connection/connection.ts";
import * as clientLimits from "../../mod/client/limits.ts";

const halfway = () => 0.5;

function openMachine(random = halfway): ConnectionMachine {
  const machine = new ConnectionMachine(random);
  machine.step({ type: "start" });
  machine.step({ type: "opened", now: 0 });
  return machine;
}

function types(effects: ConnectionEffect[]): string[] {
  return effects.map((effect) => effect.type);
}

function waitOf(effects: ConnectionEffect[]): number {
  const timer = effects.find((effect) => effect.type === "setTimer");
  assert(timer?.type === "setTimer", "no timer was set");
  return timer.delayMs;
}

Deno.test("start opens a socket with a timeout of 15 s", () => {
  const machine = new ConnectionMachine(halfway);
  assert.equal(machine.phase, "idle");
  const effects = machine.step({ type: "start" });
  assert.deepEqual(effects, [{ type: "openSocket" }, { type: "setTimer", delayMs: 15_000 }]);
  assert.equal(machine.phase, "connecting");
  assert.equal(machine.connectionCount, 0);
  assert.equal(machine.lastCloseReason, null);
  assert.deepEqual(machine.step({ type: "start" }), [], "a second start does nothing");
});

Deno.test("opened reports the connection and closes it after 30 s of silence", () => {
  const machine = new ConnectionMachine(halfway);
  machine.step({ type: "start" });
  const effects = machine.step({ type: "opened", now: 5 });
  assert.deepEqual(effects, [{ type: "setTimer", delayMs: 30_000 }, { type: "up" }]);
  assert.equal(machine.phase, "open");
  assert.equal(machine.everOpened, true);
});

Deno.test("a socket that does not open in time is dropped and tried again", () => {
  const machine = new ConnectionMachine(halfway);
  machine.step({ type: "start" });
  assert.deepEqual(types(machine.step({ type: "timer", now: 15_000 })), ["dropSocket", "setTimer"]);
  assert.equal(machine.phase, "waiting");
  assert.deepEqual(types(machine.step({ type: "timer", now: 16_000 })), ["openSocket", "setTimer"]);
  assert.equal(machine.connectionCount, 1, "the attempt that never opened counts");
});

Deno.test("CL10 silence is measured from the last message", () => {
  const machine = openMachine();
  machine.step({ type: "heard", now: 20_000, useful: false });
  assert.deepEqual(machine.step({ type: "timer", now: 30_000 }), [{ type: "setTimer", delayMs: 20_000 }]);
  assert.equal(machine.phase, "open");
  assert.deepEqual(types(machine.step({ type: "timer", now: 50_000 })), ["dropSocket", "setTimer", "down"]);
  assert.equal(machine.phase, "waiting");
  assert.match(machine.lastCloseReason ?? "", /silent/);
});

Deno.test("CL11 close code 1012 is answered within 250 ms and forgets failures", () => {
  for (const [random, delayMs] of [[0, 0], [0.5, 125], [0.999, 249.75]] as const) {
    const machine = new ConnectionMachine(() => random);
    machine.step({ type: "start" });
    for (let failure = 0; failure < 8; failure++) {
      machine.step({ type: "closed", now: 0, code: 1006, reason: "" });
      machine.step({ type: "timer", now: 0 });
    }
    machine.step({ type: "opened", now: 0 });
    const effects = machine.step({ type: "closed", now: 0, code: 1012, reason: "restart" });
    assert.equal(waitOf(effects), delayMs);
    assert.equal(machine.retries, 0);
    assert.equal(machine.lastCloseReason, "closed with code 1012: restart");
  }
});

Deno.test("waits double with each failure, half of them jitter, up to the limit", () => {
  for (const [random, share] of [[0, 0.5], [1, 1]] as const) {
    const machine = new ConnectionMachine(() => random);
    machine.step({ type: "start" });
    const waits: number[] = [];
    for (let failure = 0; failure < 9; failure++) {
      waits.push(waitOf(machine.step({ type: "closed", now: 0, code: 1006, reason: "" })));
      machine.step({ type: "timer", now: 0 });
    }
    const full = [250, 500, 1000, 2000, 4000, 8000, 16_000, 16_000, 16_000];
    assert.deepEqual(waits, full.map((ms) => ms * share));
  }
});

Deno.test("a useful message makes waits short again, and a Ping does not", () => {
  const machine = new ConnectionMachine(() => 1);
  machine.step({ type: "start" });
  for (let failure = 0; failure < 5; failure++) {
    machine.step({ type: "closed", now: 0, code: 1006, reason: "" });
    machine.step({ type: "timer", now: 0 });
  }
  machine.step({ type: "opened", now: 0 });
  machine.step({ type: "heard", now: 1, useful: false });
  assert.equal(machine.retries, 5);
  machine.step({ type: "heard", now: 1, useful: true });
  assert.equal(machine.retries, 0);
  assert.equal(waitOf(machine.step({ type: "closed", now: 2, code: 1006, reason: "" })), 250);
});

Deno.test("faults lengthen waits although messages were useful, until a socket lives a minute", () => {
  const machine = openMachine(() => 1);
  const waits: number[] = [];
  for (let fault = 0; fault < 4; fault++) {
    machine.step({ type: "heard", now: 1, useful: true });
    waits.push(waitOf(machine.step({ type: "fault", now: 2, reason: "FatalError: x" })));
    machine.step({ type: "timer", now: 3 });
    machine.step({ type: "opened", now: 4 });
  }
  assert.deepEqual(waits, [250, 500, 1000, 2000]);
  assert.equal(machine.lastCloseReason, "FatalError: x");
  machine.step({ type: "heard", now: 61_000, useful: true });
  assert.equal(waitOf(machine.step({ type: "fault", now: 61_000, reason: "y" })), 250);
});

Deno.test("waking ends a pause immediately, and drops a socket after 20 s of silence", () => {
  const machine = openMachine();
  assert.deepEqual(machine.step({ type: "wake", now: 19_999 }), [], "a socket that may live is kept");
  assert.deepEqual(
    types(machine.step({ type: "wake", now: 20_000 })),
    ["dropSocket", "setTimer", "down", "openSocket", "setTimer"],
  );
  assert.equal(machine.phase, "connecting");
  assert.deepEqual(machine.step({ type: "wake", now: 20_001 }), [], "an attempt in progress is kept");
  machine.step({ type: "closed", now: 20_002, code: 1006, reason: "" });
  assert.deepEqual(types(machine.step({ type: "wake", now: 20_003 })), ["openSocket", "setTimer"]);
});

Deno.test("stop is final in every phase", () => {
  const machines: [ConnectionMachine, string[]][] = [
    [new ConnectionMachine(halfway), ["clearTimer"]],
    [openMachine(), ["clearTimer", "dropSocket", "down"]],
  ];
  const connecting = new ConnectionMachine(halfway);
  connecting.step({ type: "start" });
  machines.push([connecting, ["clearTimer", "dropSocket"]]);
  const waiting = openMachine();
  waiting.step({ type: "closed", now: 0, code: 1006, reason: "" });
  machines.push([waiting, ["clearTimer"]]);
  for (const [machine, expected] of machines) {
    assert.deepEqual(types(machine.step({ type: "stop" })), expected);
    assert.equal(machine.phase, "stopped");
    for (const type of ["start", "stop"] as const) assert.deepEqual(machine.step({ type }), []);
    for (const type of ["opened", "timer", "wake"] as const) {
      assert.deepEqual(machine.step({ type, now: 1 }), []);
    }
    assert.deepEqual(machine.step({ type: "closed", now: 1, code: 1000, reason: "" }), []);
  }
});

Deno.test("events that do not fit a phase are ignored", () => {
  const waiting = openMachine();
  waiting.step({ type: "closed", now: 0, code: 1006, reason: "" });
  assert.deepEqual(waiting.step({ type: "closed", now: 1, code: 1006, reason: "" }), []);
  assert.deepEqual(waiting.step({ type: "fault", now: 1, reason: "x" }), []);
  assert.deepEqual(waiting.step({ type: "opened", now: 1 }), []);
  assert.equal(waiting.phase, "waiting");
  assert.equal(waiting.retries, 1);
});

Deno.test("limits of the connection fit one another", () => {
  assert(clientLimits.openMs < clientLimits.silenceMs);
  assert(clientLimits.wakeSilenceMs < clientLimits.silenceMs);
  assert(clientLimits.actionsInFlightMax < clientLimits.callsInFlightMax);
  assert(clientLimits.backoffFirstMs < clientLimits.backoffMaxMs);
});
