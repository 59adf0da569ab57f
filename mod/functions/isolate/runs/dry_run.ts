/** Warms up a waiting writer with mutations on an in-memory database: the first ones take several times as long. */
import { z } from "zod";
import { openWriterDatabase } from "../../../engine/mod.ts";
import { anonymous } from "../../identity.ts";
import { untypedMutation } from "../../api/registration.ts";
import { defineSchema, defineTable } from "../../api/schema.ts";
import { assembleApp } from "../app/loader.ts";
import { runBatch } from "./writer_loop.ts";

const ROUNDS = 3;
const CALLS = 4;
/** Journal size limit. The journal is never shipped. */
const JOURNAL_BYTES = 2 ** 20;

const modules = () => [
  {
    name: "schema.ts",
    modulePath: "schema",
    exports: {
      default: defineSchema({
        counters: defineTable({ name: z.string(), count: z.number() }).index("by_name", ["name"]),
      }),
    },
  },
  {
    name: "dry.ts",
    modulePath: "dry",
    exports: {
      count: untypedMutation({
        args: { name: z.string() },
        handler: async ({ db }, { name }) => {
          const counters = db.query("counters");
          const known = await counters.withIndex("by_name", (q) => q.eq("name", name)).unique();
          const id = known?._id ?? await db.insert("counters", { name, count: 0 });
          const count = Number((await db.get(id))?.["count"] ?? 0) + 1;
          await db.patch(id, { count });
          const all = await db.query("counters").collect();
          return { count, all: all.length };
        },
      }),
    },
  },
];

/** Runs the warm-up and returns the responses. Leaves no state behind. */
export async function dryRun(): Promise<readonly string[]> {
  const app = assembleApp(modules(), { systemModules: [], named: [] });
  using database = openWriterDatabase(":memory:", {
    journal: { pendingBytesMax: JOURNAL_BYTES },
  });
  database.applySchema(app.schema);
  const sent: string[] = [];
  const sender = {
    send: () => Promise.resolve(),
    sendText: (text: string) => Promise.resolve(void sent.push(text)),
  };
  const progress = { storing() {}, idle() {}, begin: () => Date.now() };
  for (let round = 0; round < ROUNDS; round++) {
    const calls = Array.from({ length: CALLS }, (_, n) => ({
      udfPath: "dry:count",
      args: { name: `counter ${n}` },
      identity: anonymous,
      origin: "client" as const,
      replay: { sessionId: "dry", requestId: round * CALLS + n },
    }));
    await runBatch({ app, database, progress, sender }, { type: "Batch", batch: `dry-${round}`, calls });
  }
  return sent;
}
