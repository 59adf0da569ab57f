/** The command `import` as an operator meets it: real processes, their output, their exit codes, the data afterwards. */
import assert from "node:assert/strict";
import { join, relative } from "node:path";
import { anonymous } from "../../mod/functions/identity.ts";
import type { Outcome } from "../../mod/functions/outcome.ts";
import { opsLimits } from "../../mod/ops/limits.ts";
import { openExport } from "../../mod/engine/mod.ts";
import { createBackup } from "../../mod/ops/backups/backup.ts";
import { stageRestore } from "../../mod/ops/backups/restore/mod.ts";
import { startOfflineHost } from "../../mod/server/offline_host.ts";
import { Child, projectDir } from "../support/processes/child.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { textOf } from "../ops/export/support.ts";
import { Commands, type Ran } from "../support/commands.ts";
import { HANG_MS, retry } from "../support/waiting.ts";

const commands = Commands.with("import");

const FILES = {
  "schema.ts": `
    import { defineSchema, defineTable, id } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      notes: defineTable({ text: z.string(), n: z.number().optional() }).index("by_n", ["n"]),
      users: defineTable({ name: z.string(), note: id("notes").optional() }),
    });`,
  "notes.ts": `
    import { untypedQuery } from "syncline/server";
    export const all = untypedQuery(async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text));
    export const users = untypedQuery(async (ctx) => (await ctx.db.query("users").collect()).map(({ name }) => name));`,
};

class Place implements AsyncDisposable {
  readonly dir = Deno.makeTempDirSync();
  readonly dataDir = join(this.dir, "data");
  readonly functionsDir = join(this.dir, "functions");

  constructor() {
    this.write("functions", FILES);
  }

  /** Writes files into a folder and returns its path. */
  write(folder: string, files: Readonly<Record<string, string>>): string {
    const path = join(this.dir, folder);
    Deno.mkdirSync(path, { recursive: true });
    for (const [name, text] of Object.entries(files)) Deno.writeTextFileSync(join(path, name), text);
    return path;
  }

  args(path: string, flags: readonly string[] = []): string[] {
    return ["import", path, "--data", this.dataDir, "--functions", this.functionsDir, ...flags];
  }

  import(path: string, ...flags: string[]): Promise<Ran> {
    return commands.run(this.args(path, flags));
  }

  /** The texts of the notes that are stored, with nothing running. */
  storedNotes(): string[] {
    using snapshot = openExport(join(this.dataDir, "data.db"));
    return Array.from(snapshot.documents("notes"), (text) => JSON.parse(text).text);
  }

  /** The results of the app's queries, with no server running. */
  async query(
    ...calls: readonly (readonly [udfPath: string, args: Record<string, unknown>])[]
  ): Promise<unknown[]> {
    const { dataDir, functionsDir } = this;
    await using host = await startOfflineHost({ dataDir, functionsDir, log: () => {} });
    const outcomes: Outcome[] = [];
    const batch = host.startQueryBatch(
      calls.map(([udfPath, args]) => ({ udfPath, args, identity: anonymous, origin: "client" })),
      (index, { outcome }) => outcomes[index] = outcome,
    );
    await batch.done;
    return outcomes.map((outcome) => {
      assert.ok(outcome.ok, JSON.stringify(outcome));
      return JSON.parse(outcome.value);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.dir, { recursive: true });
  }
}

Deno.test("[IM14] [OP3] a folder is imported completely, each file into the table of its name", async () => {
  await using place = new Place();
  const folder = place.write("in", {
    "users.csv": "name\nAnn\n",
    "notes.jsonl": `{"text":"one"}\n{"text":"two","n":2}\n`,
    "_users.jsonl": `{"email":"x"}\n`,
    "readme.txt": "no table",
    ".notes.csv": "text\nhidden\n",
  });
  const { code, out, err } = await place.import(folder);
  assert.equal(code, 0, err);
  assert.equal(out, "notes: 2 documents imported\nusers: 1 document imported\n");
  assert.match(err, /^Checking notes\.jsonl, \d+ bytes$/m, "each step is shown");
  assert.match(err, /^Importing users\.csv, \d+ bytes$/m);
  assert.match(err, /WARN +Skipped _users\.jsonl: system tables cannot be imported/);
  assert.deepEqual(await place.query(["notes:all", {}], ["notes:users", {}]), [["one", "two"], ["Ann"]]);

  const replaced = await place.import(join(folder, "notes.jsonl"), "--mode", "replace");
  assert.equal(replaced.out, "notes: 2 documents imported, 2 deleted first\n");
});

Deno.test("[IM14] nothing of a folder is written if one file has an invalid row", async () => {
  await using place = new Place();
  const folder = place.write("in", { "notes.jsonl": `{"text":"one"}\n`, "users.csv": "name,wrong\nAnn,x\n" });
  const { code, out, err } = await place.import(folder);
  assert.deepEqual([code, out], [1, ""]);
  assert.match(err, /ERROR Nothing was imported\.\n.*ERROR users\.csv: Table "users" has no field "wrong"/);
  assert.deepEqual(place.storedNotes(), []);
});

Deno.test("[IM14] a usage error ends with 2, a failure with 1, each with its reason", async () => {
  await using place = new Place();
  const folder = place.write("in", {
    "notes.txt": `{"text":"one"}\n`,
    "_users.jsonl": "{}\n",
    "nothing.jsonl": "{}\n",
  });
  const twice = place.write("twice", { "notes.csv": "text\n", "notes.jsonl": "" });
  const cases: [string, string[], number, RegExp][] = [
    [join(folder, "notes.txt"), [], 2, /ends neither with \.jsonl nor with \.csv: pass --format/],
    [join(folder, "notes.txt"), ["--format", "xml"], 2, /expected one of jsonl, csv/],
    [join(folder, "notes.txt"), ["--mode", "merge"], 2, /expected one of insert, upsert, replace/],
    [twice, [], 2, /two files for table "notes", notes\.csv and notes\.jsonl/],
    [join(folder, "missing.jsonl"), [], 1, /Cannot import ".*missing\.jsonl": No such file/],
    [place.write("empty", {}), [], 1, /contains no file to import: .*\.jsonl or \.csv/],
    [join(folder, "_users.jsonl"), [], 1, /Cannot import into table "_users"/],
    [join(folder, "nothing.jsonl"), [], 1, /There is no table "nothing"/],
    [
      join(folder, "notes.txt"),
      ["--format", "jsonl", "--functions", join(place.dir, "none")],
      1,
      /functions folder/,
    ],
  ];
  for (const [path, flags, code, message] of cases) {
    const answer = await place.import(path, ...flags);
    assert.match(answer.err, message);
    assert.deepEqual([answer.code, answer.out], [code, ""]);
  }
  assert.equal((await place.import(join(folder, "notes.txt"), "--format", "jsonl")).code, 0);
  assert.equal((await place.import(twice, "--format", "csv")).code, 0);
});

Deno.test("[IM14] while a server uses the data folder no import runs", async () => {
  await using place = new Place();
  const folder = place.write("in", { "notes.jsonl": `{"text":"one"}\n` });
  await using server = await ServerProcess.start({
    dataDir: place.dataDir,
    functions: relative(projectDir, place.functionsDir),
  });
  const { code, err } = await place.import(folder);
  assert.equal(code, 1);
  assert.match(err, /Another server \(process \d+\) is using the data folder/);
  assert.deepEqual(await server.call("query", "notes:all"), []);
});

Deno.test("[IM14] no import runs with a staged restore, which would replace the data", async () => {
  await using place = new Place();
  const { dataDir } = place;
  const folder = place.write("in", { "notes.jsonl": `{"text":"one"}\n` });
  assert.equal((await place.import(folder)).code, 0);
  const archive = join(place.dir, "backup.tar.zst");
  await createBackup({ dataDir, out: archive, withAux: false, withFiles: false, includeSecret: false });
  await stageRestore({ dataDir, archive, source: "backup.tar.zst", withSecret: false });
  const { code, err } = await place.import(folder);
  assert.equal(code, 1);
  assert.match(
    err,
    /A restore of "backup\.tar\.zst" is staged in .*: start the server once, or cancel the restore with/,
  );
  assert.deepEqual(place.storedNotes(), ["one"]);
});

function rowsOf(count: number): string {
  return Array.from({ length: count }, (_, n) => `{"text":"note","n":${n}}\n`).join("");
}

/** Enough that the import is still running after the test process was paused for a moment. */
const LONG_ROWS = 20_000;

/** Starts an import of many rows, and waits until some of them are written and others are not. */
async function startLongImport(place: Place): Promise<Child> {
  const folder = place.write("in", { "notes.jsonl": rowsOf(LONG_ROWS) });
  Deno.mkdirSync(place.dataDir);
  using changes = Deno.watchFs(place.dataDir);
  const program = "run --quiet --no-prompt -P=import cli.ts".split(" ");
  const child = new Child({ args: [...program, ...place.args(folder)] });
  for await (const _ of changes) if (notesIn(place).length > 0) break;
  return child;
}

/** The numbers of the notes that are there. */
function notesIn(place: Place): number[] {
  try {
    using snapshot = openExport(join(place.dataDir, "data.db"));
    return Array.from(snapshot.documents("notes"), (text) => JSON.parse(text).n);
  } catch {
    // The database is still being created.
    return [];
  }
}

Deno.test("[IM8] a signal ends the command after the current batch, and reports the number of imported rows", async () => {
  await retry(async () => {
    await using place = new Place();
    await using child = await startLongImport(place);
    const { code } = await child.stop(HANG_MS);
    if (code === 0) return false;
    assert.equal(code, 1);
    const [, written] = /stopped: (\d+) rows written and kept/.exec(child.lastOutput) ??
      assert.fail(child.lastOutput);
    assert.equal(notesIn(place).length, Number(written));
    return true;
  }, { what: "an import is stopped" });
});

Deno.test("[IM15] kill -9 leaves complete batches, and the import can be repeated", async () => {
  await using place = new Place();
  let left: number[] = [];
  await retry(async () => {
    await Deno.remove(place.dataDir, { recursive: true }).catch(() => {});
    const child = await startLongImport(place);
    await child.kill();
    // Waits for the writer, which ends with the command.
    await place.query();
    left = notesIn(place).sort((a, b) => a - b);
    assert.ok(left.length > 0, "committed rows are missing");
    return left.length < LONG_ROWS;
  }, { what: "an import is killed" });
  assert.equal(left.length % opsLimits.importBatchRowsMax, 0);
  assert.deepEqual(left, Array.from(left, (_, n) => n));
  const few = place.write("in", { "notes.jsonl": rowsOf(100) });
  const again = await place.import(few, "--mode", "replace");
  assert.equal(again.out, `notes: 100 documents imported, ${left.length} deleted first\n`);
});

Deno.test("[IM16] a new data folder accepts ids of one whose tables were created in another order", async () => {
  await using from = new Place();
  from.write("functions", {
    "schema.ts": FILES["schema.ts"].replace("notes:", "more: defineTable({}), notes:"),
  });
  const folder = from.write("in", { "notes.jsonl": `{"text":"a"}\n`, "users.csv": "name\nAnn\n" });
  assert.equal((await from.import(folder)).code, 0);
  const exported = {
    "notes.jsonl": textOf(join(from.dataDir, "data.db"), "jsonl", "notes"),
    "users.jsonl": textOf(join(from.dataDir, "data.db"), "jsonl", "users"),
  };

  await using to = new Place();
  // A broken file does not affect the others, and neither does one with ids of another.
  const copy = to.write("copy", { "more.jsonl": "{", "users.jsonl": exported["notes.jsonl"] });
  assert.equal((await to.import(copy)).code, 1);
  await Deno.remove(to.dataDir, { recursive: true });
  const { code, out, err } = await to.import(to.write("in", exported));
  assert.equal(code, 0, err);
  assert.equal(out, "notes: 1 document imported\nusers: 1 document imported\n");
  assert.deepEqual(await to.query(["notes:all", {}], ["notes:users", {}]), [["a"], ["Ann"]]);
  for (const table of ["notes", "users"] as const) {
    assert.equal(textOf(join(to.dataDir, "data.db"), "jsonl", table), exported[`${table}.jsonl`]);
  }

  await using used = new Place();
  assert.equal((await used.import(folder)).code, 0);
  const refused = await used.import(used.write("in", exported));
  assert.equal(refused.code, 1);
  assert.match(refused.err, /notes\.jsonl, line 1: .* is an id of table "users"/);
});
