/** The writer when the database fails: nothing of the group is acknowledged, and the calls behind it go on. */
import assert from "node:assert/strict";
import { openReaderDatabase, openWriterDatabase, type WriterDatabase } from "../../../mod/engine/mod.ts";
import { functionSpec, mutation } from "../../../mod/functions/api/registration.ts";
import { schemaDefinition } from "../../../mod/functions/api/schema.ts";
import { FrameSender, parseFrameText } from "../../../mod/functions/frames.ts";
import type { WaitListener } from "../../../mod/kit/wakefulness.ts";
import { ProgressFile } from "../../../mod/functions/isolate/progress.ts";
import { Tables } from "../../../mod/functions/isolate/tables.ts";
import { WriterLoop, type WriterParts } from "../../../mod/functions/isolate/writer_loop.ts";
import { defineSchema, defineTable } from "../../../mod/functions/server_api.ts";
import type { Committing, Group } from "../../../mod/functions/wire.ts";
import { z } from "zod";
import { call } from "./support.ts";

/** A sender that keeps what is sent. */
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

/** A sender that notes the type of what is sent among other events. */
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

/** The database with a method that fails so many times, after it has worked so many times. */
function failing(
  database: WriterDatabase,
  method: "closeEmptyGroup" | "commitGroup" | "openGroup" | "saveRecord",
  times: number,
  { after = 0 }: { readonly after?: number } = {},
): WriterDatabase {
  return new Proxy(database, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key === method && after-- <= 0 && times-- > 0) {
        return () => {
          throw new Error("database or disk is full");
        };
      }
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const emptyDatabase = () => {
  const dir = Deno.makeTempDirSync();
  const opened = new DisposableStack();
  opened.defer(() => Deno.removeSync(dir, { recursive: true }));
  const path = `${dir}/data.db`;
  const database = opened.use(openWriterDatabase(path));
  database.applySchema(schema);
  const progress = opened.use(new ProgressFile(`${dir}/progress`));
  const app = {
    functions: new Map([["add", { udfPath: "add", spec: add, system: false }]]),
    tables: new Tables({ app: schema, system: new Map() }),
  };
  const fail = (error: unknown) => assert.fail(String(error));
  return { app, database, path, progress, fail, [Symbol.dispose]: () => opened.dispose() };
};

const mutations = (count: number, firstRequestId = 0) =>
  Array.from({ length: count }, (_, i) => ({
    ...call("add", { text: "x" }),
    replay: { sessionId: "6f1f3c9e-0000-4000-8000-000000000001", requestId: firstRequestId + i },
  }));

const TOLD: ReadonlySet<string | symbol> = new Set(["openGroup", "closeEmptyGroup", "commitGroup", "tend"]);

/** The database, with what happens to its groups told. */
function told(database: WriterDatabase, events: string[]): WriterDatabase {
  return new Proxy(database, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const result: unknown = Reflect.apply(value, target, args);
        if (TOLD.has(key)) events.push(String(key));
        return result;
      };
    },
  });
}

Deno.test("that a batch is about to end is said before its commit, its answers leave before the database is tended", async () => {
  using parts = emptyDatabase();
  const events: string[] = [];
  const database = told(parts.database, events);
  for (
    const [count, expected] of [[3, ["openGroup", "Committing", "commitGroup", "Group", "tend"]], [1, [
      "openGroup",
      "commitGroup",
      "Group",
      "tend",
    ]]] as const
  ) {
    await new WriterLoop({ ...parts, database, sender: new NotedFrames(events) }).run({
      type: "Batch",
      batch: `b${count}`,
      calls: mutations(count),
    });
    assert.deepEqual(events.splice(0), expected);
  }
});

Deno.test("the wait for the next batch is over with it, and begins when a lone call has been answered", async () => {
  using parts = emptyDatabase();
  const events: string[] = [];
  const untilNext = { wait: () => void events.push("wait"), over: () => void events.push("over") };
  const writer = new WriterLoop({ ...parts, sender: new NotedFrames(events), untilNext });
  await writer.run({ type: "Batch", batch: "b1", calls: mutations(1) });
  assert.deepEqual(events.splice(0), ["over", "Group", "wait"]);
  await writer.run({ type: "Batch", batch: "b2", calls: mutations(3) });
  assert.deepEqual(events, ["over", "Committing", "Group"]);
});

/** A writer whose waits are spent awake: what `listener` is told is for the test to say. */
function wakefulWriter(parts: Omit<WriterParts, "sender">) {
  const sender = new KeptFrames();
  const world = { listener: null as WaitListener | null };
  const untilNext = {
    wait: (listener?: WaitListener | null) => {
      world.listener = listener ?? null;
    },
    over: () => {},
  };
  const writer = new WriterLoop({ ...parts, sender, untilNext });
  let batches = 0;
  let requests = 0;
  /** Runs so many new mutations and gives back the ts of those that succeeded, `null` for the others. */
  const run = async (count: number): Promise<(number | null)[]> => {
    world.listener = null;
    const calls = mutations(count, requests);
    requests += count;
    await writer.run({ type: "Batch", batch: `b${++batches}`, calls });
    const answers = sender.groups.splice(0).flatMap((group) => group.answers);
    return answers.map(([ts, result, , replayed]) => {
      assert.ok(!replayed);
      return typeof result === "number" ? ts : null;
    });
  };
  return Object.assign(world, { run });
}

Deno.test("the next group is open while a lone caller is awaited awake, and no longer than that", async () => {
  using parts = emptyDatabase();
  const events: string[] = [];
  const world = wakefulWriter({ ...parts, database: told(parts.database, events) });
  assert.deepEqual(await world.run(1), [1]);
  assert.deepEqual(events.splice(0), ["openGroup", "commitGroup", "tend"]);
  world.listener?.begun();
  assert.deepEqual(events.splice(0), ["openGroup"]);
  assert.deepEqual(await world.run(1), [2]);
  assert.deepEqual(events.splice(0), ["commitGroup", "tend"]);
  world.listener?.begun();
  world.listener?.long();
  assert.deepEqual(events.splice(0), ["openGroup", "closeEmptyGroup"]);
  assert.deepEqual(await world.run(1), [3]);
  assert.deepEqual(events.splice(0), ["openGroup", "commitGroup", "tend"]);
  world.listener?.begun();
  events.length = 0;
  assert.deepEqual(await world.run(3), [4, 5, 6]);
  assert.deepEqual(events.splice(0), ["commitGroup", "tend"]);
  assert.equal(world.listener, null, "after several calls nobody is awaited awake");
  assert.deepEqual(await world.run(1), [7]);
});

Deno.test("readers see what a group opened ahead has committed, while the next one is open already", async () => {
  using parts = emptyDatabase();
  const world = wakefulWriter(parts);
  await world.run(1);
  world.listener?.begun();
  await world.run(1);
  world.listener?.begun();
  using reader = openReaderDatabase(parts.path);
  assert.equal(reader.openSnapshot(), 2);
});

Deno.test("a group that cannot be opened ahead costs nobody an answer", async () => {
  using parts = emptyDatabase();
  const world = wakefulWriter({ ...parts, database: failing(parts.database, "openGroup", 1, { after: 1 }) });
  assert.deepEqual(await world.run(1), [1]);
  world.listener?.begun();
  world.listener?.long();
  assert.deepEqual(await world.run(1), [2]);
});

Deno.test("a group opened ahead that fails is undone, and the next one is opened anew", async () => {
  using parts = emptyDatabase();
  const world = wakefulWriter({
    ...parts,
    database: failing(parts.database, "commitGroup", 1, { after: 1 }),
  });
  assert.deepEqual(await world.run(1), [1]);
  world.listener?.begun();
  assert.deepEqual(await world.run(2), [null, null]);
  assert.deepEqual(await world.run(2), [2, 3]);
});

Deno.test("a group opened ahead that cannot be closed ends the isolate", async () => {
  using parts = emptyDatabase();
  const failures: unknown[] = [];
  const world = wakefulWriter({
    ...parts,
    database: failing(parts.database, "closeEmptyGroup", 1),
    fail: (error) => failures.push(error),
  });
  await world.run(1);
  world.listener?.begun();
  assert.deepEqual(failures, []);
  world.listener?.long();
  assert.match(String(failures), /full/);
});

Deno.test("a batch has ended when its answers have left, not before", async () => {
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
  const run = new WriterLoop({ ...parts, sender }).run({ type: "Batch", batch: "b", calls: mutations(2) })
    .then(() => ended = true);
  while (sender.groups.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, 10));
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
    await new WriterLoop({ ...parts, database: failing(database, method, 1) }).run({
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
    await new WriterLoop({ ...parts, database }).run({ type: "Batch", batch: "b2", calls: mutations(3) });
    const again = sender.groups.flatMap(({ answers }) => answers);
    assert.deepEqual(again.map(([, , , replayed = false]) => replayed), [
      ...answers.map(() => false),
      ...served.map(() => true),
    ]);
  });
}
