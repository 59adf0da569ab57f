/** Limits of a socket: queued data, merged Transitions, and disconnects. */
import assert from "node:assert/strict";
import { anonymous } from "../../mod/functions/identity.ts";
import { functionLimits, httpLimits, socketLimits } from "../../mod/limits.ts";
import { UserError } from "../../mod/errors.ts";
import { World } from "./support/world.ts";
import { settle, type TestSocket } from "./support/test_socket.ts";

function assertFatal(socket: TestSocket, error: string | RegExp, code = 1008): void {
  const last = socket.frames.at(-1);
  assert.ok(last?.type === "FatalError", `expected a FatalError, got ${JSON.stringify(last)}`);
  if (typeof error === "string") assert.equal(last.error, error);
  else assert.match(last.error, error);
  assert.equal(socket.closedWith, code);
}

Deno.test("WS12 a second Connect is a FatalError", () => {
  const socket = new World().connected();
  socket.connect();
  assertFatal(socket, "Connect: the socket is already connected");
});

Deno.test("WS13 a wrong baseVersion or newVersion is a FatalError that names both", () => {
  const wrongBase = new World().connected();
  wrongBase.querySet = 1;
  wrongBase.modify();
  assertFatal(wrongBase, "ModifyQuerySet: baseVersion is 1, expected 0");
  const wrongNew = new World().connected();
  wrongNew.report({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 2, modifications: [] });
  assertFatal(wrongNew, "ModifyQuerySet: newVersion is 2, expected 1");
});

Deno.test("WS14 Add of a live queryId is a FatalError", () => {
  const socket = new World().connected();
  socket.add(0, "sum");
  socket.add(0, "sum");
  assertFatal(socket, "ModifyQuerySet: the query 0 is already live");
});

Deno.test("WS15 an invalid message gets a FatalError with the reason, and closes only that socket", async () => {
  const cases: [frame: string, error: RegExp, code: number][] = [
    ["", /^malformed JSON/, 1007],
    ["{", /^malformed JSON/, 1007],
    ["\u0000", /^malformed JSON/, 1007],
    ["3", /^message: Invalid input: expected object/, 1008],
    ["null", /^message: Invalid input: expected object/, 1008],
    ["{}", /^unknown message type undefined$/, 1008],
    ['{"type":"Nonsense"}', /^unknown message type "Nonsense"$/, 1008],
    ['{"type":"\\ud800"}', /^unknown message type "\\ud800"$/, 1008],
    ['{"type":{"a":1}}', /^unknown message type {"a":1}$/, 1008],
    ['{"type":"Connect"}', /^Connect: sessionId: Invalid input: expected string/, 1008],
    ['{"type":"Mutation","requestId":1.5,"udfPath":"a","args":{}}', /^Mutation: requestId: .*int/, 1008],
    [
      '{"type":"Mutation","requestId":9007199254740993,"udfPath":"a","args":{}}',
      /^Mutation: requestId: /,
      1008,
    ],
    ['{"type":"Mutation","requestId":1,"udfPath":"a","args":[]}', /^Mutation: args: .*object/, 1008],
    ['{"type":"Mutation","requestId":1,"udfPath":"a"}', /^Mutation: args: .*object/, 1008],
    [
      '{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[{"type":"Add","queryId":"x","udfPath":"a","args":{}}]}',
      /^ModifyQuerySet: modifications\[0\]\.queryId: .*number/,
      1008,
    ],
    [
      '{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[{"type":"Xdd"}]}',
      /^ModifyQuerySet: modifications\[0\]\.type: /,
      1008,
    ],
    ['{"type":"Authenticate","baseVersion":0}', /^Authenticate: token: /, 1008],
    [
      `"${"x".repeat(socketLimits.frameCharsMax)}"`,
      /^frame too long: \d+ characters, the limit is \d+$/,
      1009,
    ],
  ];
  const world = new World();
  const bystander = world.connected();
  bystander.add(0, "get", { key: "a" });
  for (const [frame, error, code] of cases) {
    const socket = world.connected();
    socket.raw(frame);
    assertFatal(socket, error, code);
    socket.raw('{"type":"Pong"}');
  }
  const binary = world.connected();
  binary.binary();
  assertFatal(binary, "binary frame: every frame is JSON text", 1003);
  world.host.write({ a: 1 });
  await settle();
  assert.equal(bystander.value(0), 1);
  assert.equal(bystander.closedWith, null);
});

Deno.test("WL1 1024 live queries are served, one more is a FatalError", async () => {
  const world = new World();
  const socket = world.connected();
  const adds = (count: number, from: number) =>
    Array.from({ length: count }, (_, i) => ({
      type: "Add" as const,
      queryId: from + i,
      udfPath: "get",
      args: { key: `k${i % 7}` },
    }));
  socket.modify(...adds(1024, 0));
  await settle();
  assert.equal(socket.results.size, 1024);
  assert.equal(world.host.runs.length, 7);
  // A message that removes as many as it adds is accepted.
  socket.modify({ type: "Remove", queryId: 0 }, ...adds(1, 2000));
  await settle();
  assert.equal(socket.closedWith, null);
  socket.modify(...adds(1, 3000));
  assertFatal(socket, "ModifyQuerySet: more than 1024 live queries");
});

Deno.test("WL2 beyond 64 running calls messages are queued in order, while Transitions and Pings continue", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "watched" });
  await settle();
  world.host.pin();
  world.host.answerAll();
  await settle();
  for (let i = 0; i < 70; i++) socket.mutate(i, "add", { key: "a" });
  socket.add(1, "sum");
  assert.equal(world.host.queued.length, socketLimits.callsInFlightMax);
  socket.take();
  world.host.write({ watched: 1 });
  await settle();
  world.host.pin();
  world.host.answerAll();
  await settle();
  assert.equal(socket.value(0), 1);
  // Silence does not count while a call is queued, and Pings are sent.
  world.clock.move(120_000);
  assert.equal(socket.closedWith, null);
  assert.equal(socket.all("Ping").length, 8);
  assert.equal(socket.version.querySet, 1);
  world.host.commit(1);
  await settle();
  assert.equal(world.host.queued.length, 64);
  while (world.host.queued.length > 0) {
    world.host.commit(10);
    await settle();
  }
  assert.deepEqual(
    socket.all("MutationResponse").map((response) => response.success && response.result),
    [
      ...Array(70).keys(),
    ].map((i) => i + 1),
  );
  while (socket.version.querySet < 2) {
    world.host.pin();
    await settle();
    world.host.answerAll();
    await settle();
  }
});

Deno.test("WL2 actions and mutations share one limit", async () => {
  const gate = Promise.withResolvers<number>();
  const world = new World({ auto: false, actions: { wait: () => gate.promise } });
  const socket = world.connected();
  for (let i = 0; i < 40; i++) socket.act(i, "wait");
  for (let i = 0; i < 30; i++) socket.mutate(100 + i, "add", { key: "a" });
  assert.equal(world.host.queued.length, 24);
  gate.resolve(1);
  await settle();
  assert.equal(world.host.queued.length, 30);
});

Deno.test("WL2 a client may send ten thousand calls at once, which are answered in order", async () => {
  const world = new World();
  const socket = world.connected();
  const count = 10_000;
  for (let i = 0; i < count; i++) socket.mutate(i, "add", { key: "a" });
  for (let turn = 0; turn < count && socket.all("MutationResponse").length < count; turn++) await settle();
  assert.equal(socket.all("MutationResponse").length, count);
  assert.equal(socket.closedWith, null);
  for (const [i, answer] of socket.all("MutationResponse").entries()) {
    assert.ok(answer.success && answer.requestId === i && answer.result === i + 1);
  }
});

Deno.test("WL2 the queue after a waiting call is bounded", () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  for (let i = 0; i < 65; i++) socket.mutate(i, "add", { key: "a" });
  const frame = JSON.stringify({ type: "Mutation", requestId: 65, udfPath: "add", args: { key: "a" } });
  for (let i = 0; i < socketLimits.queuedFramesMax; i++) socket.raw(frame);
  assert.equal(socket.closedWith, null);
  socket.raw(frame);
  assertFatal(socket, "too many frames are queued behind running calls");
});

Deno.test("WL2 tokens expire also while a call waits", async () => {
  const world = new World({ auto: false });
  world.authenticator.expiresAt.set("u1.s1", world.clock.now() + 5_000);
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  await settle();
  for (let i = 0; i < 65; i++) socket.mutate(i, "add", { key: "a" });
  world.clock.move(5_200);
  assert.deepEqual(socket.frames.at(-1), { type: "AuthError", error: "access token expired" });
});

Deno.test("WL3 more than 1024 unanswered ModifyQuerySets and Authenticates are a FatalError", async () => {
  const world = new World();
  const socket = world.connected();
  socket.stalled = true;
  socket.bufferedAmount = socketLimits.bufferedBytesMax + 1;
  for (let i = 0; i < 512; i++) {
    socket.modify();
    socket.authenticate(i, null);
  }
  await settle();
  assert.equal(socket.closedWith, null);
  socket.modify();
  assertFatal(socket, "more than 1024 ModifyQuerySet and Authenticate messages await their Transition");
});

Deno.test("WL4 a client silent for 45 s is closed at the next ping tick", () => {
  const world = new World();
  const socket = world.connected();
  world.clock.move(44_900);
  assert.equal(socket.all("Ping").length, 2);
  assert.equal(socket.closedWith, null);
  world.clock.move(200);
  assertFatal(socket, "no message from the client for 45 s");
});

Deno.test("WL5 a Ping is sent every 15 s, and any message keeps the socket alive", () => {
  const world = new World();
  const [ponging, talking] = [world.connected(), world.connected()];
  for (let s = 0; s < 300; s += 10) {
    world.clock.move(10_000);
    ponging.report({ type: "Pong" });
    if (s % 30 === 0) talking.mutate(s, "nothing");
  }
  assert.equal(ponging.all("Ping").length, 20);
  assert.equal(talking.all("Ping").length, 20);
});

Deno.test("WL6 a frame that takes over 30 s to send closes the socket", async () => {
  const world = new World();
  const [stuck, slow] = [world.connected(), world.connected()];
  const pong = () => {
    stuck.report({ type: "Pong" });
    slow.report({ type: "Pong" });
  };
  world.host.write({ a: "x".repeat(1000) });
  stuck.stalled = slow.stalled = true;
  stuck.add(0, "get", { key: "a" });
  slow.add(0, "get", { key: "a" });
  await settle();
  for (let s = 0; s < 29; s += 1) {
    world.clock.move(1_000);
    pong();
  }
  assert.equal(stuck.closedWith, null);
  // One repeatedly frees its buffer just in time.
  slow.bufferedAmount = 0;
  for (let s = 0; s < 20; s += 1) {
    world.clock.move(1_000);
    if (stuck.closedWith === null) pong();
    else slow.report({ type: "Pong" });
  }
  assertFatal(stuck, "a frame took more than 30 s to send");
  assert.equal(slow.closedWith, null);
});

Deno.test("SH7 updates of a slow socket are merged, and do not delay others", async () => {
  const world = new World();
  world.host.write({ a: 0, b: "x".repeat(socketLimits.bufferedBytesMax) });
  const [slow, fast] = [world.connected(), world.connected()];
  for (const socket of [slow, fast]) socket.add(0, "get", { key: "a" });
  await settle();
  slow.stalled = true;
  slow.add(1, "get", { key: "b" });
  await settle();
  slow.take();
  for (let a = 1; a <= 20; a++) {
    world.host.write({ a });
    await settle();
    assert.equal(fast.value(0), a);
  }
  assert.deepEqual(slow.take(), []);
  slow.drain();
  world.clock.move(socketLimits.drainPollMs);
  await settle();
  assert.equal(slow.take().length, 1);
  assert.equal(slow.value(0), 20);
  assert.equal(slow.version.ts, 21);
});

Deno.test("SH8 a slow socket gets each of its ModifyQuerySets and Authenticates answered once it drains", async () => {
  const world = new World();
  const socket = world.connected();
  socket.bufferedAmount = socketLimits.bufferedBytesMax + 1;
  socket.stalled = true;
  socket.add(0, "get", { key: "a" });
  socket.authenticate(0, "u1.s1");
  await settle();
  socket.add(1, "me");
  socket.remove(0);
  await settle();
  assert.deepEqual(socket.take(), []);
  socket.drain();
  world.clock.move(socketLimits.drainPollMs);
  await settle();
  assert.deepEqual(
    socket.all("Transition").map(({ endVersion }) => [endVersion.querySet, endVersion.identity]),
    [[1, 0], [1, 1], [2, 1], [3, 1]],
  );
});

/** A world whose action and query return results of 16 MiB, the query first error data of that size. */
function largeWorld() {
  const chars = functionLimits.resultCharsMax - 2;
  const world = new World({ actions: { large: () => "x".repeat(chars) } });
  world.host.define("large", (_, { char }) => String(char).repeat(chars));
  world.host.define("largeError", (_, { char }) => {
    throw new UserError("large", "Large", String(char).repeat(chars));
  });
  const adds = (udfPath: string, count: number) => ({
    type: "ModifyQuerySet",
    baseVersion: 0,
    newVersion: 1,
    modifications: Array.from({ length: count }, (_, queryId) => {
      const args = { char: String.fromCharCode(97 + queryId) };
      return { type: "Add", queryId, udfPath, args };
    }),
  });
  return { world, adds, chars };
}

Deno.test("SH7 responses reach a slow socket until its buffer exceeds the limit", async () => {
  const { world } = largeWorld();
  const socket = world.connected();
  socket.stalled = true;
  socket.bufferedAmount = socketLimits.bufferedBytesMax + 1;
  for (let requestId = 0; requestId < 3; requestId++) {
    socket.act(requestId, "large");
    await settle();
  }
  assert.equal(socket.all("ActionResponse").length, 3);
  assert.equal(socket.closedWith, null);
  socket.act(3, "large");
  await settle();
  assertFatal(socket, "the client does not read its responses");
});

Deno.test("SH7 a Transition up to the size limit is sent, and does not reduce the buffer for responses", async () => {
  const { world, adds } = largeWorld();
  const socket = world.connected();
  socket.stalled = true;
  socket.report(adds("large", 5));
  await settle();
  assert.equal(socket.version.querySet, 1);
  assert.ok(socket.bufferedAmount > socketLimits.bufferedBytesFatal);
  socket.act(0, "large");
  await settle();
  assert.equal(socket.all("ActionResponse").length, 1);
  assert.equal(socket.closedWith, null);
  for (let requestId = 1; requestId < 4; requestId++) socket.act(requestId, "large");
  await settle();
  assertFatal(socket, "the client does not read its responses");
});

Deno.test("a sent Transition does not extend the buffer for later responses", async () => {
  const { world, adds } = largeWorld();
  const socket = world.connected();
  socket.report(adds("large", 5));
  await settle();
  socket.stalled = true;
  for (let requestId = 0; requestId < 4; requestId++) socket.act(requestId, "large");
  await settle();
  assertFatal(socket, "the client does not read its responses");
});

Deno.test("results that exceed one Transition are a FatalError with their size, errors included", async () => {
  for (const udfPath of ["large", "largeError"]) {
    const { world, adds } = largeWorld();
    const [socket, other] = [world.connected(), world.connected()];
    socket.report(adds(udfPath, 40));
    await settle();
    assertFatal(socket, /^the results of one Transition have 671\d{6} characters, the limit is 134217728$/);
    other.mutate(1, "nothing");
    await settle();
    assert.equal(other.all("MutationResponse").length, 1);
  }
});

Deno.test("SV8 shutdown closes every socket with 1012 and accepts no new ones", async () => {
  const world = new World();
  const [one, two] = [world.connected(), world.connected()];
  const done = world.hub.shutdown();
  assert.deepEqual([one.closedWith, two.closedWith], [1012, 1012]);
  await done;
  assert.equal(world.clock.timers, 0);
  const late = world.socket();
  assert.equal(late.closedWith, 1012);
  assert.equal(world.hub.load.sockets, 0);
});

/** A hub that shuts down, the ends of its sockets that have to answer the close frame, and whether it has stopped. */
function shuttingDown(sockets: number) {
  const world = new World();
  const closes: number[] = [];
  const handles = Array.from(
    { length: sockets },
    () =>
      world.hub.connect({
        send: () => {},
        close: (code) => closes.push(code),
        setReceiveWindow: () => {},
        cut: () => {},
        bufferedAmount: 0,
        acknowledgedBytes: null,
      }),
  );
  const state = { done: false };
  void world.hub.shutdown().then(() => state.done = true);
  return { world, closes, handles, state };
}

Deno.test("SV8 shutdown waits for answers to close frames, and not for closed connections", async () => {
  const { world, closes, handles, state } = shuttingDown(5);
  assert.deepEqual(closes, [1012, 1012, 1012, 1012, 1012]);
  for (const handle of handles.slice(1)) {
    world.clock.move(400);
    handle?.closed();
    await settle();
    assert.equal(state.done, false);
  }
  world.clock.move(2 * httpLimits.closeQuietMs);
  await settle();
  assert.equal(state.done, true);
  assert.equal(world.clock.timers, 0);
  handles[0]?.closed();
});

Deno.test("SV8 shutdown does not wait forever for close frames that arrive one by one", async () => {
  const { world, handles, state } = shuttingDown(100);
  for (let waited = 0; waited < httpLimits.drainMs; waited += httpLimits.closeQuietMs) {
    assert.equal(state.done, false);
    handles.pop()?.closed();
    world.clock.move(httpLimits.closeQuietMs);
    await settle();
  }
  assert.equal(state.done, true);
  for (const handle of handles) handle?.closed();
});

Deno.test("WL7 a closed socket releases its memory", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "now");
  socket.authenticate(0, "u1.s1");
  socket.mutate(1, "add", { key: "a" });
  await settle();
  socket.drop();
  world.host.pin();
  world.host.answerAll();
  world.host.commit();
  await settle();
  assert.equal(world.hub.load.sharedQueries, 0);
  assert.equal(world.hub.load.sockets, 0);
  assert.equal(world.clock.timers, 0);
  assert.equal(world.host.mutationRuns, 1);
});

Deno.test("arguments over their limit are an error of that call only, in any encoding", async () => {
  const { argsCharsMax } = functionLimits;
  const world = new World({ actions: { size: ({ text }) => String(text).length } });
  const socket = world.connected();
  const error = (chars: number) => `args: ${chars} characters, the limit is ${argsCharsMax}`;
  const envelope = '{"text":""}'.length;
  const failure = (type: string, requestId: number, chars: number) => ({
    type,
    requestId,
    success: false,
    errorMessage: error(chars),
    errorData: null,
    logLines: [],
  });
  socket.frames.length = 0;
  socket.report({ type: "Action", requestId: 1, udfPath: "size", args: { text: "x".repeat(argsCharsMax) } });
  assert.deepEqual(socket.frames.pop(), failure("ActionResponse", 1, argsCharsMax + envelope));
  // Six characters each as JSON text.
  const escaped = "\u0001".repeat(Math.ceil(argsCharsMax / 6));
  socket.report({ type: "Mutation", requestId: 2, udfPath: "nothing", args: { text: escaped } });
  await settle();
  assert.deepEqual(socket.frames.pop(), failure("MutationResponse", 2, escaped.length * 6 + envelope));
  socket.add(0, "get", { text: "x".repeat(argsCharsMax) });
  await settle();
  assert.deepEqual(socket.all("Transition").at(-1)?.modifications, [{
    type: "QueryFailed",
    queryId: 0,
    errorMessage: error(argsCharsMax + envelope),
    errorData: null,
    logLines: [],
  }]);
  const fits = { text: "x".repeat(argsCharsMax - envelope) };
  socket.report({ type: "Action", requestId: 3, udfPath: "size", args: fits });
  await settle();
  assert.deepEqual(socket.frames.at(-1), {
    type: "ActionResponse",
    requestId: 3,
    success: true,
    result: fits.text.length,
    logLines: [],
  });
  const refused = await world.hub.query({
    udfPath: "get",
    args: { text: "x".repeat(argsCharsMax) },
    identity: anonymous,
    origin: "client",
  });
  assert.equal(!refused.ok && refused.error.kind, "args");
});
