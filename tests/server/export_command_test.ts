/** The command `export` for operators: real processes, their output, exit codes and files. */
import assert from "node:assert/strict";
import { join, relative } from "node:path";
import { programModule, projectDir } from "../support/processes/program_module.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { Commands, type Ran } from "../support/commands.ts";
import { until } from "../support/waiting.ts";

const ACCOUNTS = 20;
const SUM = ACCOUNTS * 1_000;

const commands = { export: Commands.with("export"), import: Commands.with("import") };

const FILES = {
  "schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    const account = () => defineTable({ n: z.int(), amount: z.int() }).index("by_n", ["n"]);
    export default defineSchema({
      left: account(),
      right: account(),
      kinds: defineTable({
        text: z.string(),
        maybe: z.string().optional(),
        nullable: z.string().nullable(),
        n: z.number(),
        count: z.number().optional(),
        on: z.boolean(),
        list: z.array(z.union([z.string(), z.number(), z.null()])),
        inner: z.object({ a: z.number().nullable(), b: z.string().optional() }),
      }),
    });`,
  "bank.ts": `
    import { untypedMutation } from "syncline/server";
    import { z } from "zod";
    export const open = untypedMutation(async (ctx) => {
      for (let n = 0; n < ${ACCOUNTS}; n++) {
        await ctx.db.insert("left", { n, amount: 1000 });
        await ctx.db.insert("right", { n, amount: 0 });
      }
    });
    const at = (ctx, table, n) => ctx.db.query(table).withIndex("by_n", (q) => q.eq("n", n)).unique();
    export const move = untypedMutation({
      args: { n: z.int(), by: z.int() },
      handler: async (ctx, { n, by }) => {
        const [from, to] = [await at(ctx, "left", n), await at(ctx, "right", n)];
        await ctx.db.patch(from._id, { amount: from.amount - by });
        await ctx.db.patch(to._id, { amount: to.amount + by });
      },
    });
    export const kinds = untypedMutation({
      args: { docs: z.array(z.any()) },
      handler: async (ctx, { docs }) => { for (const doc of docs) await ctx.db.insert("kinds", doc); },
    });`,
};

class Place implements AsyncDisposable {
  readonly dir = Deno.makeTempDirSync();
  readonly dataDir = join(this.dir, "data");
  readonly functionsDir = join(this.dir, "functions");

  constructor() {
    Deno.mkdirSync(this.functionsDir);
    for (const [name, text] of Object.entries(FILES)) {
      Deno.writeTextFileSync(join(this.functionsDir, name), text);
    }
  }

  serve(): Promise<ServerProcess> {
    return ServerProcess.start({ dataDir: this.dataDir, functions: relative(projectDir, this.functionsDir) });
  }

  /** Returns a path in the folder. */
  at(...names: string[]): string {
    return join(this.dir, ...names);
  }

  run(command: "export" | "import", ...args: string[]): Promise<Ran> {
    return commands[command].run([command, "--data", this.dataDir, ...args], { cwd: this.dir });
  }

  async export(...args: string[]): Promise<string> {
    const { code, out, err } = await this.run("export", ...args);
    assert.equal(code, 0, err);
    assert.match(err, /^Exporting \w+(?:, \d+ documents)?$/m, "each step is shown");
    return out;
  }

  /** The amounts in an exported table. */
  sum(folder: string, table: string): number {
    const text = Deno.readTextFileSync(this.at(folder, `${table}.jsonl`));
    return text.trimEnd().split("\n").reduce((sum, line) => sum + JSON.parse(line).amount, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.dir, { recursive: true });
  }
}

Deno.test("[EX1] [EX14] an export from a server with continuous writes preserves its invariant, and the writes continue", async () => {
  await using place = new Place();
  await using server = await place.serve();
  await server.call("mutation", "bank:open");
  let moves = 0;
  let ended = false;
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = writer; !ended; n += 4) {
      await server.call("mutation", "bank:move", { n: n % ACCOUNTS, by: 1 });
      moves++;
    }
  });
  try {
    await until(() => moves > 0);
    const seen = new Set<number>();
    let goOn = false;
    // On a busy machine, more rounds until one has a write, and another one exports it.
    for (let round = 0; round < 4 || (round < 20 && !(goOn && seen.size > 1)); round++) {
      const before = moves;
      const out = await place.export("--out", place.at(`out${round}`), "--tables", "right,left");
      assert.match(
        out,
        /^right: 20 documents in right\.jsonl\nleft: 20 documents in left\.jsonl\nExported to ".*", as of ts \d+\n$/,
      );
      const [left, right] = [place.sum(`out${round}`, "left"), place.sum(`out${round}`, "right")];
      assert.equal(left + right, SUM);
      seen.add(right);
      goOn ||= moves > before;
    }
    assert.ok(goOn, "no write went through during an export");
    assert.ok(seen.size > 1, "the exports are all of one moment");
  } finally {
    ended = true;
    await Promise.all(writers);
  }
});

Deno.test("[EX14] after a kill -9, with no server running, acknowledged data are exported, to a folder named by the time", async () => {
  await using place = new Place();
  {
    await using server = await place.serve();
    await server.call("mutation", "bank:open");
    await server.call("mutation", "bank:move", { n: 3, by: 700 });
    await server.kill();
  }
  const out = await place.export("--format", "csv");
  const folder = /Exported to "(.*)", as of ts \d+\n$/.exec(out)?.[1] ?? "";
  assert.match(folder, /[/\\]export-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/);
  assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name).sort(), [
    "kinds.csv",
    "left.csv",
    "right.csv",
  ]);
  assert.match(
    Deno.readTextFileSync(join(folder, "left.csv")),
    /^_id,_creationTime,n,amount\r\n(.*\r\n){3}.*,3,300\r\n/,
  );
  // The folder is free again: a server starts.
  await using server = await place.serve();
  await server.call("mutation", "bank:move", { n: 3, by: 1 });
});

Deno.test("[EX6] [EX7] [EX14] a failed export ends with 1 and its reason, a usage error with 2", async () => {
  await using place = new Place();
  const missing = await place.run("export", "--out", place.at("out"));
  assert.equal(missing.code, 1);
  assert.match(missing.err, /Data folder ".*data" does not exist: pass the server's data folder with --data/);
  await Deno.mkdir(place.dataDir);
  const empty = await place.run("export", "--out", place.at("out"), "--with-files");
  assert.equal(empty.code, 1);
  assert.match(empty.err, /Folder ".*data" contains no database/);
  assert.deepEqual([...Deno.readDirSync(place.dataDir)], [], "something was left in a folder of others");
  {
    await using server = await place.serve();
    await server.call("mutation", "bank:open");
  }
  await Deno.mkdir(place.at("full"));
  await Deno.writeTextFile(place.at("full", "file"), "");
  for (
    const [args, code, message] of [
      [
        ["--tables", "left,_passwords"],
        1,
        /Cannot export table "_passwords": not found\. Available tables: kinds, left, right, _scheduled_functions, _users/,
      ],
      [["--tables", ","], 2, /expected table names/],
      [["--format", "xml"], 2, /expected one of jsonl, csv/],
      [["--out", "/dev/full"], 1, /Cannot write "\/dev\/full": this process has no permission to use it/],
      [["--out", "/proc/x"], 1, /Cannot write "\/proc\/x": this process has no permission to use it/],
      [["--out", place.at("full")], 1, /it is not empty and contains "file"/],
    ] as const
  ) {
    const { code: ended, out, err } = await place.run("export", "--out", place.at("out"), ...args);
    assert.deepEqual([ended, out], [code, ""], err);
    assert.match(err, message);
  }
  assert.deepEqual([...Deno.readDirSync(place.dir)].map(({ name }) => name).sort(), [
    "data",
    "full",
    "functions",
  ]);
});

Deno.test("[EX7] a full disk ends the export with its reason, and leaves nothing behind", async () => {
  await using place = new Place();
  {
    await using server = await place.serve();
    const kind = { nullable: null, n: 0, on: false, list: [], inner: { a: null } };
    await server.call("mutation", "bank:kinds", {
      docs: Array.from({ length: 9 }, () => ({ ...kind, text: "x".repeat(500_000) })),
    });
  }
  // No file may grow past 1 MiB: a failing write is reported like a full disk.
  const command = 'trap \'\' XFSZ; ulimit -f 2048; exec "$0" "$@"';
  const { code, stderr } = await new Deno.Command("sh", {
    args: [
      ...[
        "-c",
        command,
        Deno.execPath(),
        "run",
        "--quiet",
        "--no-prompt",
        "-P=export",
        programModule("cli.ts"),
      ],
      ...["export", "--data", place.dataDir, "--out", place.at("out")],
    ],
    cwd: place.dir,
    env: { NO_COLOR: "1" },
  }).output();
  assert.equal(code, 1);
  assert.match(new TextDecoder().decode(stderr), /ERROR Cannot write ".*kinds\.jsonl.*": File too large/);
  assert.deepEqual([...Deno.readDirSync(place.dir)].map(({ name }) => name).sort(), ["data", "functions"]);
});

Deno.test("[EX15] [OP3] documents that were exported and imported again are the same, in both formats", async () => {
  await using place = new Place();
  const plain = { text: "", nullable: null, n: 0, on: false, list: [], inner: { a: null } };
  {
    await using server = await place.serve();
    await server.call("mutation", "bank:open");
    await server.call("mutation", "bank:kinds", {
      docs: [
        plain,
        {
          ...plain,
          text: 'say "hi", \r\n=1+1\n\0',
          maybe: "42",
          nullable: "null",
          n: 42,
          count: 0.1,
          on: true,
        },
        {
          ...plain,
          text: "42",
          n: 1e300,
          count: -1.5e-7,
          list: ["42", 42, null, "a,b\n"],
          inner: { a: 1, b: "" },
        },
        { ...plain, text: " é🦀\ufeff", maybe: " ", nullable: "[]", inner: { a: 2, b: "\ud800" } },
      ],
    });
  }
  await place.export("--out", place.at("before"));
  for (const format of ["csv", "jsonl"]) {
    await place.export("--out", place.at(format), "--format", format);
    const { code, err } = await place.run(
      "import",
      place.at(format),
      ...["--functions", place.functionsDir, "--mode", "replace"],
    );
    assert.equal(code, 0, err);
    await place.export("--out", place.at(`after-${format}`));
    for (const table of ["kinds", "left", "right"]) {
      assert.equal(
        await Deno.readTextFile(place.at(`after-${format}`, `${table}.jsonl`)),
        await Deno.readTextFile(place.at("before", `${table}.jsonl`)),
        `${table} by way of ${format}`,
      );
    }
  }
});
