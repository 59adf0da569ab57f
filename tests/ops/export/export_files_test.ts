import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { openExport } from "../../../mod/engine/mod.ts";
import {
  ExportError,
  exportFiles,
  type ExportFilesOptions,
  type ExportSummary,
} from "../../../mod/ops/tables/export/mod.ts";
import { anyTable, TestDatabase } from "../../engine/support.ts";

/** A folder for exports and a database with app and system tables. Removed when it is disposed. */
class Place implements Disposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "syncline-export-" });
  readonly database = new TestDatabase({
    notes: anyTable(),
    tags: anyTable(),
    _users: anyTable(),
    _scheduled_functions: anyTable(),
    _passwords: anyTable(),
    _refresh_tokens: anyTable(),
    _codes: anyTable(),
    _sessions: anyTable(),
  });

  constructor() {
    this.database.commit((tx) => tx.insert("notes", { body: "one" }));
    this.database.commit((tx) => tx.insert("notes", { body: "two" }));
    this.database.commit((tx) => tx.insert("_users", { email: "a@example.com" }));
    this.database.commit((tx) => tx.insert("_passwords", { hash: "secret" }));
  }

  get out(): string {
    return `${this.folder}/out`;
  }

  async export(
    { databasePath = this.database.path, ...options }: Partial<ExportFilesOptions> & {
      databasePath?: string;
    } = {},
  ): Promise<ExportSummary> {
    using snapshot = openExport(databasePath);
    return await exportFiles(snapshot, {
      tables: null,
      format: "jsonl",
      folder: this.out,
      ...options,
    });
  }

  /** Names in the export folder at any depth. */
  left(folder = this.folder): string[] {
    return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
      isDirectory ? [name, ...this.left(`${folder}/${name}`)] : [name]
    ).sort();
  }

  [Symbol.dispose](): void {
    this.database[Symbol.dispose]();
    Deno.removeSync(this.folder, { recursive: true });
  }
}

Deno.test("[EX6] [EX7] exactly the app's tables are exported to a new folder that only its owner can read", async () => {
  using place = new Place();
  const summary = await place.export();
  assert.deepEqual(summary, {
    ts: 4,
    tables: [
      { name: "notes", file: "notes.jsonl", documents: 2 },
      { name: "tags", file: "tags.jsonl", documents: 0 },
    ],
  });
  assert.deepEqual(place.left(), ["notes.jsonl", "out", "tags.jsonl"]);
  assert.match(await Deno.readTextFile(`${place.out}/notes.jsonl`), /^\{.*"one"\}\n\{.*"two"\}\n$/);
  assert.equal((await Deno.stat(`${place.out}/notes.jsonl`)).mode! & 0o777, 0o600);
  assert.equal((await Deno.stat(place.out)).mode! & 0o777, 0o700);
});

Deno.test("[EX6] system tables readable by app code are exported if named", async () => {
  using place = new Place();
  const { tables } = await place.export({ tables: ["_users", "notes", "_users"], format: "csv" });
  assert.deepEqual(tables.map(({ file, documents }) => [file, documents]), [["_users.csv", 1], [
    "notes.csv",
    2,
  ]]);
  assert.match(await Deno.readTextFile(`${place.out}/_users.csv`), /,a@example\.com\r\n$/);
});

for (
  const table of [
    "absent",
    "_passwords",
    "_refresh_tokens",
    "_codes",
    "_sessions",
    "syncline_state",
    "d1",
    "",
  ]
) {
  Deno.test(`[EX6] table "${table}" is unknown, and the error lists the available ones`, async () => {
    using place = new Place();
    await assert.rejects(place.export({ tables: ["notes", table] }), (error) => {
      assert.ok(error instanceof ExportError);
      assert.equal(error.code, "unknown_table");
      assert.equal(
        error.message,
        `Cannot export table "${table}": not found. Available tables: notes, tags, _scheduled_functions, _users`,
      );
      return true;
    });
    assert.deepEqual(place.left(), []);
  });
}

Deno.test("[EX7] a non-empty folder is rejected and unchanged; an empty one is accepted", async () => {
  using place = new Place();
  await Deno.mkdir(place.out);
  await place.export();
  const before = await Deno.readTextFile(`${place.out}/notes.jsonl`);
  place.database.commit((tx) => tx.insert("notes", { body: "three" }));
  await assert.rejects(place.export(), /is not empty and contains ".*"\. Pass a new or empty folder/);
  assert.equal(await Deno.readTextFile(`${place.out}/notes.jsonl`), before);
  await assert.rejects(place.export({ folder: `${place.out}/notes.jsonl` }), /it is a file/);
  await assert.rejects(
    place.export({ folder: `${place.out}/notes.jsonl/below` }),
    (error) => error instanceof ExportError && error.message.startsWith('Cannot write "'),
  );
});

Deno.test("[EX7] an export that fails in its second table leaves nothing behind, and an empty folder remains", async () => {
  using place = new Place();
  place.database.commit((tx) => tx.insert("tags", { name: "\ud800" }));
  await assert.rejects(place.export({ format: "csv" }), /Cannot write table "tags" as CSV/);
  assert.deepEqual(place.left(), []);
  await Deno.mkdir(place.out);
  await assert.rejects(place.export({ format: "csv" }), /Cannot write table "tags" as CSV/);
  assert.deepEqual(place.left(), ["out"]);
});

Deno.test("[EX7] an aborted export leaves nothing behind", async () => {
  using place = new Place();
  const stop = new AbortController();
  stop.abort(new Error("stopped"));
  await assert.rejects(place.export({ signal: stop.signal }), /stopped/);
  assert.deepEqual(place.left(), []);
});

Deno.test("an app without tables has nothing to export", async () => {
  using place = new Place();
  using empty = new TestDatabase({ _users: anyTable() });
  await assert.rejects(place.export({ databasePath: empty.path }), /Nothing to export/);
  assert.deepEqual(place.left(), []);
});

Deno.test("[EX7] a damaged database is distinguished from a failed export, and nothing is left behind", async () => {
  using place = new Place();
  place.database.commit((tx) => {
    for (let n = 0; n < 1_000; n++) tx.insert("tags", { body: "x".repeat(1000) });
  });
  const copy = `${place.folder}/copy.db`;
  using file = new DatabaseSync(place.database.path);
  file.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const bytes = await Deno.readFile(place.database.path);
  bytes.fill(0xee, bytes.length / 2);
  await Deno.writeFile(copy, bytes);
  await assert.rejects(place.export({ databasePath: copy }), /copy\.db": the database is damaged/);
  assert.deepEqual(place.left().filter((name) => !name.startsWith("copy.db")), []);
});

Deno.test("[EX7] an export keeps the disk reserve for a server, and leaves nothing behind if the disk is full", async () => {
  using place = new Place();
  for (let n = 0; n < 50; n++) {
    place.database.commit((tx) => tx.insert("notes", { body: "x".repeat(500_000) }));
  }
  let asked = 0;
  const hasRoom = () => Promise.resolve(++asked < 2);
  await assert.rejects(place.export({ tables: ["notes"], hasSpace: hasRoom }), /not enough disk space/);
  assert.equal(asked, 2);
  assert.deepEqual(place.left(), []);
  const full = () => Promise.resolve(false);
  await assert.rejects(place.export({ tables: ["notes"], hasSpace: full }), ExportError);
  await place.export({ tables: ["notes"] });
});
