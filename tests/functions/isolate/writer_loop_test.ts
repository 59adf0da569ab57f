/** The writer when the database fails: nothing of the group is acknowledged, and the calls behind it continue. */
import assert from "node:assert/strict";
import { openWriterDatabase, type WriterDatabase, type WriterOptions } from "../../../mod/engine/mod.ts";
import { functionSpec, mutation } from "../../../mod/functions/api/registration.ts";
import { schemaDefinition } from "../../../mod/functions/api/schema.ts";
import { FrameSender, parseFrameText } from "../../../mod/functions/wire/segment_frames.ts";
import { ProgressFile } from "../../../mod/functions/wire/progress_file.ts";
import { AppTables } from "../../../mod/functions/isolate/app/app_tables.ts";
import { RowRefusedError } from "../../../mod/functions/isolate/runs/append_row.ts";
import { runBatch } from "../../../mod/functions/isolate/runs/writer_loop.ts";
import { defineSchema, defineTable } from "../../../mod/functions/api/mod.ts";
import type { Batch, Committing, Group } from "../../../mod/functions/wire/messages.ts";
import { z } from "zod";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { call } from "./support.ts";
import { pause, until } from "../../support/waiting.ts";

/** A sender that stores its messages. */
class KeptFrames extends FrameSender {
  readonly groups: Group[] = [];

  constructor() {
    super({ write: () => assert.fail() } as unknown as Deno.Conn);
  }

  override sendText(text: string): Promise<void> {
    const { message } = parseFrameText<Group | Committing>(text);
    if (message.type === "Group") this.groups.push(message);
    return Promise.resolve();
  }
}

/** A sender that records the types of its messages among other events. */
class NotedFrames extends KeptFrames {
  readonly #events: string[];

  constructor(events: string[]) {
    super();
    this.#events = events;
  }

  override sendText(text: string): Promise<void> {
    this.#events.push(parseFrameText<Group | Committing>(text).message.type);
    return super.sendText(text);
  }
}

const schema = schemaDefinition(defineSchema({ notes: defineTable({ text: z.string() }) })) ?? assert.fail();
const add = functionSpec(mutation({
  handler: (ctx, { text }) => ctx.db.insert("notes", { text }),
})) ?? assert.fail();

/** The database with one method replaced. */
function failing(
  database: WriterDatabase,
  method: "commitGroup" | "openGroup" | "saveRecord",
  times: number,
): WriterDatabase {
  return new Proxy(database, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key === method && times-- > 0) {
        return () => {
          throw Object.assign(new Error("database or disk is full"), {
            code: "ERR_SQLITE_ERROR",
            errcode: 13,
          });
        };
      }
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Time is frozen, so that a slow machine does not split batches. */
const frozenTime = () => 0;

const emptyDatabase = (journal?: WriterOptions["journal"]) => {
  const dir = Deno.makeTempDirSync();
  const opened = new DisposableStack();
  opened.defer(() => Deno.removeSync(dir, { recursive: true }));
  const database = opened.use(openWriterDatabase(`${dir}/data.db`, journal && { journal }));
  database.applySchema(schema);
  const progress = opened.use(new ProgressFile(`${dir}/progress`));
  const app = {
    functions: new Map([["add", { udfPath: "add", spec: add, system: false }]]),
    tables: new AppTables({ app: schema, system: new Map() }),
  };
  return { app, database, progress, monotonicNow: frozenTime, [Symbol.dispose]: () => opened.dispose() };
};

const mutations = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({
    ...call("add", { text: "x" }),
    replay: { sessionId: "6f1f3c9e-0000-4000-8000-000000000001", requestId: from + at },
  }));

/** The database, with a record of what happens to its groups. */
function received(database: WriterDatabase, events: string[]): WriterDatabase {
  return new Proxy(database, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const result: unknown = Reflect.apply(value, target, args);
        if (key === "commitGroup" || key === "maintain") events.push(key);
        return result;
      };
    },
  });
}

Deno.test("the end of a batch is announced before its commit, and its responses are sent before database maintenance", async () => {
  using parts = emptyDatabase();
  const events: string[] = [];
  const database = received(parts.database, events);
  for (
    const [count, expected] of [[3, ["Committing", "commitGroup", "Group", "maintain"]], [1, [
      "commitGroup",
      "Group",
      "maintain",
    ]]] as const
  ) {
    await runBatch({ ...parts, database, sender: new NotedFrames(events) }, {
      type: "Batch",
      batch: `b${count}`,
      calls: mutations(count),
    });
    assert.deepEqual(events.splice(0), expected);
  }
});

/** A database with a mutation `slow` that takes as long as a group may. */
function slowDatabase() {
  const opened = emptyDatabase();
  let time = 0;
  const slow = functionSpec(mutation({
    handler: () => {
      time += isolateLimits.batchSliceMs;
      return Promise.resolve(null);
    },
  })) ?? assert.fail();
  opened.app.functions.set("slow", { udfPath: "slow", spec: slow, system: false });
  return { ...opened, monotonicNow: () => time };
}

Deno.test("a batch that takes long is committed in several groups, and its end is announced once", async () => {
  using parts = slowDatabase();
  const events: string[] = [];
  const database = received(parts.database, events);
  await runBatch({ ...parts, database, sender: new NotedFrames(events) }, {
    type: "Batch",
    batch: "b",
    calls: [call("slow", {}), ...mutations(2)],
  });
  const group = ["commitGroup", "Group", "maintain"];
  assert.deepEqual(events, [...group, "Committing", ...group]);
});

Deno.test("a batch that takes too long ends, and its remaining calls are not answered", async () => {
  using parts = slowDatabase();
  const sender = new KeptFrames();
  const calls = Array.from({ length: 4 }, () => call("slow", {}));
  await runBatch({ ...parts, sender }, { type: "Batch", batch: "b", calls });
  assert.deepEqual(sender.groups.map(({ answers, ends = false }) => [answers.length, ends]), [[1, false], [
    1,
    true,
  ]]);
});

Deno.test("the wait for the next batch ends with it, and starts when a lone call has been answered", async () => {
  using parts = emptyDatabase();
  const events: string[] = [];
  const untilNext = { waitStarted: () => events.push("wait"), waitEnded: () => events.push("over") };
  const work = { ...parts, sender: new NotedFrames(events), untilNext };
  await runBatch(work, { type: "Batch", batch: "b1", calls: mutations(1) });
  assert.deepEqual(events.splice(0), ["over", "Group", "wait"]);
  await runBatch(work, { type: "Batch", batch: "b2", calls: mutations(3) });
  assert.deepEqual(events, ["over", "Committing", "Group"]);
});

Deno.test("a batch ends when its responses have been sent", async () => {
  using parts = emptyDatabase();
  const left = Promise.withResolvers<void>();
  class Slow extends KeptFrames {
    override sendText(text: string): Promise<void> {
      super.sendText(text);
      return left.promise;
    }
  }
  let ended = false;
  const sender = new Slow();
  const run = runBatch({ ...parts, sender }, { type: "Batch", batch: "b", calls: mutations(2) }).then(() =>
    ended = true
  );
  await until(() => sender.groups.length !== 0);
  await pause(10);
  assert.equal(ended, false);
  left.resolve();
  await run;
});

for (const method of ["commitGroup", "openGroup", "saveRecord"] as const) {
  Deno.test(`when ${method} fails, the group's calls fail and the next ones are served`, async () => {
    using opened = emptyDatabase();
    const { database } = opened;
    const sender = new KeptFrames();
    const parts = { ...opened, sender };
    await runBatch({ ...parts, database: failing(database, method, 1) }, {
      type: "Batch",
      batch: "b1",
      calls: mutations(3),
    });
    const [failed, ...rest] = sender.groups;
    const answers = failed?.answers ?? [];
    assert.equal(answers.length, method === "saveRecord" ? 1 : 3);
    for (const [, result, , replayed] of answers) {
      assert.ok(typeof result === "object");
      assert.deepEqual(
        [result.kind, result.message, replayed],
        ["internal", "The database could not commit: database or disk is full", undefined],
      );
    }
    assert.deepEqual([failed?.entries, failed?.ts], [[], 0]);
    const served = rest.flatMap(({ answers }) => answers);
    assert.equal(answers.length + served.length, 3);
    assert.ok(served.every(([, result]) => typeof result === "number"));
    assert.equal(database.ts, served.length);
    // The failed calls left no record: sent again they run.
    sender.groups.length = 0;
    await runBatch({ ...parts, database }, { type: "Batch", batch: "b2", calls: mutations(3) });
    const again = sender.groups.flatMap(({ answers }) => answers);
    assert.deepEqual(again.map(([, , , replayed = false]) => replayed), [
      ...answers.map(() => false),
      ...served.map(() => true),
    ]);
  });
}

Deno.test("[RP8] if copying the log frees space, the calls run once more, and the journal and its generation remain", async () => {
  using opened = emptyDatabase({ pendingBytesMax: 2 ** 30 });
  const { database } = opened;
  const sender = new KeptFrames();
  await runBatch({ ...opened, sender }, { type: "Batch", batch: "b1", calls: mutations(3) });
  const { generation, seq = NaN } = database.history ?? {};
  const once = failing(database, "commitGroup", 1);
  await runBatch({ ...opened, database: once, sender }, {
    type: "Batch",
    batch: "b2",
    calls: mutations(3, 3),
  });
  const answers = sender.groups.flatMap(({ answers }) => answers);
  assert.deepEqual(answers.map(([, result]) => typeof result), Array(6).fill("number"));
  assert.equal(database.ts, 6);
  assert.equal(database.history?.generation, generation);
  assert.ok((database.history?.seq ?? NaN) > seq);
  // Where the disk stays full the calls fail, and what little waits is not dropped for that.
  const never = failing(database, "commitGroup", Infinity);
  await runBatch({ ...opened, database: never, sender }, {
    type: "Batch",
    batch: "b3",
    calls: mutations(1, 6),
  });
  const [failed] = sender.groups.at(-1)?.answers ?? [];
  assert.match(JSON.stringify(failed), /could not commit: database or disk is full/);
  assert.deepEqual([database.ts, database.history?.generation], [6, generation]);
});

Deno.test("[RP8] calls for which a journal left no disk space run once more when it was dropped, and are answered once", async () => {
  const dir = Deno.makeTempDirSync();
  using opened = new DisposableStack();
  opened.defer(() => Deno.removeSync(dir, { recursive: true }));
  const database = opened.use(openWriterDatabase(`${dir}/data.db`, {
    journal: { pendingBytesMax: 2 ** 20 },
    pagesMax: 120,
  }));
  database.applySchema(schema);
  const progress = opened.use(new ProgressFile(`${dir}/progress`));
  const put = functionSpec(mutation({
    handler: async (ctx, { text }) => {
      const [note] = await ctx.db.query("notes").take(1);
      if (note === undefined) await ctx.db.insert("notes", { text });
      else await ctx.db.patch(note._id, { text });
      return String(text).length;
    },
  })) ?? assert.fail();
  const events: string[] = [];
  const sender = new NotedFrames(events);
  const app = {
    functions: new Map([["put", { udfPath: "put", spec: put, system: false }]]),
    tables: new AppTables({ app: schema, system: new Map() }),
  };
  const { generation } = database.history ?? {};
  let calls = 0;
  for (let batch = 0; batch < 100; batch++) {
    events.length = 0;
    await runBatch({ app, database, progress, sender, monotonicNow: frozenTime }, {
      type: "Batch",
      batch: `b${batch}`,
      calls: Array.from({ length: 3 }, () => call("put", { text: `${calls++} ${"y".repeat(2_000)}` })),
    });
    assert.equal(events.filter((event) => event === "Committing").length, 1);
  }
  const answers = sender.groups.flatMap(({ answers }) => answers);
  assert.equal(answers.length, calls);
  assert.ok(answers.every(([, result]) => typeof result === "number"), "none has failed");
  assert.equal(database.ts, calls);
  assert.notEqual(database.history?.generation, generation);
  assert.equal(database.history?.reason, "overflow");
});

Deno.test("[PG1] a group whose row was appended but cannot be committed is not answered, and ends the isolate", async () => {
  using opened = emptyDatabase();
  const row = { seq: 1, tsBefore: 0, ts: 1, at: 1, sum: "sum", body: "" };
  const sender = new KeptFrames();
  const appended: unknown[] = [];
  const given = new Proxy(failing(opened.database, "commitGroup", 1), {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key !== "prepareCommit" || typeof value !== "function") return value;
      return (text: string) => {
        Reflect.apply(value, target, [text]);
        return row;
      };
    },
  });
  const batch = { type: "Batch", batch: "b1", calls: mutations(2) } as const;
  const append = (row: unknown) => Promise.resolve(void appended.push(row));
  await assert.rejects(
    runBatch({ ...opened, database: given, sender, append }, batch),
    /database or disk is full/,
  );
  assert.deepEqual(appended, [row]);
  assert.deepEqual(sender.groups, [], "nothing is reported without an effect");
});

Deno.test("[PG26] a group without writes is answered when this server is sure to lead, recorded responses immediately", async () => {
  using opened = emptyDatabase();
  const sender = new KeptFrames();
  const nothing = functionSpec(mutation({ handler: () => Promise.resolve("read") })) ?? assert.fail();
  const app = {
    ...opened.app,
    functions: new Map([...opened.app.functions, ["read", {
      udfPath: "read",
      spec: nothing,
      system: false,
    }]]),
  };
  const rows: unknown[] = [];
  let leads = true;
  const append = (row: unknown) => {
    rows.push(row);
    return leads
      ? Promise.resolve()
      : Promise.reject(new RowRefusedError({ message: "not the leader", known: true }));
  };
  const run = async (batch: string, ...calls: Batch["calls"]) => {
    await runBatch({ ...opened, app, sender, append }, { type: "Batch", batch, calls });
    return sender.groups.at(-1)?.answers.map(([, result, , replayed]) =>
      typeof result === "number" ? replayed ?? false : result.data?.code
    );
  };
  const [named] = mutations(1);
  assert.ok(named !== undefined);
  assert.deepEqual(await run("b1", named), [false]);
  rows.length = 0;
  assert.deepEqual(await run("b2", call("read", {})), [false]);
  assert.deepEqual(rows, [null]);
  assert.deepEqual(await run("b3", named), [true]);
  assert.deepEqual(rows, [null], "records are valid under any leader");
  leads = false;
  // The one that was committed when it was sent before has not failed.
  assert.deepEqual(await run("b4", named, call("read", {})), [true, "unavailable"]);
  assert.deepEqual(await run("b5", call("add", { text: "x" }), named), ["unavailable", true]);
});
