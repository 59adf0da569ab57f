/** The command `import` with an export of Convex: tables, references and files, completely or not at all. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { anonymous } from "../../mod/functions/identity.ts";
import { startOfflineHost } from "../../mod/server/offline_host.ts";
import { DataLock } from "../../mod/server/data/data_lock.ts";
import { programModule, projectDir } from "../support/processes/program_module.ts";
import { Commands, type Ran } from "../support/commands.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";
import { zipOf } from "../support/zip.ts";

const commands = { export: Commands.with("export"), import: Commands.with("import") };

const APP = {
  "functions/schema.ts": `import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  people: defineTable({ name: z.string(), photo: id("_storage").optional(), seen: z.number() }),
  messages: defineTable({ by: id("people"), body: z.string(), readBy: z.array(id("people")), votes: z.record(z.string(), z.number()) }),
});`,
  "functions/all.ts": `import { untypedQuery } from "syncline/server";
export const all = untypedQuery(async (ctx) => ({
  people: await ctx.db.query("people").collect(),
  messages: await ctx.db.query("messages").collect(),
  photo: await ctx.storage.getMetadata((await ctx.db.query("people").first()).photo),
}));`,
};
const [ADA, BEN, HELLO, PHOTO] = ["j57ada", "j57ben", "k17hello", "kg2photo"];
const contents = new Uint8Array([1, 2, 3]);
const lines = (...documents: readonly object[]) =>
  documents.map((one) => JSON.stringify(one)).join("\n") + "\n";
const at = { _creationTime: 1700000000000.25 };
const later = { _creationTime: 1700000000001 };
const SNAPSHOT: Readonly<Record<string, string | Uint8Array>> = {
  "README.md": "about",
  "_tables/documents.jsonl": lines({ name: "people", id: 10001 }),
  "people/generated_schema.jsonl": '"any"\n',
  "people/documents.jsonl": lines(
    { _id: ADA, ...at, name: "Ada", photo: PHOTO, seen: { $integer: "KgAAAAAAAAA=" } },
    { _id: BEN, ...later, name: "Ben", seen: 1 },
  ),
  "messages/documents.jsonl": lines({
    _id: HELLO,
    ...at,
    by: ADA,
    body: "Hello",
    readBy: [BEN, ADA],
    votes: { [BEN]: 2 },
  }),
  "_storage/documents.jsonl": lines({
    _id: PHOTO,
    ...at,
    contentType: "image/png",
    size: 3,
    sha256: createHash("sha256").update(contents).digest("base64"),
  }),
  [`_storage/${PHOTO}.png`]: contents,
  "_components/mail/jobs/documents.jsonl": lines({ _id: "x1", ...at }),
};

async function imported(folder: TempFolder, files: Readonly<Record<string, string | Uint8Array>>) {
  await Deno.writeFile(folder.at("snapshot.zip"), zipOf(files));
  return await importedFrom(folder, { path: "snapshot.zip", data: "data" });
}

function importedFrom(folder: TempFolder, { path, data }: { readonly path: string; readonly data: string }) {
  return run("import", [folder.at(path), "--data", folder.at(data), "--functions", folder.at("functions")]);
}

function run(command: "import" | "export", args: readonly string[]): Promise<Ran> {
  return commands[command].run([command, ...args]);
}

/** The result of the app's one query, as a string. */
async function everything(folder: TempFolder, data = "data"): Promise<string> {
  await using host = await startOfflineHost({
    dataDir: folder.at(data),
    functionsDir: folder.at("functions"),
    log: () => {},
  });
  let value = "";
  const call = { udfPath: "all:all", args: {}, identity: anonymous, origin: "client" } as const;
  await host.startQueryBatch([call], (_, { outcome }) => {
    value = outcome.ok ? outcome.value : JSON.stringify(outcome);
  }).done;
  return value;
}

Deno.test("IM19 a Convex export is imported with its files, and its references are preserved", async () => {
  await using folder = await TempFolder.with(APP);
  const { code, out, err } = await imported(folder, SNAPSHOT);
  assert.deepEqual([code, out.trim().split("\n")], [0, [
    "messages: 1 document imported",
    "people: 2 documents imported",
    "_storage: 1 file imported, 3 bytes",
    "5 references to documents and files mapped",
    "_components/mail/jobs: skipped, it is an internal table of Convex",
  ]], err);
  const { people: [ada, ben], messages: [hello], photo } = JSON.parse(await everything(folder));
  assert.deepEqual([ada.name, ada.seen, ada._creationTime, ben.name], ["Ada", 42, at._creationTime, "Ben"]);
  assert.deepEqual([hello.by, hello.readBy, hello.votes], [ada._id, [ben._id, ada._id], { [ben._id]: 2 }]);
  assert.deepEqual([photo._id, photo.size, photo.contentType], [ada.photo, 3, "image/png"]);
  const again = await imported(folder, SNAPSHOT);
  assert.equal(again.code, 1);
  assert.match(again.err, /already contains data: import a Convex export into a new folder/);
});

Deno.test("IM19 an invalid export is reported with file and line, and leaves nothing behind", async () => {
  await using folder = await TempFolder.with(APP);
  const refused = async (files: Readonly<Record<string, string | Uint8Array>>, why: RegExp) => {
    const { code, err } = await imported(folder, { ...SNAPSHOT, ...files });
    assert.equal(code, 1, err);
    assert.match(err, why);
    await assert.rejects(Deno.stat(folder.at("data/data.db")), Deno.errors.NotFound);
  };
  await refused({ "ghosts/documents.jsonl": lines({ _id: "g1", ...at }) }, /ghosts/);
  const unfit = lines({ _id: BEN, ...at, name: "Ben", seen: 1 }, { _id: ADA, ...at, name: 7, seen: 1 });
  await refused({ "people/documents.jsonl": unfit }, /people\/documents\.jsonl, line 2: .*name/);
  await refused(
    { [`_storage/${PHOTO}.png`]: new Uint8Array([9]) },
    /_storage\/kg2photo\.png: its contents are damaged/,
  );
  const empty = await imported(folder, { "README.md": "about" });
  assert.deepEqual([empty.code, /has no <table>\/documents\.jsonl/.test(empty.err)], [1, true], empty.err);
});

Deno.test("[EX16] [IM20] an export is imported completely into a new data folder, with files and ids, or not at all", async () => {
  await using folder = await TempFolder.with(APP);
  assert.equal((await imported(folder, SNAPSHOT)).code, 0);
  const before = await everything(folder);
  const exported = await run("export", [
    "--data",
    folder.at("data"),
    "--with-files",
    "--out",
    folder.at("out"),
  ]);
  assert.equal(exported.code, 0, exported.err);
  assert.match(exported.out, /\n_storage: 1 file in _storage\n/);
  const { photo } = JSON.parse(before);
  assert.deepEqual(await Deno.readFile(folder.at("out/_storage", photo._id)), contents);

  const whole = await importedFrom(folder, { path: "out", data: "whole" });
  assert.deepEqual([whole.code, whole.out.trim().split("\n")], [0, [
    "messages: 1 document imported",
    "people: 2 documents imported",
    "_storage: 1 file imported, 3 bytes",
  ]], whole.err);
  assert.equal(await everything(folder, "whole"), before);
  const again = await importedFrom(folder, { path: "out", data: "whole" });
  assert.deepEqual([
    again.code,
    /already contains data: import an export with files into a new/.test(again.err),
  ], [1, true]);

  // A failed import keeps the files that existed before.
  await Deno.mkdir(folder.at("kept/storage"), { recursive: true });
  await Deno.writeFile(folder.at("kept/storage/mine"), contents);
  const kept = await importedFrom(folder, { path: "out", data: "kept" });
  assert.deepEqual([kept.code, /there are files in/.test(kept.err)], [1, true], kept.err);
  assert.deepEqual(await Deno.readFile(folder.at("kept/storage/mine")), contents);

  const refused = async (why: RegExp) => {
    const { code, err } = await importedFrom(folder, { path: "out", data: "other" });
    assert.equal(code, 1, err);
    assert.match(err, why);
    for (const name of ["data.db", "storage", "import-unfinished"]) {
      await assert.rejects(Deno.stat(folder.at("other", name)), Deno.errors.NotFound);
    }
  };
  await Deno.writeFile(folder.at("out/_storage", photo._id), new Uint8Array([1, 2, 9]));
  await refused(/its contents are damaged/);
  await Deno.remove(folder.at("out/_storage", photo._id));
  await refused(new RegExp(`the contents of ${photo._id} are missing or incomplete in _storage`));

  // Without its files the documents still name them: ids of files are those of any new folder.
  await Deno.remove(folder.at("out"), { recursive: true });
  assert.equal((await run("export", ["--data", folder.at("data"), "--out", folder.at("out")])).code, 0);
  const bare = await importedFrom(folder, { path: "out", data: "bare" });
  assert.equal(bare.code, 0, bare.err);
  assert.deepEqual(JSON.parse(await everything(folder, "bare")), { ...JSON.parse(before), photo: null });

  await Deno.remove(folder.at("data/storage"), { recursive: true });
  const gone = await run("export", ["--data", folder.at("data"), "--with-files", "--out", folder.at("gone")]);
  assert.equal(gone.code, 1);
  assert.match(gone.err, /The contents of file \S+ are not in the data folder/);
  await assert.rejects(Deno.stat(folder.at("gone")), Deno.errors.NotFound);
});

Deno.test("[IM20] the remains of a killed import are used only by the next import", async () => {
  await using folder = await TempFolder.with(APP);
  await Deno.writeFile(folder.at("snapshot.zip"), zipOf(SNAPSHOT));
  const args = [folder.at("snapshot.zip"), "--functions", folder.at("functions"), "--data"];
  let data = "";
  for (let round = 0; data === ""; round++) {
    await using child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--quiet", "--no-prompt", "-P=import", programModule("cli.ts"), "import"],
        ...args,
        folder.at(`data${round}`),
      ],
      cwd: projectDir,
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const mark = folder.at(`data${round}`, "import-unfinished");
    const output = child.output();
    let ended = false;
    void output.then(() => ended = true);
    await until(() => ended || existsSync(mark));
    if (!ended) child.kill("SIGKILL");
    const { signal } = await output;
    // It may have been done in that moment.
    if (signal === "SIGKILL" && existsSync(mark)) data = `data${round}`;
  }
  for (const by of ["serve", "restore", "backup", "export", "admin"] as const) {
    await assert.rejects(
      DataLock.acquire(folder.at(data), { by }),
      /An import into ".*" was interrupted and its data is incomplete\. Import again/,
    );
  }
  await Deno.mkdir(folder.at(data, "storage"), { recursive: true });
  await Deno.writeFile(folder.at(data, "storage/half"), contents);
  const again = await importedFrom(folder, { path: "snapshot.zip", data });
  assert.equal(again.code, 0, again.err);
  assert.ok(
    !existsSync(folder.at(data, "import-unfinished")) && !existsSync(folder.at(data, "storage/half")),
  );
  const { people } = JSON.parse(await everything(folder, data));
  assert.equal(people.length, 2);
  using _lock = await DataLock.acquire(folder.at(data), { by: "serve" });
});
