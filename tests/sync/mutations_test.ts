/** Mutations and actions over a socket: responses, read-your-writes, replay, order. */
import assert from "node:assert/strict";
import { socketLimits } from "../../mod/limits.ts";
import { failed, type Outcome, outcomeUnknown, unavailable } from "../../mod/functions/outcome.ts";
import { World } from "./support/world.ts";
import { settle } from "./support/test_socket.ts";

Deno.test("MU1 WS9 a mutation is answered with its result and ts, SG4 then a Transition reaches that ts", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  socket.take();
  socket.mutate(1, "set", { key: "a", value: 7 });
  await settle();
  assert.deepEqual(socket.take(), [
    { type: "MutationResponse", requestId: 1, success: true, result: { key: "a" }, ts: 1, logLines: [] },
    {
      type: "Transition",
      startVersion: { querySet: 1, identity: 0, ts: 0 },
      endVersion: { querySet: 1, identity: 0, ts: 1 },
      modifications: [{ type: "QueryUpdated", queryId: 0, value: 7, logLines: [] }],
    },
  ]);
});

Deno.test("SG4 a mutation that does not change the socket's results is followed by an empty Transition", async () => {
  const world = new World();
  const socket = world.connected();
  socket.mutate(1, "set", { key: "a", value: 7 });
  await settle();
  const [, transition] = socket.take();
  assert.ok(transition?.type === "Transition");
  assert.deepEqual([transition.endVersion.ts, transition.modifications], [1, []]);
});

Deno.test("PC2 SG4 a mutation without writes is answered with the ts of now and followed by a Transition", async () => {
  const world = new World();
  world.host.write({ a: 1 });
  const socket = world.connected();
  socket.mutate(1, "nothing");
  await settle();
  const [response, transition] = socket.take();
  assert.ok(response?.type === "MutationResponse" && response.success);
  assert.equal(response.ts, 1);
  assert.ok(transition?.type === "Transition" && transition.endVersion.ts === 1);
});

Deno.test("SG4 mutations of one event loop tick share a Transition", async () => {
  const world = new World();
  const socket = world.connected();
  for (let i = 0; i < 10; i++) socket.mutate(i, "add", { key: "a" });
  await settle();
  assert.equal(socket.all("MutationResponse").length, 10);
  assert.deepEqual(socket.all("Transition").map(({ endVersion }) => endVersion.ts), [10]);
});

Deno.test("MU2 a failed mutation is rolled back, answered, and owes no Transition", async () => {
  const world = new World();
  const socket = world.connected();
  socket.mutate(1, "fail");
  socket.mutate(2, "bug");
  socket.mutate(3, "no:such");
  await settle();
  assert.deepEqual(socket.take(), [
    {
      type: "MutationResponse",
      requestId: 1,
      success: false,
      errorMessage: "Refused",
      errorData: { code: "refused", data: [1] },
      logLines: [],
    },
    {
      type: "MutationResponse",
      requestId: 2,
      success: false,
      errorMessage: "Server Error",
      errorData: null,
      logLines: [],
    },
    {
      type: "MutationResponse",
      requestId: 3,
      success: false,
      errorMessage: "Unknown function no:such",
      errorData: null,
      logLines: [],
    },
  ]);
  assert.equal(world.host.ts, 0);
});

Deno.test("MU3 SG7 a mutation sent again on another socket is answered from the record", async () => {
  const world = new World({ dev: true });
  const first = world.connected();
  first.mutate(1, "add", { key: "a" });
  await settle();
  const [answer] = first.take();
  first.drop();
  world.host.write({ b: 1 });
  const second = world.connected();
  second.add(0, "get", { key: "a" });
  await settle();
  assert.equal(second.version.ts, 2);
  second.take();
  second.mutate(1, "add", { key: "a" });
  await settle();
  const [replayed, transition] = second.take();
  assert.ok(answer?.type === "MutationResponse" && answer.success);
  assert.deepEqual(replayed, { ...answer, logLines: [] });
  // The recorded ts is older than the socket's newest one. An empty Transition follows nevertheless.
  assert.ok(transition?.type === "Transition");
  assert.deepEqual([transition.endVersion.ts, transition.modifications], [2, []]);
  assert.equal(world.host.mutationRuns, 1);
});

Deno.test("SG7 simultaneous duplicates run once and get the same response", async () => {
  const world = new World();
  const [one, two] = [world.connected(), world.connected()];
  one.mutate(1, "add", { key: "a" });
  two.mutate(1, "add", { key: "a" });
  await settle();
  assert.deepEqual(one.all("MutationResponse"), two.all("MutationResponse"));
  assert.equal(world.host.mutationRuns, 1);
});

Deno.test("SG7 a recorded error is replayed", async () => {
  const world = new World();
  const socket = world.connected();
  socket.mutate(1, "fail");
  socket.mutate(1, "fail");
  await settle();
  assert.deepEqual(socket.frames[0], socket.frames[1]);
  assert.equal(world.host.mutationRuns, 1);
});

Deno.test("SG7 another identity runs its own mutation", async () => {
  const world = new World();
  const socket = world.connected();
  socket.mutate(1, "who");
  socket.authenticate(0, "u1.s1");
  socket.mutate(1, "who");
  socket.authenticate(1, "u2.s2");
  socket.mutate(1, "who");
  socket.authenticate(2, "u1.s3");
  socket.mutate(1, "who");
  await settle();
  assert.deepEqual(
    socket.all("MutationResponse").map((response) => response.success && response.result),
    [null, "user:u1", "user:u2", "user:u1"],
  );
  assert.equal(world.host.mutationRuns, 3);
});

Deno.test("SG7 without Connect mutations are served and not de-duplicated", async () => {
  const world = new World();
  const socket = world.socket();
  socket.mutate(1, "add", { key: "a" });
  socket.mutate(1, "add", { key: "a" });
  await settle();
  assert.deepEqual(socket.all("MutationResponse").map((response) => response.success && response.result), [
    1,
    2,
  ]);
});

Deno.test("MU4 mutations of one socket run in the order sent", async () => {
  const world = new World({ auto: false });
  const [one, two] = [
    world.connected(),
    world.connected({ sessionId: "01890000-0000-7000-8000-000000000001" }),
  ];
  for (let i = 0; i < 20; i++) (i % 2 ? one : two).mutate(i, "add", { key: "a" });
  while (world.host.queued.length > 0) {
    world.host.commit(3);
    await settle();
  }
  for (const socket of [one, two]) {
    const ids = socket.all("MutationResponse").map(({ requestId }) => requestId);
    assert.deepEqual(ids, ids.toSorted((a, b) => a - b));
    assert.equal(ids.length, 10);
  }
});

Deno.test("MU2 arguments that no function accepts fail the call, not the socket", async () => {
  const world = new World();
  const socket = world.connected();
  socket.raw('{"type":"Mutation","requestId":1,"udfPath":"set","args":{"a":-1e999}}');
  socket.raw('{"type":"Action","requestId":2,"udfPath":"set","args":{"a":[[1e999]]}}');
  await settle();
  assert.deepEqual(
    [...socket.all("MutationResponse"), ...socket.all("ActionResponse")]
      .map((frame) => "errorMessage" in frame && frame.errorMessage),
    ["args.a: number out of range", "args.a[0][0]: number out of range"],
  );
  assert.equal(socket.closedWith, null);
});

Deno.test("SG7 MU3 arguments that no function accepts fail in order, and are recorded like any other error", async () => {
  const world = new World();
  const [one, two] = [world.connected(), world.connected()];
  const unfit = '{"type":"Mutation","requestId":1,"udfPath":"set","args":{"a":1e999}}';
  one.mutate(0, "set", { key: "a", value: 1 });
  one.raw(unfit);
  await settle();
  assert.deepEqual(one.all("MutationResponse").map(({ requestId }) => requestId), [0, 1]);
  two.mutate(1, "set", { key: "a", value: 2 });
  two.raw(unfit);
  await settle();
  const recorded = one.all("MutationResponse").at(1);
  assert.deepEqual(two.all("MutationResponse"), [recorded, recorded]);
  assert.equal(world.host.mutationRuns, 1);
});

Deno.test("WS10 an action is answered without a ts and owes no Transition", async () => {
  const world = new World({
    actions: {
      double: ({ n }) => Number(n) * 2,
      who: (_, identity) => identity.principal,
      broken: () => {
        throw new Error("secret");
      },
    },
  });
  const socket = world.connected();
  socket.act(1, "double", { n: 4 });
  socket.act(2, "broken");
  socket.authenticate(0, "u1.s1");
  socket.act(3, "who");
  await settle();
  assert.deepEqual(socket.all("ActionResponse"), [
    { type: "ActionResponse", requestId: 1, success: true, result: 8, logLines: [] },
    {
      type: "ActionResponse",
      requestId: 2,
      success: false,
      errorMessage: "Server Error",
      errorData: null,
      logLines: [],
    },
    { type: "ActionResponse", requestId: 3, success: true, result: "user:u1", logLines: [] },
  ]);
});

Deno.test("SG10 log lines of mutations are sent only with --dev", async () => {
  for (const dev of [false, true]) {
    const world = new World({ dev });
    const socket = world.connected();
    socket.mutate(1, "set", { key: "a", value: 1 });
    await settle();
    assert.deepEqual(socket.all("MutationResponse")[0]?.logLines, dev ? ["[INFO] setting"] : []);
  }
});

Deno.test("SG4 read-your-writes does not wait for a pending Add", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.pin();
  await settle();
  socket.mutate(1, "set", { key: "b", value: 1 });
  world.host.commit();
  await settle();
  assert.deepEqual(socket.version, { querySet: 0, identity: 0, ts: 1 });
  world.host.answerAll();
  await settle();
  assert.deepEqual(socket.version, { querySet: 1, identity: 0, ts: 1 });
});

Deno.test("SG4 an Add with a late result is not overtaken twice", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.pin();
  await settle();
  // Its first run sees ts 0, the socket moves on to ts 1, which touches it.
  socket.mutate(1, "set", { key: "a", value: 1 });
  world.host.commit();
  await settle();
  assert.equal(socket.version.ts, 1);
  world.host.answerAll();
  await settle();
  world.host.pin();
  await settle();
  // The second run sees ts 1: the socket must still be there when it ends.
  socket.mutate(2, "set", { key: "a", value: 2 });
  world.host.commit();
  await settle();
  assert.equal(socket.version.ts, 1);
  world.host.answerAll();
  await settle();
  assert.deepEqual(socket.version, { querySet: 1, identity: 0, ts: 1 });
  assert.equal(socket.value(0), 1);
  world.host.pin();
  world.host.answerAll();
  await settle();
  assert.equal(socket.value(0), 2);
});

/** A world in which mutations end like this. */
function worldWith(outcome: Outcome): World {
  const world = new World();
  world.host.mutate = () => Promise.resolve({ outcome, ts: 0, replayed: false });
  return world;
}

Deno.test("SG13 a mutation with an unknown outcome gets no response: its socket is closed with 1012, with a delay if it is new", async () => {
  const world = worldWith(outcomeUnknown("The leader was lost"));
  const socket = world.connected();
  socket.mutate(1, "add", { key: "a" });
  socket.mutate(2, "add", { key: "a" });
  await settle();
  assert.equal(socket.closedWith, null);
  await world.clock.advance(socketLimits.unsettledCloseMs);
  assert.deepEqual([socket.closedWith, socket.take()], [1012, []]);
  const other = world.connected();
  await world.clock.advance(socketLimits.unsettledCloseMs);
  other.mutate(1, "add", { key: "a" });
  await settle();
  await world.clock.advance(1);
  assert.equal(other.closedWith, 1012, "an old socket is closed at once");
});

Deno.test("SG13 a rejection without a lookup of the record is a response only on a session's first socket", async () => {
  const refusals = [[unavailable("There is no leader"), 1012], [
    failed("internal", "full", { retryable: true }),
    1013,
  ]] as const;
  for (const [refusal, closeCode] of refusals) {
    const world = worldWith(refusal);
    const [first, second] = [world.connected(), world.connected({ connectionCount: 1 })];
    await world.clock.advance(socketLimits.unsettledCloseMs);
    for (const socket of [first, second]) socket.mutate(1, "add", { key: "a" });
    await settle();
    await world.clock.advance(1);
    assert.equal(first.closedWith, null);
    assert.equal(first.all("MutationResponse")[0]?.success, false);
    assert.deepEqual([second.closedWith, second.all("MutationResponse")], [closeCode, []]);
  }
});

Deno.test("SG13 an overloaded server delays closing new sockets, because clients reconnect soon", async () => {
  const world = worldWith(failed("internal", "full", { retryable: true }));
  const socket = world.connected({ connectionCount: 1 });
  socket.mutate(1, "add", { key: "a" });
  await settle();
  await world.clock.advance(socketLimits.unsettledCloseMs - 1);
  assert.equal(socket.closedWith, null);
  await world.clock.advance(1);
  assert.equal(socket.closedWith, 1013);
});

Deno.test("SG13 a socket closed for an unknown outcome leaves no timer behind", async () => {
  const world = worldWith(outcomeUnknown("The leader was lost"));
  const socket = world.connected();
  socket.mutate(1, "add", { key: "a" });
  await settle();
  const { timers } = world.clock;
  socket.close(1001);
  assert.ok(world.clock.timers < timers);
});
