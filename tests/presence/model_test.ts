/** Rooms of a leader and its followers against a plain model: random joins, changes, lost links and new leaders. */
import assert from "node:assert/strict";
import { presenceLimits } from "../../mod/presence/limits.ts";
import { FollowedRooms, type RoomFollower, RoomHub, type Rooms } from "../../mod/presence/mod.ts";
import type { RoomFrame, RoomSubscriber } from "../../mod/presence/room.ts";
import type { RoomChange, RoomLink, RoomLinkEvents } from "../../mod/presence/rooms.ts";
import { randomOf } from "../client/support/random.ts";
import { FakeClock } from "../support/fake_clock.ts";

const { graceMs, graceCheckMs, frameMs, followerMs, membersMax } = presenceLimits;
const ROOMS = ["a", "b", "c"];
/** Time after which all frames have arrived. */
const QUIET_MS = 4 * (frameMs + followerMs);

interface Seen {
  readonly userId: string | null;
  readonly info: unknown;
  readonly state: unknown;
}

/** The client of a socket, which applies frames like the reference client. */
class ClientView implements RoomSubscriber {
  readonly rooms = new Map<string, Map<string, Seen>>();
  readonly refused: string[] = [];
  frames = 0;
  /** While set, the client reads nothing. */
  isSlow = false;

  send(room: string, { text }: RoomFrame): boolean {
    if (this.isSlow) return false;
    this.frames++;
    const frame = JSON.parse(text);
    assert.equal(frame.room, room);
    const members = this.rooms.get(room) ?? new Map<string, Seen>();
    this.rooms.set(room, members);
    if (frame.type === "RoomState") members.clear();
    else assert.ok(members.size > 0, "changes before the first state");
    for (const [id, member] of Object.entries({ ...frame.members, ...frame.joined })) {
      members.set(id, member as Seen);
    }
    for (const [id, state] of Object.entries(frame.states ?? {})) {
      const known = members.get(id);
      assert.ok(known !== undefined, "a state of an unknown member");
      members.set(id, { ...known, state });
    }
    for (const id of frame.left ?? []) members.delete(id);
    return true;
  }

  full(room: string): void {
    this.refused.push(room);
  }
}

/** A link that can be cut. It delivers messages like a real one: as JSON, in order, in later tasks. */
class TestLink implements RoomLink {
  readonly #clock: FakeClock;
  #rooms: RoomLinkEvents | null = null;
  #follower: RoomFollower | null = null;
  #generation = 0;
  isBusy = false;
  /** Changes that the leader received. */
  changes = 0;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  attach(rooms: RoomLinkEvents | null): void {
    this.#rooms = rooms;
  }

  get isOpen(): boolean {
    return this.#follower !== null;
  }

  send(changes: readonly RoomChange[]): boolean {
    const follower = this.#follower;
    if (follower === null) return false;
    const passed = JSON.parse(JSON.stringify(changes)) as RoomChange[];
    this.changes += passed.length;
    this.#clock.after(1, () => {
      if (this.#follower === follower) follower.receive(passed);
    });
    return true;
  }

  open(hub: RoomHub): void {
    const generation = ++this.#generation;
    const later = (run: (rooms: RoomLinkEvents) => void) =>
      void this.#clock.after(1, () => {
        if (this.#generation === generation && this.#rooms !== null) run(this.#rooms);
      });
    this.#follower = hub.connect({
      frame: (room, kind, text) => {
        later((rooms) => rooms.frame(room, kind, text));
        return true;
      },
      full: (room, id) => later((rooms) => rooms.full(room, id)),
    });
    this.#rooms?.opened();
  }

  close(): void {
    this.#generation++;
    this.#follower?.close();
    this.#follower = null;
  }
}

/** A client with its server and the rooms it is in. */
interface ModelClient {
  readonly id: string;
  view: ClientView;
  server: number;
  connection: number;
  readonly states: Map<string, unknown>;
}

class World {
  readonly clock = new FakeClock();
  readonly links: readonly TestLink[];
  readonly followers: readonly FollowedRooms[];
  hub = new RoomHub(this.clock);
  readonly clients: ModelClient[] = [];
  readonly #random: () => number;
  #created = 0;

  constructor(seed: number, followers = 2) {
    this.#random = randomOf(seed);
    this.links = Array.from({ length: followers }, () => new TestLink(this.clock));
    this.followers = this.links.map((link) => new FollowedRooms(link, this.clock));
    for (const link of this.links) link.open(this.hub);
  }

  /** Server 0 leads. */
  rooms(server: number): Rooms {
    return this.followers[server - 1] ?? this.hub;
  }

  step(): void {
    const { clients } = this;
    const action = this.#below(20);
    if (action < 4 && clients.length < 12) {
      const id = `member${this.#created++}`;
      const client = { id, view: new ClientView(), server: this.#below(3), connection: 0, states: new Map() };
      clients.push(client);
      return this.#set(client);
    }
    const client = clients[this.#below(Math.max(1, clients.length))];
    if (client === undefined) return;
    if (action < 12) return this.#set(client);
    if (action < 14) return this.#leaveRoom(client);
    if (action === 14) client.view.isSlow = !client.view.isSlow;
    else if (action === 15) this.#reconnect(client);
    else if (action === 16) this.#close(client);
    else if (action === 17) this.#disturbLink();
    else if (action === 18 && this.#below(4) === 0) this.#changeLeader();
    else this.clock.move(this.#below(200));
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Lets everything arrive, then compares each client's state with the model. */
  check(): void {
    for (const link of this.links) {
      link.isBusy = false;
      if (!link.isOpen) link.open(this.hub);
    }
    for (const { view } of this.clients) view.isSlow = false;
    // A loss may be detected late, and the grace period starts then.
    this.clock.move(2 * (graceMs + graceCheckMs) + QUIET_MS);
    for (const room of ROOMS) {
      const expected = new Map(
        this.clients.filter(({ states }) => states.has(room)).map(({ id, states }) =>
          [id, { userId: null, info: { id }, state: states.get(room) }] as const
        ),
      );
      for (const { id, view } of this.clients.filter(({ states }) => states.has(room))) {
        const seen = view.rooms.get(room) ?? new Map();
        assert.deepEqual(sorted(seen), sorted(expected), `room ${room} as ${id} sees it`);
      }
      assert.deepEqual(
        this.hub.list(room).map(({ id }) => id).toSorted(),
        [...expected.keys()].toSorted(),
        `room ${room} at the leader`,
      );
    }
    const occupied = ROOMS.filter((room) => this.clients.some(({ states }) => states.has(room)));
    assert.equal(this.hub.summary.rooms, occupied.length);
  }

  end(): void {
    for (const rooms of this.followers) rooms[Symbol.dispose]();
    this.hub[Symbol.dispose]();
    assert.equal(this.clock.timers, 0, "timers that are left");
  }

  #set(client: ModelClient): void {
    const room = ROOMS[this.#below(ROOMS.length)] ?? "a";
    const state = { n: this.#below(1_000) };
    const isNew = !client.states.has(room);
    client.states.set(room, state);
    const rooms = this.rooms(client.server);
    if (isNew) this.#join(client, room);
    else rooms.update(room, client.id, JSON.stringify(state), client.view);
  }

  #join(client: ModelClient, room: string): void {
    const { id, view, server, connection, states } = client;
    const joining = { ...member(states.get(room), { id }), connection };
    this.rooms(server).join(room, id, joining, view);
  }

  #leaveRoom({ id, view, server, states }: ModelClient): void {
    const [room] = states.keys();
    if (room === undefined) return;
    states.delete(room);
    view.rooms.delete(room);
    this.rooms(server).leave(room, id, { subscriber: view, grace: false });
  }

  /** The connection is lost. The client reconnects within the grace period, maybe to another server. */
  #reconnect(client: ModelClient): void {
    const { view: subscriber, server } = client;
    const { hub } = this;
    const rooms = [...client.states.keys()];
    const leave = () => {
      // The old leader's sockets ended with its process.
      if (server === 0 && this.hub !== hub) return;
      for (const room of rooms) this.rooms(server).leave(room, client.id, { subscriber, grace: true });
    };
    // The old server may notice the loss later than the new one the return.
    if (this.#below(2) === 0) leave();
    else this.clock.after(this.#below(graceMs), leave);
    client.server = this.#below(3);
    client.view = new ClientView();
    client.connection++;
    for (const room of rooms) this.#join(client, room);
  }

  #close(client: ModelClient): void {
    const grace = this.#below(2) === 0;
    for (const room of client.states.keys()) {
      this.rooms(client.server).leave(room, client.id, { subscriber: client.view, grace });
    }
    this.clients.splice(this.clients.indexOf(client), 1);
  }

  #disturbLink(): void {
    const link = this.links[this.#below(this.links.length)];
    if (link === undefined) return;
    if (this.#below(2) === 0) link.isBusy = !link.isBusy;
    else if (link.isOpen) link.close();
    else link.open(this.hub);
  }

  /** A new process leads. The sockets of the old one are lost, and their clients reconnect. */
  #changeLeader(): void {
    for (const link of this.links) link.close();
    this.hub[Symbol.dispose]();
    this.hub = new RoomHub(this.clock);
    for (const link of this.links) link.open(this.hub);
    for (const client of this.clients.filter(({ server }) => server === 0)) {
      client.view = new ClientView();
      client.connection++;
      for (const room of client.states.keys()) this.#join(client, room);
    }
  }
}

function sorted(members: ReadonlyMap<string, Seen>): [string, Seen][] {
  return [...members].toSorted(([a], [b]) => a < b ? -1 : 1);
}

Deno.test("PR2 PR8 clients of all servers see the members of their rooms, also while links break and leaders change", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const world = new World(seed);
    try {
      for (let round = 0; round < 4; round++) {
        for (let step = 0; step < 40; step++) world.step();
        world.check();
      }
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    world.end();
  }
});

function member(state: unknown, info: unknown = null) {
  return { userId: null, info: JSON.stringify(info), state: JSON.stringify(state), connection: 0 };
}

Deno.test("PR8 members of other servers remain visible while a new leader receives them", () => {
  const world = new World(1);
  const [here, there] = [new ClientView(), new ClientView()];
  world.rooms(1).join("a", "here", member(1), here);
  world.rooms(2).join("a", "there", member(2), there);
  world.clock.move(QUIET_MS);
  assert.deepEqual([...here.rooms.get("a")?.keys() ?? []].toSorted(), ["here", "there"]);
  for (const link of world.links) link.close();
  world.hub[Symbol.dispose]();
  world.hub = new RoomHub(world.clock);
  world.links[0]?.open(world.hub);
  world.clock.move(graceMs / 2);
  assert.equal(here.rooms.get("a")?.has("there"), true, "its server has not connected yet");
  world.clock.move(graceMs);
  assert.equal(here.rooms.get("a")?.has("there"), false, "its server did not connect in time");
  world.links[1]?.open(world.hub);
  world.clock.move(QUIET_MS);
  assert.equal(here.rooms.get("a")?.has("there"), true);
  world.end();
});

Deno.test("PR8 while a leader reads slowly, its follower keeps the newest state of each member only", () => {
  const world = new World(1);
  const [view, other] = [new ClientView(), new ClientView()];
  world.rooms(1).join("a", "m", member(0), view);
  world.rooms(1).join("a", "n", member(0), other);
  world.clock.move(QUIET_MS);
  const link = world.links[0] ?? assert.fail();
  link.isBusy = true;
  for (let state = 1; state <= 20; state++) {
    world.rooms(1).update("a", "m", `${state}`, view);
    world.clock.move(followerMs);
  }
  world.rooms(1).leave("a", "n", { subscriber: other, grace: false });
  world.clock.move(QUIET_MS);
  assert.deepEqual(world.hub.list("a").map(({ id, state }) => [id, state]), [["m", 0], ["n", 0]]);
  const before = link.changes;
  link.isBusy = false;
  world.clock.move(QUIET_MS);
  assert.deepEqual(world.hub.list("a").map(({ id, state }) => [id, state]), [["m", 20]]);
  assert.equal(link.changes - before, 2);
  world.end();
});

Deno.test("PR2 changes within the interval are sent in one frame, encoded once for all clients of the room", () => {
  const clock = new FakeClock();
  using hub = new RoomHub(clock);
  const texts: string[][] = [];
  for (let n = 0; n < 3; n++) {
    const own: string[] = [];
    texts.push(own);
    const subscriber = { send: (_: string, { text }: RoomFrame) => own.push(text) > 0, full: () => {} };
    hub.join("a", `m${n}`, member(0), subscriber);
    if (n > 0) continue;
    clock.move(frameMs);
    for (let state = 1; state <= 10; state++) hub.update("a", "m0", `${state}`, subscriber);
  }
  clock.move(frameMs);
  assert.deepEqual(texts.map((own) => own.length), [2, 1, 1]);
  assert.match(texts[0]?.[1] ?? "", /"states":\{"m0":10\}/);
  assert.equal(texts[1]?.[0], texts[2]?.[0]);
});

Deno.test("PR5 a client that reads slowly gets the newest state when it reads again", () => {
  const clock = new FakeClock();
  using hub = new RoomHub(clock);
  const [slow, fast] = [new ClientView(), new ClientView()];
  hub.join("a", "slow", member(0), slow);
  hub.join("a", "fast", member(0), fast);
  clock.move(frameMs);
  slow.isSlow = true;
  for (let state = 1; state <= 20; state++) {
    hub.update("a", "fast", `${state}`, fast);
    clock.move(frameMs);
  }
  assert.equal(fast.frames, 21);
  assert.equal(slow.frames, 1);
  slow.isSlow = false;
  clock.move(frameMs);
  assert.equal(slow.frames, 2);
  assert.equal(slow.rooms.get("a")?.get("fast")?.state, 20);
});

Deno.test("PR6 a full room refuses further members, also those of followers", () => {
  const world = new World(1);
  for (let n = 0; n < membersMax; n++) {
    world.hub.join("a", `m${n}`, member(n), { send: () => true, full: () => assert.fail("not full yet") });
  }
  const [here, there] = [new ClientView(), new ClientView()];
  world.hub.join("a", "here", member(0), here);
  world.rooms(1).join("a", "there", member(0), there);
  world.clock.move(QUIET_MS);
  assert.deepEqual([here.refused, there.refused], [["a"], ["a"]]);
  assert.equal(world.hub.list("a").length, membersMax);
  world.end();
});

Deno.test("PR3 a member whose connection was lost leaves after the grace period, unless it reconnects", () => {
  const clock = new FakeClock();
  using hub = new RoomHub(clock);
  const observer = new ClientView();
  hub.join("a", "observer", member(0), observer);
  const sockets = [new ClientView(), new ClientView(), new ClientView()] as const;
  hub.join("a", "returns", member(1), sockets[0]);
  hub.join("a", "vanishes", member(2), sockets[1]);
  clock.move(frameMs);
  hub.leave("a", "returns", { subscriber: sockets[0], grace: true });
  hub.leave("a", "vanishes", { subscriber: sockets[1], grace: true });
  clock.move(graceMs - frameMs);
  assert.equal(observer.rooms.get("a")?.size, 3);
  assert.equal(observer.frames, 1, "nothing has changed for others");
  hub.join("a", "returns", member(1), sockets[2]);
  clock.move(graceCheckMs + 2 * frameMs);
  assert.deepEqual([...observer.rooms.get("a")?.keys() ?? []], ["observer", "returns"]);
});
