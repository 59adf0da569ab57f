/** `joinRoom`: sent messages, room state, throttling, reconnects and several uses of one room. */
import assert from "node:assert/strict";
import type { ConnectionState, SynclineClient } from "../../mod/client/mod.ts";
import { joinRoom } from "../../mod/client/presence/mod.ts";
import { createTestServer } from "../../mod/testing/mod.ts";
import { pause, until } from "../support/waiting.ts";
import { TempFolder } from "../support/temp_folder.ts";

/** The part of a client that rooms use. */
class ClientDouble {
  readonly sent: { type: string; room: string; state?: unknown }[] = [];
  receive: (message: object) => void = () => {};
  #state = { transport: "webSocket", connectionCount: 1 };
  #listener = () => {};

  get client(): SynclineClient {
    return this as unknown as SynclineClient;
  }

  extend(receive: (message: object) => void): (message: object) => boolean {
    this.receive = receive;
    return (message) => {
      if (this.#state.transport !== "webSocket") return false;
      this.sent.push(message as typeof this.sent[number]);
      return true;
    };
  }

  onConnectionState(listener: () => void): () => void {
    this.#listener = listener;
    return () => {};
  }

  connectionState(): Partial<ConnectionState> {
    return this.#state as Partial<ConnectionState>;
  }

  connection(transport: string | null, connectionCount: number): void {
    this.#state = { transport: transport as string, connectionCount };
    this.#listener();
  }
}

const member = (state: object, userId: string | null = null) => ({ userId, info: null, state });

Deno.test("PR1 the room contains its members, and changes as the server reports them", () => {
  const double = new ClientDouble();
  const room = joinRoom(double.client, "a", { n: 1 });
  let changes = 0;
  room.onChange(() => changes++);
  assert.deepEqual(double.sent, [{ type: "SetPresence", room: "a", state: { n: 1 } }]);
  assert.deepEqual(room.view.members, []);
  double.receive({ type: "RoomJoined", room: "a", self: "me" });
  double.receive({
    type: "RoomState",
    room: "a",
    members: { me: member({ n: 1 }), x: member({ n: 2 }, "u1") },
  });
  assert.equal(room.view.self?.id, "me");
  assert.deepEqual(room.view.others, [{ id: "x", userId: "u1", info: null, state: { n: 2 } }]);
  const before = room.view;
  assert.equal(room.view, before, "the same object without a change");
  double.receive({ type: "RoomChanged", room: "a", joined: { y: member({}) }, states: { x: { n: 3 } } });
  assert.deepEqual(room.view.others.map(({ id, state }) => [id, state]), [["x", { n: 3 }], ["y", {}]]);
  double.receive({ type: "RoomChanged", room: "a", left: ["x", "unknown"] });
  assert.deepEqual(room.view.others.map(({ id }) => id), ["y"]);
  double.receive({ type: "RoomChanged", room: "elsewhere", left: ["y"] });
  assert.equal(changes, 3);
});

Deno.test("PR2 changes within the interval are sent together, and equal states not at all", async () => {
  const double = new ClientDouble();
  const room = joinRoom<{ n: number }>(double.client, "a", { n: 0 }, { throttleMs: 500 });
  for (let n = 1; n <= 20; n++) room.update({ n });
  assert.equal(double.sent.length, 1);
  await until(() => double.sent.length === 2);
  assert.deepEqual(double.sent[1]?.state, { n: 20 });
  room.update({ n: 20 });
  await pause(600);
  assert.equal(double.sent.length, 2);
  room.update({ n: 21 });
  room.update({ n: 22 });
  room.leave();
  await pause(600);
  assert.deepEqual(double.sent.slice(2).map(({ type, state }) => [type, state]), [
    ["SetPresence", { n: 21 }],
    ["LeaveRoom", undefined],
  ]);
});

Deno.test("PR3 each new socket joins again with the newest state", () => {
  const double = new ClientDouble();
  const room = joinRoom<{ n: number }>(double.client, "a", { n: 0 });
  double.receive({ type: "RoomJoined", room: "a", self: "me" });
  double.receive({ type: "RoomState", room: "a", members: { me: member({ n: 0 }) } });
  double.connection(null, 1);
  room.update({ n: 1 });
  assert.equal(double.sent.length, 1);
  assert.equal(room.view.members.length, 1, "members stay visible while the connection is lost");
  double.connection("polling", 2);
  assert.equal(double.sent.length, 1);
  double.connection("webSocket", 3);
  assert.deepEqual(double.sent.at(-1)?.state, { n: 1 });
  double.connection("webSocket", 4);
  assert.equal(double.sent.length, 3);
});

Deno.test("PR1 several uses of a room are one member with the fields of all", async () => {
  const double = new ClientDouble();
  const cursor = joinRoom(double.client, "a", { x: 1 }, { throttleMs: 0 });
  const typing = joinRoom(double.client, "a", { isTyping: true }, { throttleMs: 0 });
  await until(() => double.sent.length === 2);
  assert.deepEqual(double.sent[1]?.state, { x: 1, isTyping: true });
  assert.equal(cursor.view, typing.view);
  typing.leave();
  typing.update({ isTyping: false });
  await until(() => double.sent.length === 3);
  assert.deepEqual(double.sent.at(-1)?.state, { x: 1 });
  cursor.leave();
  cursor.leave();
  assert.equal(double.sent.filter(({ type }) => type === "LeaveRoom").length, 1);
});

Deno.test("PR4 a refusal is the error of the room, until the client joins", () => {
  const double = new ClientDouble();
  const room = joinRoom(double.client, "a", {});
  const refusal = { type: "RoomRefused", room: "a", errorMessage: "Sign in first" };
  double.receive({ ...refusal, isMember: false, errorData: { code: "signed_out", data: null } });
  assert.equal(room.view.error?.code, "signed_out");
  double.receive({ type: "RoomJoined", room: "a", self: "me" });
  double.receive({ type: "RoomState", room: "a", members: { me: member({}) } });
  assert.equal(room.view.error, null);
  double.receive({ ...refusal, isMember: true, errorData: null });
  assert.equal(room.view.members.length, 1);
  assert.notEqual(room.view.error, null);
  double.receive({ ...refusal, isMember: false, errorData: null });
  assert.deepEqual([room.view.members, room.view.self], [[], null]);
});

Deno.test("PR6 the error of a refused state ends with the next state", async () => {
  const double = new ClientDouble();
  const room = joinRoom<{ text: string }>(double.client, "a", { text: "" }, { throttleMs: 0 });
  double.receive({ type: "RoomJoined", room: "a", self: "me" });
  double.receive({ type: "RoomState", room: "a", members: { me: member({ text: "" }) } });
  const errors: (string | null)[] = [];
  room.onChange(() => errors.push(room.view.error?.message ?? null));
  room.update({ text: "too long" });
  await until(() => double.sent.length === 2);
  double.receive({
    type: "RoomRefused",
    room: "a",
    isMember: true,
    errorMessage: "Too long",
    errorData: null,
  });
  room.update({ text: "short" });
  await until(() => double.sent.length === 3);
  assert.deepEqual(errors, ["Too long", null]);
});

const APP = {
  "presence.ts": `
import { untypedAction, untypedInternalQuery, untypedMutation, untypedQuery } from "syncline/server";
export const authorize = untypedInternalQuery({ handler: (ctx) => ({ name: ctx.auth.userId() ?? "guest" }) });
export const list = untypedAction({ handler: (ctx, { room }) => ctx.presence.list(room) });
export const query = untypedQuery({ handler: (ctx) => ctx.presence });
export const mutation = untypedMutation({ handler: (ctx) => ctx.presence });
`,
  "http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({
  path: "/members",
  method: "GET",
  handler: httpAction(async (ctx) => Response.json(await ctx.presence.list("a"))),
});
export default http;
`,
};

Deno.test("PR7 actions and routes read the members of a room, queries and mutations cannot", async () => {
  await using folder = await TempFolder.with(APP);
  await using server = await createTestServer({ functionsDir: folder.path });
  const ada = await server.asUser("Ada");
  const room = joinRoom(ada.connect(), "a", { n: 1 });
  await server.advance(1_000);
  const expected = [{
    id: room.view.self?.id,
    userId: ada.userId,
    info: { name: ada.userId },
    state: { n: 1 },
  }];
  assert.deepEqual(await server.action("presence:list", { room: "a" }), expected);
  assert.deepEqual(await (await server.fetch("/members")).json(), expected);
  assert.deepEqual(await server.action("presence:list", { room: "b" }), []);
  await assert.rejects(server.action("presence:list", { room: 1 }), /needs the name of a room/);
  await assert.rejects(
    server.query("presence:query"),
    /ctx\.presence is not available in queries and mutations/,
  );
  await assert.rejects(server.mutation("presence:mutation"), /ctx\.presence is not available/);
});
