/** A stream of the leader, read at a follower of a cluster. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { TestPostgres } from "../cluster/support/postgres.ts";
import { ClusterRig } from "../cluster/support/servers.ts";
import { needs, postgres } from "../support/services.ts";
import { until } from "../support/waiting.ts";
import { read } from "./support.ts";

Deno.test(
  needs(postgres, "SM6 a follower of a cluster passes on the streams of the leader"),
  async () => {
    await using database = await TestPostgres.start();
    await using rig = await ClusterRig.make(await database.database());
    await using _ = await rig.first("a");
    await using b = await rig.start("b");
    const client = new SynclineClient(b.url, { polling: false, webSocket: WebSocket });
    const begin = async (words: number) => {
      const ids: string[] = [];
      const release = client.subscribe(
        "notes:list",
        {},
        (notes) => ids.push(...(notes as string[]).slice(-1)),
      );
      void client.action("notes:speak", { words }).catch(() => {});
      await until(() => ids.at(-1)?.length === 32);
      release();
      return ids.at(-1) ?? "";
    };
    const id = await begin(30);
    const readers = [read(client, id), read(client, id)];
    for (const { end } of readers) assert.equal(await end, "done");
    for (const { parts } of readers) assert.equal(parts.join(""), "word ".repeat(30));
    client.close();
  },
);
