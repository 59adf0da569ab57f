/** Counts of index entries, reads of declared aggregates, and inserts into a table with an aggregate beside those without. */
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { type DataModelOf, defineSchema, defineTable, type QueryCtx } from "syncline/server";
import { createTestServer } from "syncline/test";
import { z } from "zod";
import { type BenchContext, benchFunctions } from "../context.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { compare, comparisonRow } from "../support/rounds.ts";
import { seedScores } from "../support/seed.ts";
import { timed, timesOf } from "../support/timed_query.ts";
import type { Row } from "../table.ts";

const MILLION = 1_000_000;
const FILL_COUNT = 10_000;
const READS = 100;
/** Documents of each table before the inserts. */
const STORED = 40_000;
const GAMES = 100;

const schema = defineSchema({
  scores: defineTable({ game: z.string(), points: z.number() })
    .index("by_game", ["game", "points"])
    .aggregate("by_points", { by: ["game", "points"], sum: ["points"] }),
});
type Ctx = QueryCtx<DataModelOf<typeof schema>>;
export async function countingRows(context: BenchContext): Promise<Row[]> {
  return [...await readRows(context), await insertRow(context)];
}

async function readRows(context: BenchContext): Promise<Row[]> {
  const entries = context.full ? MILLION : MILLION / 10;
  await using server = await createTestServer({ modules: { schema: { default: schema }, timed } });
  using bare = new DatabaseSync(join(context.folder(), "control.db"));
  bare.exec("CREATE TABLE entries (key TEXT PRIMARY KEY, rid INTEGER NOT NULL) WITHOUT ROWID");
  const insert = bare.prepare("INSERT INTO entries VALUES (?, ?)");
  for (let from = 0; from < entries; from += FILL_COUNT) {
    bare.exec("BEGIN");
    await server.run(async ({ db }) => {
      for (let n = from; n < from + FILL_COUNT; n++) {
        const points = n * 7_919 % 1_000_003;
        const id = await db.insert("scores", { game: "chess", points });
        insert.run(`chess ${String(points).padStart(12, "0")} ${id}`, n);
      }
    });
    bare.exec("COMMIT");
  }
  const count = bare.prepare("SELECT count(*) FROM entries WHERE key >= 'chess ' AND key < 'chesst'");
  const chess = (ctx: Ctx) => ctx.db.aggregate("scores", "by_points", (q) => q.eq("game", "chess"));
  const middle = (ctx: Ctx) =>
    ctx.db.aggregate("scores", "by_points", (q) => q.eq("game", "chess").gte("points", 500_000));
  const counted = await timesOf(server, {
    count: 1,
    ours: (ctx) => ctx.db.query("scores").withIndex("by_game", (q) => q.eq("game", "chess")).count(),
    bare: () => count.get(),
  });
  const read = await timesOf(server, { count: READS, ours: (ctx) => middle(ctx).sum("points") });
  const position = await timesOf(server, {
    count: READS,
    ours: (ctx) => chess(ctx).at(Math.floor(entries / 3)),
  });
  const perMillion = MILLION / entries;
  const aggregateRow = (name: string, { ours }: { readonly ours: number }): Row => ({
    name,
    measured: `${(1_000 * ours).toFixed(0)} us`,
    control: `${counted.ours.toFixed(1)} ms for a count()`,
    ratio: ours,
    target: { atMost: 0.2 },
    details: { ms: ours },
  });
  return [
    {
      name: `count() of ${entries} index entries, ms for a million`,
      measured: `${counted.ours.toFixed(1)} ms`,
      control: `${counted.bare.toFixed(1)} ms bare node:sqlite`,
      ratio: counted.ours * perMillion,
      target: { atMost: 40 },
      details: { ...counted },
    },
    aggregateRow(`sum of half of an aggregate of ${entries} documents, ms`, read),
    aggregateRow("document at a position of it, ms", position),
  ];
}

async function insertRow(context: BenchContext): Promise<Row> {
  const server = await context.server(benchFunctions);
  const load = context.load();
  await seedScores(server, { count: STORED, games: GAMES });
  const durationMs = context.full ? 3_000 : 1_500;
  const keys = Array.from({ length: GAMES }, (_, n) => `game ${n}`);
  const side = (udfPath: string) => ({
    pid: server.pid,
    work: () => {
      const body = `{"path":"${udfPath}","args":{"game":"{key}","points":{n}}}`;
      return load.run("httpLoop", {
        ...{ port: server.port, clients: 64, durationMs },
        workload: { accounts: 1, alpha: 0, seed: WORKLOAD_SEED },
        calls: { method: "POST", path: "/api/mutation", body, keys, expected: '"status":"success"' },
      });
    },
  });
  const comparison = await compare(context, {
    ours: side("scores:add"),
    control: side("scores:addPlain"),
    operations: ({ answered }) => answered,
  });
  return comparisonRow("inserts with an aggregate, HTTP, 64 x 1, beside those without", comparison, {
    value: ({ perSecond }) => perSecond,
    unit: "/s",
    digits: 0,
    target: { atLeast: 0.85 },
  });
}
