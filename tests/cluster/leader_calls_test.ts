/** Calls of a follower to its leader: order, resending after a lost link, limits, and sessions. */
import assert from "node:assert/strict";
import { linkLimits } from "../../mod/cluster/limits.ts";
import { CheckedCalls, LeaderCalls } from "../../mod/cluster/mod.ts";
import type { MutationAnswer, MutationCall } from "../../mod/functions/host_port.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { until } from "../support/waiting.ts";
import { DONE, LinkWorld, mutation } from "./support/link_world.ts";

Deno.test("[OT2] a call keeps its trace on the way to the leader", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using world = new LinkWorld();
  await world.follow(calls);
  const trace = { traceId: "a".repeat(32), spanId: "b".repeat(16), parentId: "c".repeat(16), sampled: true };
  const done = calls.mutate({ ...mutation(1), trace });
  await until(() => world.host.asked.length === 1);
  const [asked] = world.host.asked;
  assert.deepEqual(asked?.call.trace, trace);
  asked?.answer(DONE);
  await done;
  calls.close();
});

Deno.test("[WK2] after a broken link, calls with a replay key go to the next leader, and the outcome of others is unknown", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  const first = new LinkWorld();
  await first.follow(calls);
  const named = calls.mutate(mutation(1));
  const nameless = calls.mutate(mutation(null));
  await until(() => first.host.asked.length === 2);
  await first[Symbol.asyncDispose]();
  const { outcome } = await nameless;
  assert.ok(!outcome.ok && /not known/.test(outcome.error.message));
  assert.equal(outcome.error.data?.code, "outcome_unknown");
  // Without a leader the call waits.
  const waiting = calls.mutate(mutation(null));
  await using second = new LinkWorld();
  await second.follow(calls);
  await until(() => second.host.asked.length === 2);
  for (const { answer } of second.host.asked) answer(DONE);
  assert.deepEqual(await named, DONE);
  assert.deepEqual(await waiting, DONE);
  assert.equal(calls.waiting, 0);
  calls.close();
});

Deno.test("[PG16] a stopping leader answers earlier calls, and later ones go to the next leader", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using first = new LinkWorld();
  await first.follow(calls);
  const taken = [calls.mutate(mutation(1)), calls.mutate(mutation(null))];
  await until(() => first.host.asked.length === 2);
  let left = false;
  const leaving = first.leader.leave().then(() => left = true);
  // Messages arrive in order.
  const [follower] = first.leader.followers;
  await calls.verify("a token");
  const kept = calls.mutate(mutation(null));
  assert.equal(left, false);
  for (const { answer } of first.host.asked) answer(DONE);
  assert.deepEqual(await Promise.all(taken), [DONE, DONE]);
  await leaving;
  assert.ok(follower !== undefined);
  assert.equal(first.host.asked.length, 2);
  await using second = new LinkWorld();
  await second.follow(calls);
  await until(() => second.host.asked.length === 1);
  // The end of the earlier link does not affect calls on the current one.
  await first[Symbol.asyncDispose]();
  second.host.asked[0]?.answer(DONE);
  assert.deepEqual(await kept, DONE);
  calls.close();
});

Deno.test("[PG16] a repeated stop message of an earlier leader does not affect calls to the current one", async () => {
  await using before = new LinkWorld();
  await using after = new LinkWorld();
  const calls = new LeaderCalls({ ts: () => 0 });
  const link = await before.follow(calls);
  let left = 0;
  link.listen({ leaving: () => void left++ });
  await before.leader.leave();
  await until(() => left === 1);
  await after.follow(calls);
  await before.leader.leave();
  await until(() => left === 2);
  const answered = calls.mutate(mutation(1));
  await until(() => after.host.asked.length === 1);
  after.host.asked[0]?.answer(DONE);
  assert.deepEqual(await answered, DONE);
  calls.close();
});

Deno.test("[PG16] mutations keep their order while two leaders respond", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using first = new LinkWorld();
  await using second = new LinkWorld();
  await first.follow(calls);
  const of = (queueKey: string, udfPath: string) => ({
    ...mutation(null),
    udfPath,
    caller: { queueKey, blame: "x" },
  });
  const taken = calls.mutate(of("one", "first"));
  await until(() => first.host.asked.length === 1);
  const left = first.leader.leave();
  await calls.verify("a token");
  await second.follow(calls);
  const behind = ["second", "third"].map((path) => calls.mutate(of("one", path)));
  const other = calls.mutate(of("two", "of another"));
  await calls.verify("a token");
  assert.equal(second.host.asked.length, 0);
  first.host.asked[0]?.answer(DONE);
  assert.deepEqual(await taken, DONE);
  await left;
  await until(() => second.host.asked.length === 3);
  assert.deepEqual(second.host.asked.map(({ call }) => call.udfPath), ["second", "third", "of another"]);
  for (const { answer } of second.host.asked) answer(DONE);
  assert.deepEqual(await Promise.all([...behind, other]), [DONE, DONE, DONE]);
  assert.equal(first.host.asked.length, 1);
  calls.close();
});

Deno.test("[PG16] a server that starts to lead runs the waiting calls, except those that another leader may have run", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  const world = new LinkWorld();
  await world.follow(calls);
  const [named, nameless, action] = [
    calls.mutate(mutation(1)),
    calls.mutate(mutation(null)),
    calls.act(mutation(null)),
  ];
  await action;
  await until(() => world.host.asked.length === 2);
  const ran: (number | undefined)[] = [];
  calls.use({
    mutate(call) {
      ran.push(call.replay?.requestId);
      return Promise.resolve(DONE);
    },
    act: () => Promise.resolve({ outcome: DONE.outcome, ts: 4 }),
  });
  // The earlier leader may still answer its calls.
  assert.deepEqual(await calls.mutate(mutation(null)), DONE);
  await world[Symbol.asyncDispose]();
  assert.deepEqual(await named, DONE);
  const { outcome } = await nameless;
  assert.ok(!outcome.ok && /not known/.test(outcome.error.message));
  assert.deepEqual(await calls.act(mutation(null)), { outcome: DONE.outcome, ts: 4 });
  assert.deepEqual(ran, [undefined, 1]);
  calls.close();
});

Deno.test("[PG16] the outcome of a sent call is unknown if no leader appears or this server stops", async () => {
  const message = ({ outcome }: MutationAnswer) => outcome.ok ? "" : outcome.error.message;
  for (const ends of [true, false]) {
    const clock = new FakeClock();
    const calls = new LeaderCalls({ ts: () => 9, clock });
    const world = new LinkWorld();
    await world.follow(calls);
    const sent = calls.mutate(mutation(1));
    await until(() => world.host.asked.length === 1);
    // No answer yet, on an open link.
    const nameless = calls.mutate(mutation(null));
    await until(() => world.host.asked.length === 2);
    if (ends) {
      calls.close();
      assert.match(message(await nameless), /not known/);
    }
    await world[Symbol.asyncDispose]();
    if (!ends) assert.match(message(await nameless), /not known/);
    const never = calls.mutate(mutation(null));
    if (!ends) clock.move(linkLimits.leaderWaitMs + linkLimits.keepaliveMs);
    assert.match(message(await sent), /not known/);
    assert.match(message(await never), /no leader now/);
    assert.equal(calls.waiting, 0);
    calls.close();
  }
});

Deno.test("[PG16] calls of one caller keep their order, regardless of the first one that is answered or lost", async () => {
  const calls = new LeaderCalls({ ts: () => 9 });
  await using first = new LinkWorld();
  await using second = new LinkWorld();
  await first.follow(calls);
  const of = (udfPath: string, named: MutationCall) => ({
    ...named,
    udfPath,
    caller: { queueKey: "one", blame: "x" },
  });
  const taken = [calls.mutate(of("1", mutation(1))), calls.mutate(of("2", mutation(null)))];
  const third = calls.mutate(of("3", mutation(3)));
  await until(() => first.host.asked.length === 3);
  void first.leader.leave();
  await calls.verify("a token");
  await second.follow(calls);
  const behind = ["4", "5"].map((path) => calls.mutate(of(path, mutation(null))));
  first.host.asked[0]?.answer(DONE);
  first.host.asked[1]?.answer(DONE);
  assert.deepEqual(await Promise.all(taken), [DONE, DONE]);
  assert.equal(second.host.asked.length, 0);
  // The third is sent again, before the calls that waited for it.
  await first[Symbol.asyncDispose]();
  await until(() => second.host.asked.length === 3);
  assert.deepEqual(second.host.asked.map(({ call }) => call.udfPath), ["3", "4", "5"]);
  for (const { answer } of second.host.asked) answer(DONE);
  assert.deepEqual(await Promise.all([third, ...behind]), [DONE, DONE, DONE]);
  calls.close();
});

Deno.test("[WK2] without a leader, a bounded number of calls waits for a bounded time, and the error is retryable", async () => {
  const clock = new FakeClock();
  const calls = new LeaderCalls({ ts: () => 9, clock });
  const early = calls.mutate(mutation(1));
  clock.move(linkLimits.leaderWaitMs / 2);
  const late = calls.mutate(mutation(2));
  let lateAnswered = false;
  void late.then(() => lateAnswered = true);
  clock.move(linkLimits.leaderWaitMs / 2 + linkLimits.keepaliveMs);
  const { outcome, ts } = await early;
  assert.ok(!outcome.ok && outcome.error.retryable);
  assert.equal(ts, 9);
  assert.equal(lateAnswered, false);
  for (let i = calls.waiting; i < linkLimits.pendingMax; i++) void calls.mutate(mutation(i));
  const full = await calls.mutate(mutation(3));
  assert.ok(!full.outcome.ok && full.outcome.error.retryable);
  calls.close();
  assert.ok(!(await late).outcome.ok);
});

Deno.test("[WK5] a call whose session has ended at the leader is refused with a retryable error", async () => {
  await using world = new LinkWorld({ admits: () => Promise.resolve(false) });
  const calls = new LeaderCalls({ ts: () => 0 });
  await world.follow(calls);
  const identity = { principal: "user:1", userId: "1", adminId: null, sessionId: "ended" };
  const { outcome } = await calls.mutate({ ...mutation(1), identity });
  assert.ok(!outcome.ok && outcome.error.retryable);
  assert.equal(world.host.asked.length, 0);
  calls.close();
});

Deno.test("[WK2] calls of one caller keep their order during a session check, and other callers are not delayed", async () => {
  const lookups: ((lives: boolean) => void)[] = [];
  await using world = new LinkWorld({ admits: () => new Promise((resolve) => lookups.push(resolve)) });
  const calls = new LeaderCalls({ ts: () => 0 });
  await world.follow(calls);
  const identity = { principal: "user:1", userId: "1", adminId: null, sessionId: "one" };
  const caller = { queueKey: "socket 1", blame: "user:1" };
  const asked = () => world.host.asked.map(({ call }) => call.udfPath);
  void calls.mutate({ ...mutation(1), udfPath: "first", identity, caller });
  // Without a session there is no check, but the call still runs second.
  void calls.mutate({ ...mutation(2), udfPath: "second", caller });
  void calls.mutate({ ...mutation(3), udfPath: "other", caller: { queueKey: "socket 2", blame: "x" } });
  await until(() => asked().length === 1 && lookups.length === 1);
  assert.deepEqual(asked(), ["other"]);
  lookups[0]?.(true);
  await until(() => asked().length === 3);
  assert.deepEqual(asked(), ["other", "first", "second"]);
  calls.close();
});

Deno.test("[WK5] a new leader checks the sessions of waiting callers and keeps the order of their calls", async () => {
  const lookups: ((lives: boolean) => void)[] = [];
  const ran: (number | undefined)[] = [];
  const calls = new CheckedCalls({
    host: {
      ts: 1,
      mutate(call) {
        ran.push(call.replay?.requestId);
        return Promise.resolve(DONE);
      },
      act: () => Promise.resolve(DONE.outcome),
    },
    admits: () => new Promise((resolve) => lookups.push(resolve)),
  });
  const caller = { queueKey: "socket 1", blame: "user:1" };
  const identity = { principal: "user:1", userId: "1", adminId: null, sessionId: "one" };
  const asked = [
    calls.mutate({ ...mutation(1), identity, caller }),
    calls.mutate({ ...mutation(2), identity, caller }),
    calls.mutate({ ...mutation(3), caller }),
    calls.mutate(mutation(4)),
  ];
  await until(() => lookups.length === 1 && ran.length === 1);
  lookups[0]?.(false);
  await until(() => lookups.length === 2);
  lookups[1]?.(true);
  const [{ outcome } = DONE, ...others] = await Promise.all(asked);
  assert.ok(!outcome.ok && outcome.error.retryable);
  assert.deepEqual(others, [DONE, DONE, DONE]);
  assert.deepEqual(ran, [4, 2, 3], "a guest does not wait, and the caller keeps its order");
});
