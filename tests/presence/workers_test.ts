/** Rooms of a server with workers: clients of all processes share them, also while a worker is replaced. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { SynclineClient } from "../../mod/client/mod.ts";
import { joinRoom, type RoomHandle } from "../../mod/client/presence/mod.ts";
import { presenceLimits } from "../../mod/presence/limits.ts";
import { connectionsOf, workersOf } from "../cluster/support/processes.ts";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const ROUNDS_MAX = 5;

const APP = {
  "app/presence.ts": `
import { untypedAction, untypedInternalQuery } from "syncline/server";
export const authorize = untypedInternalQuery({ handler: () => null });
export const list = untypedAction({ handler: async (ctx) => (await ctx.presence.list("a")).length });
`,
};

const numbers = (room: RoomHandle<{ n: number }>) =>
  room.view.members.map(({ state }) => state.n).toSorted((a, b) => a - b);

Deno.test("PR8 clients of all workers share their rooms, and remain the same members when a worker is killed", async () => {
  await using folder = await TempFolder.with(APP);
  await using child = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts --host 127.0.0.1 --port 0 --workers 3".split(" "),
      ...["--data", folder.at("data"), "--functions", folder.at("app")],
    ],
  });
  const [url = ""] = await child.line(/http:\/\/127\.0\.0\.1:\d+/);
  const port = Number(new URL(url).port);
  const clients: SynclineClient[] = [];
  const rooms: RoomHandle<{ n: number }>[] = [];
  const isOnAll = async () => {
    const pids = [child.pid, ...await workersOf(child.pid)];
    return (await Promise.all(pids.map((pid) => connectionsOf(pid, port)))).every((count) => count >= 1);
  };
  do {
    const client = new SynclineClient(url, { polling: false, webSocket: WebSocket });
    clients.push(client);
    rooms.push(joinRoom(client, "a", { n: rooms.length }));
    await until(() => rooms.every(({ view }) => view.members.length === rooms.length));
    assert.ok(rooms.length < 200, "some process gets no connection");
  } while (rooms.length < 6 || !await isOnAll());
  const all = rooms.map((_, n) => n);
  for (const room of rooms) assert.deepEqual(numbers(room), all);
  rooms[0]?.update({ n: 1_000 });
  await until(() => rooms.every((room) => numbers(room).includes(1_000)));
  assert.equal(await clients[0]?.action("presence:list"), rooms.length);
  const idsOf = () => rooms.map(({ view }) => view.self?.id);
  // A member whose client does not return in time leaves: on a busy machine, more rounds until all return.
  for (let round = 1, inTime = false; !inTime; round++) {
    const ids = idsOf();
    const [worker = 0] = await workersOf(child.pid);
    const killedAt = performance.now();
    Deno.kill(worker, "SIGKILL");
    await until(async () => {
      const now = await workersOf(child.pid);
      return now.length === 2 && !now.includes(worker);
    });
    await until(() => clients.every((client) => client.connectionState().isConnected));
    const n = 1_000 + round;
    rooms[0]?.update({ n });
    await until(() => rooms.every((room) => numbers(room).includes(n)));
    await until(() => rooms.every(({ view }) => view.members.length === rooms.length));
    inTime = performance.now() - killedAt < presenceLimits.graceMs || isDeepStrictEqual(idsOf(), ids);
    if (inTime || round === ROUNDS_MAX) assert.deepEqual(idsOf(), ids);
  }
  clients[1]?.close();
  const others = rooms.filter((_, n) => n !== 1);
  await until(() => others.every(({ view }) => view.members.length === others.length));
  for (const client of clients) client.close();
});
