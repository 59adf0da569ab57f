/** Rooms as a socket sees them: the feature, authorization, identities, limits and ends. */
import assert from "node:assert/strict";
import { UserError } from "../../mod/errors.ts";
import { presenceLimits } from "../../mod/presence/limits.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { failed, type Outcome } from "../../mod/functions/outcome.ts";
import { RoomHub, SocketPresence } from "../../mod/presence/mod.ts";
import { socketLimits } from "../../mod/limits.ts";
import { Hub } from "../../mod/sync/hub.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { FakeAuthenticator } from "./support/fake_authenticator.ts";
import { MemoryHost } from "./support/memory_host.ts";
import { settle, TestSocket } from "./support/test_socket.ts";

const {
  frameMs,
  graceMs,
  graceCheckMs,
  roomsMax,
  membersMax,
  authorizationsMax,
  stateCharsMax,
  infoCharsMax,
  updates,
} = presenceLimits;
const SESSIONS = ["01890000-0000-7000-8000-000000000001", "01890000-0000-7000-8000-000000000002"] as const;

class PresenceWorld {
  readonly clock = new FakeClock();
  readonly authenticator = new FakeAuthenticator();
  readonly host: MemoryHost;
  readonly rooms = new RoomHub(this.clock);
  readonly hub: Hub;
  /** Principals of the calls of the app's function. */
  readonly authorized: (string | null)[] = [];

  constructor({ authorize = true } = {}) {
    this.host = new MemoryHost({
      queries: {
        ...authorize && {
          "presence:authorize": (ctx, { room }) => {
            // A result that depends on the time is not cached: each call runs.
            ctx.now();
            this.authorized.push(ctx.principal());
            if (room === "users" && ctx.principal() === null) {
              throw new UserError("signed_out", "Sign in first");
            }
            if (room === "broken") throw new Error("secret detail");
            return room === "huge" ? "x".repeat(infoCharsMax) : { name: ctx.principal() ?? "guest" };
          },
        },
      },
    });
    const { clock, host, authenticator, rooms } = this;
    this.hub = new Hub({ host, authenticator, rooms, dev: false, clock, later: queueMicrotask });
  }

  async open(sessionId: string = SESSIONS[0]): Promise<TestSocket> {
    const socket = new TestSocket(this.hub);
    socket.connect({ sessionId, features: ["presence"] });
    await settle();
    return socket;
  }

  /** Lets responses and frames arrive. */
  async pass(ms = 2 * frameMs): Promise<void> {
    await this.clock.advance(ms);
    await settle();
  }

  /** Names and states of the members of a room, in the order joined. */
  members(room: string): unknown[] {
    return this.rooms.list(room).map(({ info, state }) => [(info as { name: string }).name, state]);
  }

  [Symbol.dispose](): void {
    this.rooms[Symbol.dispose]();
  }
}

function set(socket: TestSocket, room: string, state: unknown = {}): void {
  socket.report({ type: "SetPresence", room, state });
}

Deno.test("PR1 a client that names the feature joins, and receives the members and their changes", async () => {
  using world = new PresenceWorld();
  const ada = await world.open();
  set(ada, "a", { x: 1 });
  await world.pass();
  const [joined, state] = ada.take();
  assert.ok(joined?.type === "RoomJoined" && state?.type === "RoomState");
  assert.deepEqual(state.members, {
    [joined.self]: { userId: null, info: { name: "guest" }, state: { x: 1 } },
  });
  const linus = await world.open(SESSIONS[1]);
  set(linus, "a", { x: 2 });
  await world.pass();
  set(linus, "a", { x: 3 });
  await world.pass();
  const [arrival, change] = ada.take();
  assert.ok(arrival?.type === "RoomChanged" && change?.type === "RoomChanged");
  const [other = ""] = Object.keys(arrival.joined ?? {});
  assert.notEqual(other, joined.self);
  assert.deepEqual(change.states, { [other]: { x: 3 } });
  linus.report({ type: "LeaveRoom", room: "a" });
  await world.pass();
  assert.deepEqual(ada.take(), [{ type: "RoomChanged", room: "a", left: [other] }]);
  set(linus, "b");
  await world.pass();
  assert.deepEqual(ada.take(), [], "a client receives its rooms only");
});

Deno.test("PR1 a client without the feature is refused, and receives nothing of rooms", async () => {
  using world = new PresenceWorld();
  const member = await world.open();
  const old = new TestSocket(world.hub);
  old.connect({ sessionId: SESSIONS[1], features: ["diffs"] });
  set(member, "a");
  await world.pass();
  assert.deepEqual(old.take(), []);
  set(old, "a");
  await world.pass();
  assert.match(old.all("FatalError")[0]?.error ?? "", /does not name the feature "presence"/);
  const unknown = new TestSocket(world.hub);
  unknown.report({ type: "LeaveRoom", room: "a" });
  assert.equal(unknown.all("FatalError").length, 1);
});

Deno.test("PR4 the app's function decides who joins, again for each identity", async () => {
  using world = new PresenceWorld();
  const socket = await world.open();
  set(socket, "users", { n: 1 });
  await world.pass();
  assert.deepEqual(socket.take(), [{
    type: "RoomRefused",
    room: "users",
    isMember: false,
    errorMessage: "Sign in first",
    errorData: { code: "signed_out", data: null },
  }]);
  set(socket, "users", { n: 2 });
  socket.authenticate(0, "u1.s1");
  await world.pass();
  assert.deepEqual(world.members("users"), [["user:u1", { n: 2 }]]);
  const [id] = world.rooms.list("users").map(({ id }) => id);
  assert.equal(world.rooms.list("users")[0]?.userId, "u1");
  socket.authenticate(1, "u1.s1");
  await world.pass();
  assert.deepEqual(world.rooms.list("users").map((member) => member.id), [id]);
  socket.authenticate(2, "u2.s2");
  await world.pass();
  assert.deepEqual(world.members("users"), [["user:u2", { n: 2 }]]);
  socket.authenticate(3, null);
  await world.pass();
  assert.deepEqual(world.members("users"), []);
  assert.equal(socket.all("RoomRefused").length, 2);
  assert.equal(socket.closedWith, null);
  assert.deepEqual(world.authorized, [null, "user:u1", "user:u1", "user:u2", null]);
});

Deno.test("PR4 a user who is replaced by another leaves before the function is called", async () => {
  using world = new PresenceWorld();
  const socket = await world.open();
  socket.authenticate(0, "u1.s1");
  set(socket, "a");
  await world.pass();
  world.host.auto = false;
  socket.authenticate(1, "u2.s2");
  await world.pass();
  assert.deepEqual(world.members("a"), []);
});

Deno.test("PR4 a room is authorized once at a time, and the newest identity decides", async () => {
  using world = new PresenceWorld();
  const runs: ((outcome: Outcome) => void)[] = [];
  const refusals: string[] = [];
  const presence = new SocketPresence(
    { rooms: world.rooms, clock: world.clock, dev: false },
    { sessionId: SESSIONS[0], connectionCount: 0 },
    {
      identity: () => anonymous,
      authorize: () => new Promise((resolve) => runs.push(resolve)),
      send: (text) => text.includes("RoomRefused") ? refusals.push(text) > 0 : true,
      keep: () => {},
    },
  );
  const end = async (outcome: Outcome) => {
    runs.at(-1)?.(outcome);
    await world.pass();
  };
  const allowed: Outcome = { ok: true, value: '{"name":"guest"}', logLines: [] };
  const refused = failed("user", "Not you");
  const identitiesChange = () => {
    for (let n = 0; n < 50; n++) presence.identityChanged();
  };
  presence.set("a", {});
  identitiesChange();
  assert.equal(runs.length, 1);
  await end(refused);
  assert.deepEqual(
    [runs.length, refusals, world.members("a")],
    [2, [], []],
    "an earlier identity was refused",
  );
  await end(allowed);
  assert.deepEqual([runs.length, world.members("a")], [2, [["guest", {}]]]);
  identitiesChange();
  await end(allowed);
  assert.deepEqual([runs.length, world.members("a").length], [4, 1]);
  await end(allowed);
  identitiesChange();
  await end(refused);
  assert.deepEqual(
    [runs.length, refusals, world.members("a")],
    [6, [], []],
    "a refused member leaves at once",
  );
  await end(refused);
  assert.deepEqual([runs.length, refusals.length, world.members("a")], [6, 1, []]);
  presence.end({ grace: false });
});

Deno.test("PR4 errors of the function are hidden, and an app without it has no rooms", async () => {
  using world = new PresenceWorld();
  const socket = await world.open();
  set(socket, "broken");
  set(socket, "huge");
  await world.pass();
  const refusals = socket.all("RoomRefused");
  assert.deepEqual(refusals.map(({ errorMessage }) => errorMessage), ["Server Error", "Server Error"]);
  using other = new PresenceWorld({ authorize: false });
  const refused = await other.open();
  set(refused, "a");
  await other.pass();
  assert.match(refused.all("RoomRefused")[0]?.errorMessage ?? "", /no function "presence:authorize"/);
});

Deno.test("PR3 a member leaves immediately when its client closes the socket or its session ends", async () => {
  using world = new PresenceWorld();
  const [leaving, revoked] = [await world.open(), await world.open(SESSIONS[1])];
  revoked.authenticate(0, "u1.s1");
  for (const socket of [leaving, revoked]) set(socket, "a");
  await world.pass();
  assert.equal(world.members("a").length, 2);
  leaving.drop(1001);
  assert.equal(world.members("a").length, 1);
  world.authenticator.end({ sessionId: "s1" });
  assert.deepEqual(world.members("a"), []);
});

Deno.test("PR3 a session that returns after a lost connection is the same member", async () => {
  using world = new PresenceWorld();
  const observer = await world.open(SESSIONS[1]);
  set(observer, "a");
  const before = await world.open();
  set(before, "a", { n: 1 });
  await world.pass();
  observer.take();
  before.drop();
  await world.pass(graceMs / 2);
  const after = await world.open();
  set(after, "a", { n: 1 });
  await world.pass(graceMs + graceCheckMs);
  assert.deepEqual(observer.take().filter(({ type }) => type !== "Ping"), [], "others have not noticed");
  assert.deepEqual(
    after.all("RoomJoined").map(({ self }) => self),
    before.all("RoomJoined").map(({ self }) => self),
  );
  after.drop();
  await world.pass(graceMs + graceCheckMs);
  assert.equal(observer.take().filter(({ type }) => type === "RoomChanged").length, 1);
});

Deno.test("PR5 a socket that reads slowly gets the newest state when it has drained", async () => {
  using world = new PresenceWorld();
  const slow = await world.open();
  const fast = await world.open(SESSIONS[1]);
  for (const socket of [slow, fast]) set(socket, "a");
  await world.pass();
  slow.take();
  slow.stalled = true;
  slow.bufferedAmount = socketLimits.bufferedBytesMax + 1;
  for (let n = 0; n < 5; n++) {
    set(fast, "a", { n });
    await world.pass();
  }
  assert.deepEqual(slow.take(), []);
  slow.drain();
  await world.pass();
  const [frame, ...others] = slow.take();
  assert.ok(frame?.type === "RoomState" && others.length === 0);
  assert.deepEqual(Object.values(frame.members).map(({ state }) => state), [{}, { n: 4 }]);
});

Deno.test("PR6 rooms that a client has left count while their authorization runs", async () => {
  using world = new PresenceWorld();
  const socket = await world.open();
  world.host.auto = false;
  for (let n = 0; n <= authorizationsMax; n++) {
    set(socket, `room ${n}`);
    socket.report({ type: "LeaveRoom", room: `room ${n}` });
  }
  await settle();
  const [refusal, ...others] = socket.all("RoomRefused");
  assert.match(refusal?.errorMessage ?? "", /may wait for 64 authorizations/);
  assert.deepEqual([refusal?.room, others], [`room ${authorizationsMax}`, []]);
  world.host.auto = true;
  world.host.pin();
  world.host.answerAll();
  await world.pass();
  set(socket, "next");
  await world.pass();
  assert.equal(world.rooms.list("next").length, 1);
});

Deno.test("PR6 too many rooms and large states are refused, and a flood ends the socket", async () => {
  using world = new PresenceWorld();
  const socket = await world.open();
  for (let n = 0; n <= roomsMax; n++) set(socket, `room ${n}`, { n });
  await world.pass();
  assert.match(socket.all("RoomRefused")[0]?.errorMessage ?? "", /may be in 32 rooms/);
  assert.equal(socket.all("RoomState").length, roomsMax);
  set(socket, "room 0", { text: "x".repeat(stateCharsMax) });
  await world.pass();
  const refusal = socket.all("RoomRefused")[1];
  assert.match(refusal?.errorMessage ?? "", /characters of JSON, more than the limit of 2048/);
  assert.equal(refusal?.isMember, true);
  assert.deepEqual(world.rooms.list("room 0")[0]?.state, { n: 0 });
  socket.report({ type: "LeaveRoom", room: "room 1" });
  set(socket, "one more");
  await world.pass();
  assert.equal(world.rooms.list("one more").length, 1);
  for (let n = 0; n < updates.burst + updates.perSecond; n++) set(socket, "room 0", { n });
  assert.match(socket.all("FatalError")[0]?.error ?? "", /more than 400 presence messages a second/);
});

Deno.test("PR6 a full room refuses a client until its identity changes", async () => {
  using world = new PresenceWorld();
  const others = { send: () => true, full: () => assert.fail("not full yet") };
  for (let n = 0; n < membersMax; n++) {
    world.rooms.join("a", `m${n}`, { userId: null, info: "{}", state: "{}", connection: 0 }, others);
  }
  const socket = await world.open();
  set(socket, "a");
  await world.pass();
  const [refusal, ...more] = socket.take();
  assert.ok(refusal?.type === "RoomRefused" && more.length === 0);
  assert.match(refusal.errorMessage, /The room has 2000 members/);
  assert.equal(refusal.isMember, false);
  world.rooms.leave("a", "m0", { subscriber: others, grace: false });
  socket.authenticate(0, "u1.s1");
  await world.pass(1_000);
  assert.equal(socket.all("RoomJoined").length, 1);
});

Deno.test("PR6 names and states that are not allowed are refused", async () => {
  using world = new PresenceWorld();
  for (
    const message of [{ room: "", state: {} }, { room: "x".repeat(257), state: {} }, { room: "a", state: [] }]
  ) {
    const socket = await world.open();
    socket.report({ type: "SetPresence", ...message });
    assert.equal(socket.all("FatalError").length, 1, JSON.stringify(message).slice(0, 60));
  }
});

Deno.test("PR6 all memory of a socket's rooms is released at its end", async () => {
  using world = new PresenceWorld();
  for (let n = 0; n < 50; n++) {
    const socket = await world.open();
    set(socket, "a", { n });
    set(socket, "b", { text: "x".repeat(n) });
    await world.pass();
    if (n % 2 === 0) socket.report({ type: "LeaveRoom", room: "a" });
    socket.drop(1000);
  }
  assert.deepEqual(world.rooms.summary, { rooms: 0, members: 0, largest: [] });
  world.hub.validate();
});

Deno.test("PR6 a socket that ends because its rooms need too much memory releases all of it", async () => {
  for (const last of [{ room: "b", state: {} }, { room: "a", state: { text: "longer" } }]) {
    using world = new PresenceWorld();
    let chars = 0;
    let calls = 0;
    let charsMax = Infinity;
    const presence: SocketPresence = new SocketPresence(
      { rooms: world.rooms, clock: world.clock, dev: false },
      { sessionId: SESSIONS[0], connectionCount: 0 },
      {
        identity: () => anonymous,
        authorize: () => {
          calls++;
          return Promise.resolve({ ok: true, value: "{}", logLines: [] });
        },
        send: () => true,
        keep: (more) => {
          chars += more;
          if (more > 0 && chars > charsMax) presence.end({ grace: false });
        },
      },
    );
    presence.set("a", {});
    await world.pass();
    charsMax = chars;
    presence.set(last.room, last.state);
    await world.pass();
    assert.deepEqual([chars, calls, world.rooms.summary.members], [0, 1, 0]);
  }
});
