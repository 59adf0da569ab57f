/** Stored files in an export: kept by hard links while the snapshot is open, and copied afterwards. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type ExportSnapshot, openExport } from "../../../mod/engine/mod.ts";
import { WorkFolder } from "../../../mod/ops/backups/snapshot/work_folder.ts";
import { exportFiles, exportNewest, holdContents } from "../../../mod/ops/tables/export/mod.ts";
import { anyTable, TestDatabase } from "../../engine/support.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const onlyExport = {
  signal: new AbortController().signal,
  onWait: () => assert.fail("there is no other export"),
};

/** A data folder with files, and a database elsewhere with their documents. */
class Place implements AsyncDisposable {
  readonly folder = new TempFolder();
  readonly database = new TestDatabase({ notes: anyTable(), _storage: anyTable() });
  #files = 0;

  constructor() {
    this.database.commit((tx) => tx.insert("notes", { body: "one" }));
  }

  /** Returns the file's ID. */
  async add(contents: string): Promise<{ readonly id: string; readonly path: string }> {
    const blob = `${this.#files++}`.padStart(32, "a");
    const path = this.folder.at("data/storage", blob.slice(0, 2), blob);
    await Deno.mkdir(join(path, ".."), { recursive: true });
    await Deno.writeTextFile(path, contents);
    const sha256 = createHash("sha256").update(contents).digest("hex");
    const fields = { blob, sha256, size: contents.length };
    return { id: this.database.commit((tx) => tx.insert("_storage", fields)).result, path };
  }

  /** Whether a checkpoint can process the whole log, which no older snapshot prevents. */
  emptiesItsLog(): boolean {
    using database = new DatabaseSync(this.database.path);
    const { busy } = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number };
    return busy === 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.database[Symbol.dispose]();
    await this.folder[Symbol.asyncDispose]();
  }
}

Deno.test("[EX16] files deleted during the export are exported, without a snapshot waiting for them", async () => {
  await using place = new Place();
  const files = [await place.add("before it began"), await place.add("and another")];
  const hold = await holdContents(place.folder.at("data"), onlyExport);
  assert.ok(hold !== null);
  await using held = hold;
  files.push(await place.add("since it began"));
  using snapshot = openExport(place.database.path);
  await Deno.remove(files[1]?.path ?? "");
  const logs: boolean[] = [];
  const out = place.folder.at("out");
  const summary = await exportFiles(snapshot, {
    tables: null,
    format: "jsonl",
    folder: out,
    files: {
      hold: held.hold,
      async read(blob) {
        for (const { path } of files) await Deno.remove(path).catch(() => {});
        place.database.commit((tx) => tx.insert("notes", { body: "meanwhile" }));
        logs.push(place.emptiesItsLog());
        return await held.read(blob);
      },
    },
  });
  assert.deepEqual([summary.files, summary.tables[0]?.documents, logs], [3, 1, [true, true, true]]);
  const texts = files.map(({ id }) => Deno.readTextFileSync(join(out, "_storage", id)));
  assert.deepEqual(texts, ["before it began", "and another", "since it began"]);
  const names = [...Deno.readDirSync(out)].map(({ name }) => name).sort();
  assert.deepEqual(names, ["_storage", "_storage.jsonl", "_tables.jsonl", "notes.jsonl"]);
});

Deno.test("[EX16] files created since the first links are linked before they are listed", async () => {
  await using place = new Place();
  await place.add("before");
  const held = await holdContents(place.folder.at("data"), onlyExport);
  assert.ok(held !== null);
  await using files = held;
  const added = [await place.add("one"), await place.add("two")];
  using snapshot = openExport(place.database.path);
  const hold = async (blob: string) => {
    const isHeld = await held.hold(blob);
    for (const { path } of added) await Deno.remove(path).catch(() => {});
    return isHeld;
  };
  const folder = place.folder.at("out");
  const summary = await exportFiles(snapshot, {
    ...{ tables: null, format: "jsonl", folder, files: { ...files, hold } },
  });
  assert.equal(summary.files, 3);
});

Deno.test("[EX16] the export restarts for a file deleted before it was linked, but not for a lost one", async () => {
  await using place = new Place();
  const kept = await place.add("kept");
  const held = await holdContents(place.folder.at("data"), onlyExport);
  assert.ok(held !== null);
  await using files = held;
  let opened = 0;
  /** Each of the first snapshots references a file that has been deleted when it is opened. */
  const goes = (times: number) => async (): Promise<ExportSnapshot> => {
    if (++opened > times) return openExport(place.database.path);
    const { id, path } = await place.add("gone");
    const snapshot = openExport(place.database.path);
    place.database.commit((tx) => tx.delete(id));
    await Deno.remove(path);
    return snapshot;
  };
  const options = {
    ...{ tables: null, format: "jsonl" as const, files, databasePath: place.database.path },
  };
  const folder = place.folder.at("out");
  const { files: count } = await exportNewest({ ...options, folder, open: goes(2) });
  assert.deepEqual([count, opened], [1, 3]);
  assert.equal(await Deno.readTextFile(join(folder, "_storage", kept.id)), "kept");
  opened = 0;
  const other = place.folder.at("other");
  await assert.rejects(
    exportNewest({ ...options, folder: other, open: goes(9) }),
    /are not in the data folder/,
  );
  assert.equal(opened, 3);
  opened = 0;
  await Deno.remove((await place.add("lost")).path);
  await assert.rejects(
    exportNewest({ ...options, folder: other, open: goes(0) }),
    /are not in the data folder/,
  );
  assert.equal(opened, 1);
  await assert.rejects(Deno.stat(other), Deno.errors.NotFound);
});

Deno.test("[EX16] linking can be aborted, and errors of the data folder are attributed to it", async () => {
  await using place = new Place();
  await place.add("one");
  const data = place.folder.at("data");
  const stopped = holdContents(data, { ...onlyExport, signal: AbortSignal.abort(new Error("stopped")) });
  await assert.rejects(stopped, /stopped/);
  const held = await holdContents(data, onlyExport);
  assert.ok(held !== null);
  await using files = held;
  const work = join(data, "storage/export-work");
  await Deno.remove(work, { recursive: true });
  await Deno.writeTextFile(work, "in its way");
  using snapshot = openExport(place.database.path);
  await assert.rejects(
    exportFiles(snapshot, { tables: null, format: "jsonl", folder: place.folder.at("out"), files }),
    /^ExportError: Cannot hold the files in the data folder ".*data" while they are exported: /,
  );
});

Deno.test("[EX16] without links files are copied while the snapshot is open, before the tables", async () => {
  await using place = new Place();
  const { id, path } = await place.add("in its place");
  using snapshot = openExport(place.database.path);
  const out = place.folder.at("out");
  const seen: unknown[] = [];
  const read = async () => {
    place.database.commit((tx) => tx.insert("notes", { body: "meanwhile" }));
    seen.push(place.emptiesItsLog(), [...Deno.readDirSync(out)].some(({ name }) => name.includes("notes")));
    return (await Deno.open(path)).readable;
  };
  await exportFiles(snapshot, { tables: null, format: "jsonl", folder: out, files: { read } });
  assert.deepEqual(seen, [false, false]);
  assert.equal(await Deno.readTextFile(join(out, "_storage", id)), "in its place");
});

Deno.test("[EX16] missing contents abort the export without leftovers", async () => {
  await using place = new Place();
  const { path, id } = await place.add("lost");
  await Deno.remove(path);
  {
    const held = await holdContents(place.folder.at("data"), onlyExport);
    assert.ok(held !== null);
    await using files = held;
    using snapshot = openExport(place.database.path);
    const folder = place.folder.at("out");
    await assert.rejects(
      exportFiles(snapshot, { tables: null, format: "jsonl", folder, files }),
      new RegExp(`The contents of file ${id} are not in the data folder`),
    );
  }
  assert.deepEqual([...Deno.readDirSync(place.folder.path)].map(({ name }) => name), ["data"]);
  assert.deepEqual([...Deno.readDirSync(place.folder.at("data/storage"))].map(({ name }) => name), ["aa"]);
});

Deno.test("[EX16] only one export at a time links files, and leftovers of a killed one are removed by the next or at startup", async () => {
  await using place = new Place();
  await place.add("kept");
  const data = place.folder.at("data");
  const left = join(data, "storage/export-work/all/aa");
  await Deno.mkdir(left, { recursive: true });
  await Deno.writeTextFile(join(left, "old"), "left behind");
  const first = await holdContents(data, onlyExport);
  await assert.rejects(Deno.stat(join(left, "old")), Deno.errors.NotFound);
  const waits = Promise.withResolvers<void>();
  const second = holdContents(data, { ...onlyExport, onWait: waits.resolve });
  await waits.promise;
  await WorkFolder.removeAbandoned(data);
  assert.equal((await Deno.stat(left)).isDirectory, true);
  const stop = new AbortController();
  const third = holdContents(data, { signal: stop.signal, onWait: () => stop.abort(new Error("stopped")) });
  await assert.rejects(third, /stopped/);
  await first?.[Symbol.asyncDispose]();
  await (await second)?.[Symbol.asyncDispose]();
  await Deno.mkdir(left, { recursive: true });
  await WorkFolder.removeAbandoned(data);
  await assert.rejects(Deno.stat(left), Deno.errors.NotFound);
});
