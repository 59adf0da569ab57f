/** Streams of a server with workers: readers at all processes, also while a worker is replaced. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { workersOf } from "../cluster/support/processes.ts";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { functions, generate, read, textOf } from "./support.ts";

const WORDS = 300;

Deno.test("SM3 SM6 readers at all workers receive all words, also when a worker is killed", async () => {
  await using folder = await TempFolder.with(
    Object.fromEntries(Object.entries(functions).map(([name, text]) => [`app/${name}`, text])),
  );
  await using child = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts --host 127.0.0.1 --port 0 --workers 3".split(" "),
      ...["--data", folder.at("data"), "--functions", folder.at("app")],
    ],
  });
  const [url = ""] = await child.line(/http:\/\/127\.0\.0\.1:\d+/);
  const client = new SynclineClient(url, { polling: false, webSocket: WebSocket });
  const { id, file } = await generate(client, { words: WORDS, pauseMs: 10, holdAt: 9 });
  const readers = Array.from({ length: 24 }, () => read(client, id));
  await until(() => readers.every(({ parts }) => parts.length > 0));
  await client.mutation("answers:release", { stream: id });
  const [worker = 0] = await workersOf(child.pid);
  Deno.kill(worker, "SIGKILL");
  for (const { end } of readers) assert.equal(await end, "done");
  for (const { parts } of readers) assert.equal(parts.join(""), textOf(WORDS));
  await file;
  const failing = await generate(client, { words: 2, fault: "throw" });
  const ends = await Promise.all(
    Array.from({ length: 12 }, () => read(client, failing.id)).map(({ end }) => end),
  );
  for (const end of ends) assert.equal(end === "done" ? end : end.code, "stream_failed");
  client.close();
});
