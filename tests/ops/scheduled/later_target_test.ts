/** The backup target after a change of leaders: opened on first use. */
import assert from "node:assert/strict";
import type { BackupsConfig } from "../../../mod/config/config.ts";
import { StartError } from "../../../mod/config/start_error.ts";
import { openBackupTarget } from "../../../mod/server/features/backups.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const config = (to: BackupsConfig["to"]) => ({ backups: { to, everyMs: 60_000, keep: 1 } as BackupsConfig });

Deno.test("[PG7] a target used before is not waited for, and is opened when available", async () => {
  await using folder = new TempFolder();
  const to = { kind: "folder", path: folder.at("file/backups") } as const;
  await Deno.writeTextFile(folder.at("file"), "in the way");
  const log = () => {};
  await assert.rejects(openBackupTarget({ config: config(to), log }), StartError);
  await using place = await openBackupTarget({ config: config(to), later: true, log }) ?? assert.fail();
  assert.equal(place.target.place, to.path);
  await assert.rejects(place.target.check(), /Cannot store backups in/);
  await Deno.remove(folder.at("file"));
  await Deno.mkdir(folder.at("file"));
  await place.target.check();
  await Deno.writeTextFile(folder.at("made"), "an archive");
  const name = "scheduled-20300101T000000Z-00000000.tar.zst";
  await place.target.put(name, folder.at("made"));
  assert.deepEqual(await place.target.list(), [name]);
  await place.target.remove(name);
  assert.deepEqual(await place.target.list(), []);
});

Deno.test("[PG7] an unresponsive bucket delays neither leadership nor shutdown", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const conns: Deno.Conn[] = [];
  const silent = (async () => {
    for await (const conn of listener) conns.push(conn);
  })().catch(() => {});
  const place = {
    bucket: "backups",
    prefix: "",
    endpoint: `http://127.0.0.1:${listener.addr.port}`,
    region: "us-east-1",
    accessKeyId: "id",
    secretAccessKey: "key",
  };
  const to = { kind: "bucket", place } as unknown as BackupsConfig["to"];
  const opened = await openBackupTarget({ config: config(to), later: true, log: () => {} }) ?? assert.fail();
  assert.equal(opened.target.place, "s3://backups/");
  const checked = opened.target.check().then(() => "used", () => "given up");
  await opened[Symbol.asyncDispose]();
  assert.equal(await checked, "given up");
  await assert.rejects(opened.target.check(), /closed/);
  listener.close();
  for (const conn of conns) conn.close();
  await silent;
});
