/** Rooms of two servers on one PostgreSQL, also when the other one becomes the leader. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { joinRoom, type RoomHandle } from "../../mod/client/presence/mod.ts";
import { TestPostgres } from "../cluster/support/postgres.ts";
import { ClusterRig } from "../cluster/support/servers.ts";
import { needs, postgres } from "../support/services.ts";
import { until } from "../support/waiting.ts";

function join(
  url: string,
  n: number,
): { readonly client: SynclineClient; readonly room: RoomHandle<{ n: number }> } {
  const client = new SynclineClient(url, { polling: false, webSocket: WebSocket });
  return { client, room: joinRoom(client, "a", { n }) };
}

const numbers = (room: RoomHandle<{ n: number }>) => room.view.members.map(({ state }) => state.n).toSorted();

Deno.test(
  needs(postgres, "PR8 clients of the servers of a cluster share their rooms, whichever leads"),
  async () => {
    await using database = await TestPostgres.start();
    await using rig = await ClusterRig.make(await database.database());
    const a = await rig.first("a");
    await using b = await rig.start("b");
    const [here, there] = [join(a.url, 1), join(b.url, 2)];
    for (const { room } of [here, there]) await until(() => numbers(room).length === 2);
    there.room.update({ n: 3 });
    for (const { room } of [here, there]) await until(() => `${numbers(room)}` === "1,3");
    here.client.close();
    await until(() => numbers(there.room).length === 1);
    await a[Symbol.asyncDispose]();
    await using c = await rig.start("a");
    const back = join(c.url, 4);
    await until(() => numbers(back.room).length === 2 && numbers(there.room).length === 2);
    assert.deepEqual(numbers(back.room), [3, 4]);
    for (const { client } of [back, there]) client.close();
  },
);
