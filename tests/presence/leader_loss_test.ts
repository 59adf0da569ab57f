/** Rooms and streams of three server processes, when the one that leads is killed. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { joinRoom } from "../../mod/client/presence/mod.ts";
import { TestPostgres } from "../cluster/support/postgres.ts";
import { ProcessRig } from "../cluster/support/server_processes.ts";
import { functions } from "../cluster/support/servers.ts";
import { read } from "../streams/support.ts";
import { needs, postgres } from "../support/services.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { found, until } from "../support/waiting.ts";

const WORDS = 15_000;

function connect(url: string): SynclineClient {
  return new SynclineClient(url, { polling: false, webSocket: WebSocket });
}

/** Starts an action that writes to a stream. Returns its id and its end. */
async function begin(client: SynclineClient, words: number) {
  let notes: readonly string[] = [];
  const release = client.subscribe("notes:list", {}, (value) => notes = value as string[]);
  const before = (await client.query("notes:list") as string[]).length;
  const end = client.action("notes:speak", { words }).then(() => "done", (error) => error);
  const id = await found(() => notes[before], { what: "the action has created its stream" });
  release();
  return { id, end };
}

Deno.test(
  needs(
    postgres,
    "PR8 SM4 when the leader dies, members of other servers stay visible, and its streams fail",
  ),
  async () => {
    await using database = await TestPostgres.start();
    await using folder = await TempFolder.with(functions);
    await using rig = await ProcessRig.start(await database.database(), 3, {
      app: ["--functions", folder.path],
    });
    const [first, ...others] = rig.servers;
    await first?.start();
    await Promise.all(others.map((server) => server.start()));
    await until(() => rig.allServe(), { what: "all servers serve" });
    const leader = await found(() => rig.leader(), { what: "there is a leader" });
    const servers = rig.servers.filter((server) => server !== leader);
    const clients = [...servers, leader].map(({ url }) => connect(url));
    const rooms = clients.map((client, n) => joinRoom<{ n: number }>(client, "a", { n }));
    const numbers = (at: number) => rooms[at]?.view.members.map(({ state }) => state.n).toSorted() ?? [];
    await until(() => rooms.every((_, at) => numbers(at).length === 3), { what: "all see all" });
    const [writer = assert.fail(), reader = assert.fail()] = clients;
    const { id, end } = await begin(writer, WORDS);
    const readers = [writer, reader].map((client) => read(client, id));
    await until(() => readers.every(({ parts }) => parts.length >= 3), { what: "the stream is read" });

    const seen: number[][][] = rooms.map(() => []);
    rooms.forEach((room, at) => room.onChange(() => seen[at]?.push(numbers(at))));
    await leader.end("SIGKILL");
    const next = await found(() => rig.leader(), { what: "there is a new leader" });

    // The action had an effect elsewhere, so its caller cannot know how it ended.
    assert.notEqual(await end, "done");
    for (const { parts, end } of readers) {
      const failure = await end;
      assert.ok(failure !== "done", "a stream without its end is not complete");
      assert.match(failure.code, /^(stream_failed|not_found)$/);
      const text = parts.join("");
      assert.ok(text.length >= 15 && "word ".repeat(WORDS).startsWith(text), "no byte is lost or repeated");
    }
    const stays = servers.findIndex((server) => server !== next);
    const moved = 1 - stays;
    rooms[moved]?.update({ n: 10 });
    await until(() => numbers(stays).includes(10), { what: "the new leader passes changes on" });
    const staysVisible = seen[stays]?.every((all) =>
      all.includes(stays) && (all.includes(moved) || all.includes(10))
    );
    // On a busy machine another server may lead after this one. Its members may then return after their grace period.
    if (await found(() => rig.leader(), { what: "there is a leader" }) === next) {
      assert.ok(staysVisible, `members of living servers stayed visible: ${JSON.stringify(seen[stays])}`);
    }
    await until(() => numbers(stays).length === 2 && numbers(moved).length === 2, {
      what: "the members of the lost server have left",
    });
    const { id: second } = await begin(reader, 3);
    for (const { parts, end } of [writer, reader].map((client) => read(client, second))) {
      assert.equal(await end, "done");
      assert.equal(parts.join(""), "word ".repeat(3));
    }
    for (const client of clients) client.close();
  },
);
