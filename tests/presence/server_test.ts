/** Rooms of a real server: its isolates read them, and administrators see them. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { joinRoom } from "../../mod/client/presence/mod.ts";
import { bearerOf, startTestServer } from "../auth/server/test_server.ts";
import { until } from "../support/waiting.ts";

const functions = {
  "presence.ts": `
import { untypedAction, untypedInternalQuery } from "syncline/server";
export const authorize = untypedInternalQuery({ handler: () => ({ name: "someone" }) });
export const list = untypedAction({ handler: (ctx, { room }) => ctx.presence.list(room) });
`,
};

Deno.test("PR7 isolates read the members of a room, and administrators see all rooms", async () => {
  await using server = await startTestServer({ functions });
  const client = new SynclineClient(server.url, { polling: false, webSocket: WebSocket });
  const room = joinRoom(client, "a", { n: 1 });
  await until(() => room.view.self !== null);
  const member = { id: room.view.self?.id, userId: null, info: { name: "someone" }, state: { n: 1 } };
  assert.deepEqual(await client.action("presence:list", { room: "a" }), [member]);
  const path = `${server.url}/api/admin/live`;
  const refused = await fetch(path);
  assert.equal(refused.status, 401);
  await refused.body?.cancel();
  const headers = { Authorization: `Bearer ${await bearerOf(server)}` };
  const live = await (await fetch(path, { headers })).json();
  assert.deepEqual(live.rooms, {
    rooms: 1,
    members: 1,
    largest: [{ room: "a", size: 1, members: [member] }],
  });
  client.close();
  await until(async () => (await (await fetch(path, { headers })).json()).rooms.members === 0);
});
