import assert from "node:assert/strict";
import { functionLimits } from "../../../mod/limits.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { RunnerPool } from "../../../mod/functions/host/runners/runner_pool.ts";
import type { FunctionCall } from "../../../mod/functions/host_port.ts";
import { failed, type Outcome } from "../../../mod/functions/outcome.ts";
import { FakeClock, settled } from "../../support/fake_clock.ts";
import { FakeIsolate, FakeStarter } from "./support/fake_isolate.ts";
import { call, resultOf } from "./support/writer_world.ts";

class RunnerWorld {
  readonly clock = new FakeClock();
  readonly starter = new FakeStarter();
  readonly served: [kind: string, call: FunctionCall][] = [];
  readonly warnings: string[] = [];
  serve: () => Promise<Outcome> = () => Promise.resolve({ ok: true, value: '"served"', logLines: [] });
  readonly pool = new RunnerPool({
    starter: this.starter,
    clock: this.clock,
    callNames: () => {
      let calls = 0;
      return () => ++calls;
    },
    log: (_level, message) => this.warnings.push(message),
    serve: (kind, call) => {
      this.served.push([kind, call]);
      return this.serve();
    },
  });

  get runners(): FakeIsolate[] {
    return this.starter.isolates;
  }

  runner(number: number): FakeIsolate {
    const runner = this.runners[number];
    if (runner === undefined) throw new Error(`There is no runner ${number}`);
    return runner;
  }

  /** Starts an action; its result, or what went wrong, once it is there. */
  act(udfPath: string): { result: unknown } {
    const action: { result: unknown } = { result: undefined };
    this.pool.act(call(udfPath)).then((outcome) => action.result = resultOf({ outcome }));
    return action;
  }

  /** Starts that many actions, each in a separate runner. */
  async fill(count: number): Promise<{ result: unknown }[]> {
    const actions = Array.from({ length: count }, (_, i) => this.act(`fill ${i}`));
    await settled();
    assert.equal(this.runners.length, count);
    return actions;
  }
}

/** Paths of the actions sent to a runner. */
function actionsOf(runner: FakeIsolate): string[] {
  return runner.sent.flatMap((message) => message.type === "RunAction" ? [message.udfPath] : []);
}

/** A runner ends its n-th action, counted from 1. */
function done(runner: FakeIsolate, call = 1): void {
  runner.sends({ type: "ActionDone", call, outcome: { value: 0, logLines: [] } }, [`"done ${call}"`]);
}

Deno.test("no runner is started before it is needed", async () => {
  const world = new RunnerWorld();
  await settled();
  assert.equal(world.starter.starts, 0);
  const action = world.act("a");
  await settled();
  assert.deepEqual(actionsOf(world.runner(0)), ["a"]);
  done(world.runner(0));
  await settled();
  assert.equal(action.result, "done 1");
});

Deno.test("at most two runners are started at once, for any number of callers", async () => {
  const world = new RunnerWorld();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.starter.delay = promise;
  const actions = Array.from({ length: 20 }, (_, n) => world.act(`a${n}`));
  await settled();
  assert.equal(world.starter.starts, isolateLimits.runnersStartingMax);
  resolve();
  await settled();
  assert.equal(world.starter.starts, isolateLimits.runnersMax);
  assert.equal(world.runners.flatMap(actionsOf).length, actions.length);
});

Deno.test("an idle runner is preferred to a new one, and a new one to a busy one", async () => {
  const world = new RunnerWorld();
  world.act("a");
  await settled();
  world.act("b");
  await settled();
  assert.deepEqual(world.runners.map(actionsOf), [["a"], ["b"]]);
  done(world.runner(0));
  world.act("c");
  await settled();
  assert.deepEqual(world.runners.map(actionsOf), [["a", "c"], ["b"]]);
});

Deno.test("an idle runner runs an action that waits for another runner to start", async () => {
  const world = new RunnerWorld();
  world.act("a");
  await settled();
  world.starter.delay = new Promise(() => {});
  world.act("b");
  await settled();
  done(world.runner(0));
  assert.deepEqual(actionsOf(world.runner(0)), ["a", "b"]);
});

Deno.test("when all runners are busy the least loaded runs the next action, up to a limit, then actions wait", async () => {
  const world = new RunnerWorld();
  const { runnersMax, actionsPerRunnerMax, queuedActionsMax } = isolateLimits;
  for (let i = 0; i < runnersMax * actionsPerRunnerMax; i++) world.act("a");
  await settled();
  assert.deepEqual(
    world.runners.map((runner) => actionsOf(runner).length),
    new Array(runnersMax).fill(actionsPerRunnerMax),
  );
  for (let i = 0; i < queuedActionsMax; i++) world.act("waits");
  const refused = world.act("refused");
  await settled();
  assert.match(String(refused.result), /overloaded/);
  done(world.runner(3), 1);
  await settled();
  assert.equal(actionsOf(world.runner(3)).at(-1), "waits");
});

Deno.test("calls of an action run with its identity and the reach of the app's own code", async () => {
  const world = new RunnerWorld();
  const identity = { principal: "user:u", userId: "u", adminId: null, sessionId: "s" };
  world.pool.act({ ...call("a"), identity });
  await settled();
  const runner = world.runner(0);
  runner.sends({ type: "SubCall", call: 1, sub: 1, kind: "query", udfPath: "q", args: { n: 1 } });
  runner.sends({ type: "SubCall", call: 1, sub: 2, kind: "mutation", udfPath: "m", args: {} });
  await settled();
  const [request] = world.served.map(([, { request }]) => request);
  assert.ok(typeof request === "number", "the execution log knows what belongs together");
  assert.deepEqual(world.served, [
    ["query", { udfPath: "q", args: { n: 1 }, identity, origin: "server", request }],
    ["mutation", { udfPath: "m", args: {}, identity, origin: "server", request }],
  ]);
  const { call: of, sub, outcome } = runner.last("SubAnswer");
  assert.deepEqual([of, sub, outcome], [1, 2, { value: 0, logLines: [] }]);
});

Deno.test("a failed call of an action reaches it as its error", async () => {
  const world = new RunnerWorld();
  world.act("a");
  await settled();
  world.serve = () => Promise.resolve(failed("args", "args.n: wrong"));
  world.runner(0).sends({ type: "SubCall", call: 1, sub: 1, kind: "query", udfPath: "q", args: {} });
  await settled();
  const { outcome } = world.runner(0).last("SubAnswer");
  assert.deepEqual(outcome, { error: { kind: "args", message: "args.n: wrong", data: null }, logLines: [] });
});

Deno.test("nested actions run when runners are full, up to the depth limit", async () => {
  const world = new RunnerWorld();
  for (let i = 0; i < isolateLimits.runnersMax * isolateLimits.actionsPerRunnerMax + 5; i++) world.act("a");
  await settled();
  let at = { runner: world.runner(0), call: 1 };
  let depth = 0;
  for (; depth < 100; depth++) {
    const before = world.runners.map((runner) => actionsOf(runner).length);
    at.runner.sends({ type: "SubCall", call: at.call, sub: 1, kind: "action", udfPath: "nested", args: {} });
    await settled();
    const taker = world.runners.find((runner, i) => actionsOf(runner).length > (before[i] ?? 0));
    if (taker === undefined) break;
    const { udfPath, call } = taker.last("RunAction");
    assert.equal(udfPath, "nested");
    at = { runner: taker, call };
  }
  assert.equal(depth, functionLimits.nestingMax - 1);
  const { outcome } = at.runner.last("SubAnswer");
  assert.match("error" in outcome ? outcome.error.message : "", /nested more than 16 deep/);
});

Deno.test("a runner that misses a heartbeat is ended: started actions fail, the others run elsewhere", async () => {
  const world = new RunnerWorld();
  const fill = await world.fill(isolateLimits.runnersMax);
  const [begun, called, late] = [fill[0], world.act("called"), world.act("late")];
  await settled();
  const runner = world.runner(0);
  // The least loaded is the first of equals: the second action went to the first runner, the third to the second.
  assert.deepEqual(actionsOf(runner), ["fill 0", "called"]);
  const stuck = world.runner(1);
  assert.deepEqual(actionsOf(stuck), ["fill 1", "late"]);
  for (const other of world.runners) {
    if (other !== stuck) {
      other.onSent = ({ type }) => type === "KeepAlive" && other.sends({ type: "KeepAlive" });
    }
  }
  stuck.noted = { position: 1, startedAt: 1 };
  await world.clock.advance(10_500);
  assert.ok(!stuck.dead);
  await world.clock.advance(1_000);
  assert.deepEqual(world.runners.map(({ dead }) => dead).filter(Boolean).length, 1);
  assert.ok(stuck.dead);
  assert.match(String(fill[1]?.result), /ended its isolate \(busy for 10 s without a pause\)/);
  assert.deepEqual([begun?.result, called.result, late.result], [undefined, undefined, undefined]);
  assert.deepEqual(actionsOf(world.runners.at(-1) ?? runner), ["late"]);
});

Deno.test("an action that had called back does not run again", async () => {
  const world = new RunnerWorld();
  const action = world.act("a");
  await settled();
  world.runner(0).sends({ type: "SubCall", call: 1, sub: 1, kind: "mutation", udfPath: "m", args: {} });
  world.runner(0).dies("killed", "killed from outside");
  await settled();
  assert.match(String(action.result), /ended its isolate \(killed from outside\)/);
});

for (const [what, segments] of Object.entries({ "no value": [], "an empty value": [""] })) {
  Deno.test(`an action that ends with ${what} gets an error, and its runner is ended`, async () => {
    const world = new RunnerWorld();
    const action = world.act("a");
    await settled();
    const runner = world.runner(0);
    runner.noted = { position: 1, startedAt: 1 };
    runner.sends({ type: "ActionDone", call: 1, outcome: { value: 0, logLines: [] } }, segments);
    await settled();
    assert.match(String(action.result), /^internal: .* ended its isolate \(The frame has no segment 0\)$/);
    assert.ok(runner.dead);
    world.act("b");
    await settled();
    assert.deepEqual(actionsOf(world.runner(1)), ["b"]);
  });
}

Deno.test("a runner can answer and call only for its own actions", async () => {
  const world = new RunnerWorld();
  const [first, second] = await world.fill(2);
  // Each of them has an action with the number 1 and none with the number 2.
  world.runner(0).sends({ type: "SubCall", call: 2, sub: 1, kind: "mutation", udfPath: "m", args: {} });
  done(world.runner(0), 2);
  await settled();
  assert.deepEqual([first?.result, second?.result, world.served], [undefined, undefined, []]);
  done(world.runner(0), 1);
  await settled();
  assert.deepEqual([first?.result, second?.result], ["done 1", undefined]);
});

Deno.test("the names of a runner's actions cannot be guessed from those of others", async () => {
  const starter = new FakeStarter();
  const pool = new RunnerPool({
    starter,
    clock: new FakeClock(),
    log: () => {},
    serve: () => Promise.resolve({ ok: true, value: "null", logLines: [] }),
  });
  const acts = Array.from({ length: 200 }, () => pool.act(call("a")));
  await settled();
  const names = starter.isolates.flatMap(({ sent }) =>
    sent.flatMap((message) => message.type === "RunAction" ? [message.call] : [])
  );
  assert.ok(names.length >= 64);
  assert.equal(new Set(names).size, names.length);
  const steps = names.slice(1).map((name, at) => name - (names[at] ?? 0));
  assert.ok(new Set(steps).size > steps.length / 2, "the way from one name to the next is no rule");
  assert.ok(Math.max(...names) > 2 ** 48, "they are drawn from many");
  await pool.close();
  await Promise.all(acts);
});

Deno.test("an action fails after three runners were lost before it started", async () => {
  const world = new RunnerWorld();
  const action = world.act("a");
  for (let i = 0; i < 3; i++) {
    await settled();
    assert.equal(action.result, undefined);
    world.runner(i).dies("crashed", "exit code 1");
  }
  await settled();
  assert.match(String(action.result), /ended its isolate \(exit code 1\)/);
});

Deno.test("beats are sent once a second while a runner has actions, and not otherwise", async () => {
  const world = new RunnerWorld();
  world.act("a");
  await settled();
  const runner = world.runner(0);
  const beats = () => runner.sent.filter(({ type }) => type === "KeepAlive").length;
  runner.onSent = ({ type }) => type === "KeepAlive" && runner.sends({ type: "KeepAlive" });
  await world.clock.advance(3_500);
  assert.equal(beats(), 3);
  done(runner);
  await world.clock.advance(10_000);
  assert.ok(beats() <= 4);
  assert.equal(world.clock.timers, 0);
});

Deno.test("an action over its time limit gets the error immediately; its runner finishes the others, then ends", async () => {
  const world = new RunnerWorld();
  const fill = await world.fill(isolateLimits.runnersMax);
  for (const runner of world.runners) {
    runner.onSent = ({ type }) => type === "KeepAlive" && runner.sends({ type: "KeepAlive" });
  }
  const runner = world.runner(0);
  await world.clock.advance(functionLimits.actionTimeoutMs - 5_000);
  for (const other of world.runners.slice(1)) done(other);
  for (let i = 0; i < isolateLimits.runnersMax; i++) world.act("late");
  await settled();
  assert.deepEqual(actionsOf(runner), ["fill 0", "late"]);
  await world.clock.advance(7_000);
  assert.match(String(fill[0]?.result), /The action took longer than 600 s/);
  assert.equal(runner.dead, false);
  world.act("next");
  await settled();
  assert.equal(actionsOf(runner).includes("next"), false, "a runner with a lost action got a new one");
  done(runner, 2);
  await settled();
  assert.ok(runner.dead);
});

Deno.test("runners beyond the first end when idle, and leave no timer", async () => {
  const world = new RunnerWorld();
  await world.fill(4);
  for (const runner of world.runners) done(runner);
  await world.clock.advance(150_000);
  assert.equal(world.runners.filter(({ dead }) => !dead).length, 1);
  assert.equal(world.clock.timers, 0);
  assert.deepEqual(world.warnings, []);
});

Deno.test("when runners cannot be started actions fail with the reason, and later ones are tried again", async () => {
  const world = new RunnerWorld();
  world.starter.broken = "mail.ts:2: nonsense";
  const actions = [world.act("a"), world.act("b")];
  await world.clock.advance(2_000);
  for (const { result } of actions) assert.match(String(result), /cannot be started: mail.ts:2: nonsense/);
  assert.ok(world.starter.starts <= 5, `${world.starter.starts} starts`);
  world.starter.broken = null;
  world.act("c");
  await world.clock.advance(5_000);
  assert.deepEqual(actionsOf(world.runner(0)), ["c"]);
});

Deno.test("replace sends new actions to runners with new code and lets the old ones finish", async () => {
  const world = new RunnerWorld();
  const old = world.act("old");
  await settled();
  world.pool.replace();
  world.act("new");
  await settled();
  assert.deepEqual(world.runners.map(actionsOf), [["old"], ["new"]]);
  done(world.runner(0));
  await settled();
  assert.deepEqual([old.result, world.runner(0).dead], ["done 1", true]);
});

Deno.test("close answers running and waiting actions, ends the runners and leaves no timer", async () => {
  const world = new RunnerWorld();
  const running = world.act("a");
  await settled();
  world.runner(0).noted = { position: 1, startedAt: 1 };
  world.starter.delay = new Promise(() => {});
  const waiting = world.act("b");
  await world.pool.close();
  await settled();
  assert.match(String(running.result), /ended/);
  assert.match(String(waiting.result), /stopping/);
  const late = world.act("c");
  await settled();
  assert.match(String(late.result), /stopping/);
  assert.equal(world.clock.timers, 0);
});

Deno.test("[PG8] all actions are ended together, those not started may be repeated, and new ones are accepted", async () => {
  const world = new RunnerWorld();
  const asked = (path: string) => {
    const action: { outcome: Outcome | null } = { outcome: null };
    world.pool.act(call(path)).then((outcome) => action.outcome = outcome);
    return action;
  };
  const mayComeAgain = (action: { readonly outcome: Outcome | null }) =>
    action.outcome !== null && !action.outcome.ok && action.outcome.error.retryable === true;
  const runs = asked("runs");
  await settled();
  // It has started: the isolate recorded it.
  world.runner(0).noted = { position: 1 } as never;
  world.starter.delay = new Promise(() => {});
  const waits = asked("waits for a runner");
  const given = asked("waits for a runner, too");
  await settled();
  await world.pool.endAll();
  await settled();
  assert.ok(world.runner(0).dead);
  assert.ok(runs.outcome !== null && !mayComeAgain(runs), "nobody knows what it has done");
  assert.ok(mayComeAgain(waits));
  assert.ok(mayComeAgain(given));
  world.starter.delay = Promise.resolve();
  const late = asked("comes then");
  await settled();
  assert.equal(late.outcome, null);
  assert.equal(world.warnings.length, 0);
});

Deno.test("[PG8] an action over its time limit is ended with the others", async () => {
  const world = new RunnerWorld();
  const action = world.act("never ends");
  await settled();
  const runner = world.runner(0);
  runner.onSent = ({ type }) => type === "KeepAlive" && runner.sends({ type: "KeepAlive" });
  // It does not end, because its action continues.
  runner.close = async () => void await runner.ended;
  await world.clock.advance(functionLimits.actionTimeoutMs + 2_000);
  assert.match(String(action.result), /The action took longer than 600 s/);
  assert.equal(runner.dead, false);
  await world.pool.endAll();
  assert.ok(runner.dead);
});

Deno.test("[PG8] calls of an action whose runner was killed are not started", async () => {
  const world = new RunnerWorld();
  const action = world.act("a");
  await settled();
  const runner = world.runner(0);
  // Its earlier messages are still in transit.
  runner.kill = () => {};
  const ended = world.pool.endAll();
  for (const [sub, kind] of (["action", "mutation", "query"] as const).entries()) {
    runner.sends({ type: "SubCall", call: 1, sub, kind, udfPath: "nested", args: {} });
  }
  runner.dies("asked");
  await ended;
  await settled();
  assert.match(String(action.result), /ended its isolate/);
  assert.deepEqual([world.starter.starts, world.served], [1, []]);
});

Deno.test("a nested action that has not started is dropped when its caller's runner is lost", async () => {
  const world = new RunnerWorld();
  await world.fill(isolateLimits.runnersMax);
  const lost = world.runner(0);
  lost.noted = { position: 1, startedAt: 1 };
  // It is sent to the first of the runners, which have one action each, and waits there after the caller.
  lost.sends({ type: "SubCall", call: 1, sub: 1, kind: "action", udfPath: "nested", args: {} });
  await settled();
  assert.deepEqual(actionsOf(lost), ["fill 0", "nested"]);
  // Another one would start at once.
  done(world.runner(1));
  await settled();
  lost.dies("killed", "killed from outside");
  await settled();
  assert.equal(world.runners.slice(1).flatMap(actionsOf).includes("nested"), false);
});
