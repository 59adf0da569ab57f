/**
 * Reads with `ctx.db` in a query, beside the same reads on `node:sqlite`: a document by id, a range of 100, all documents in
 * pages, full-text search and vector search.
 */
import { join } from "node:path";
import {
  createApi,
  createFunctions,
  type DataModelOf,
  defineSchema,
  defineTable,
  type QueryCtx,
  type ResultOf,
} from "syncline/server";
import { createTestServer, type TestServer } from "syncline/test";
import { z } from "zod";
import type { BenchContext } from "../context.ts";
import { type Account, BareData } from "../support/bare_data.ts";
import { mulberry32, WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import { timed, type Times, timesOf } from "../support/timed_query.ts";
import type { Row } from "../table.ts";

const NOTES = 100_000;
const WORDS = 5_000;
const DIMENSIONS = 384;
const PAGE = 1_000;

const schema = defineSchema({
  accounts: defineTable({ number: z.number(), name: z.string(), balance: z.number() })
    .index("by_number", ["number"]),
  notes: defineTable({ body: z.string() }).searchIndex("by_body", { searchField: "body" }),
  things: defineTable({ vector: z.array(z.number()) })
    .vectorIndex("by_vector", { vectorField: "vector", dimensions: DIMENSIONS }),
});
type Model = DataModelOf<typeof schema>;
type Ctx = QueryCtx<Model>;
const { query } = createFunctions(schema);

const functions = {
  page: query({
    args: { cursor: z.string().nullable() },
    handler: async (ctx, { cursor }) => {
      const { page, continueCursor, isDone } = await ctx.db.query("accounts").withIndex("by_number")
        .paginate({ cursor, numItems: PAGE });
      return { rows: page.length, continueCursor, isDone };
    },
  }),
};

const { api } = createApi<{ bench: typeof functions }>();

const random = mulberry32(WORKLOAD_SEED);
const below = (end: number) => Math.floor(random() * end);
const word = () => `w${(Math.min(below(WORDS), below(WORDS)) * 7_919 % WORDS).toString(36)}`;
const vector = () => Array.from({ length: DIMENSIONS }, () => below(2_000_001) / 1e6 - 1);

interface Data {
  readonly server: TestServer<Model>;
  readonly bare: BareData;
  readonly accounts: readonly Account[];
}

const us = (ms: number) => `${(ms * 1000).toFixed(1)} us`;

function row(name: string, times: Times, control = "bare node:sqlite"): Row {
  return {
    name,
    measured: us(times.ours),
    control: `${us(times.bare)} ${control}`,
    ratio: times.ours / times.bare,
    target: null,
    details: { oursMs: times.ours, bareMs: times.bare },
  };
}

export async function dataRows(context: BenchContext): Promise<Row[]> {
  await using server = await createTestServer({
    modules: { schema: { default: schema }, bench: functions, timed },
  });
  using bare = new BareData(join(context.folder(), "control.db"));
  const data: Data = { server, bare, accounts: await fillAccounts(server, bare, context.full ? 1e6 : 1e5) };
  const rows = [...await pointAndRange(data), ...await walk(data)];
  await fillNotes(data);
  rows.push(row(
    `search for two words in ${NOTES} documents, first 10`,
    await timesOf(server, {
      count: 20,
      ours: (ctx) =>
        ctx.db.query("notes").withSearchIndex("by_body", (q) => q.search("body", `${word()} ${word()}`)).take(
          10,
        ),
      bare: () => bare.search([word(), word()]),
    }),
    "bare FTS5",
  ));
  rows.push(await nearest(data, context.full ? 100_000 : 10_000));
  return rows;
}

async function pointAndRange(data: Data): Promise<Row[]> {
  const { server, bare, accounts } = data;
  const randomId = () => accounts[below(accounts.length)]?._id ?? "";
  const point = await timesOf(server, {
    count: 2_000,
    ours: (ctx) => ctx.db.get(randomId() as never),
    bare: () => bare.point(randomId()),
  });
  const rangeStart = () => below(accounts.length - 100);
  const range = await timesOf(server, {
    count: 100,
    ours: (ctx) => {
      const first = rangeStart();
      return ctx.db.query("accounts")
        .withIndex("by_number", (q) => q.gte("number", first).lt("number", first + 100)).collect();
    },
    bare: () => {
      const first = rangeStart();
      return bare.range(first, first + 100);
    },
  });
  return [row("document by id", point), row("range of 100 documents", range)];
}

/** Reads all accounts, one page per query. Measures the growth of memory after the first tenth. */
async function walk({ server, bare, accounts }: Data): Promise<Row[]> {
  const start = performance.now();
  let rows = 0;
  let early = 0;
  for (let cursor: string | null = null, isDone = false; !isDone;) {
    const page: ResultOf<typeof api.bench.page> = await server.query(api.bench.page, { cursor });
    rows += page.rows;
    cursor = page.continueCursor;
    isDone = page.isDone;
    if (early === 0 && rows >= accounts.length / 10) early = Deno.memoryUsage().rss;
  }
  const tookMs = performance.now() - start;
  const grownMiB = (Deno.memoryUsage().rss - early) / 2 ** 20;
  if (rows !== accounts.length) {
    throw new Error(`The pages contained ${rows} of ${accounts.length} documents`);
  }
  const bareStart = performance.now();
  for (let after = -1, page = bare.page(after, PAGE); page.length > 0; page = bare.page(after, PAGE)) {
    after = page.at(-1)?.number ?? Infinity;
  }
  const times = { ours: tookMs / rows, bare: (performance.now() - bareStart) / rows };
  return [row(`walk over ${rows} documents in pages of ${PAGE}, each`, times), {
    name: "memory gained by the last nine tenths of that walk",
    measured: `${grownMiB.toFixed(0)} MiB`,
    control: "64 MiB",
    ratio: grownMiB / 64,
    target: { atMost: 1 },
    details: { grownMiB },
  }];
}

async function nearest(data: Data, count: number): Promise<Row> {
  const { server, bare } = data;
  for (let from = 0; from < count; from += 2_000) {
    const vectors = Array.from({ length: 2_000 }, vector);
    bare.addVectors(vectors);
    await server.run(async ({ db }) => {
      for (const vector of vectors) await db.insert("things", { vector });
    });
  }
  const times = await timesOf(server, {
    count: 2,
    ours: (ctx) => ctx.db.vectorSearch("things", "by_vector", { vector: vector(), limit: 10 }),
    bare: () => bare.nearest(vector()),
  });
  return { ...row(`10 nearest of ${count} vectors of ${DIMENSIONS}`, times), target: { atMost: 1 } };
}

async function fillAccounts(
  server: TestServer<Model>,
  bare: BareData,
  count: number,
): Promise<Account[]> {
  const all: Account[] = [];
  for (let from = 0; from < count; from += 10_000) {
    const accounts: Account[] = [];
    await server.run(async ({ db }) => {
      for (let number = from; number < from + 10_000; number++) {
        const fields = { number, name: `account ${number}`, balance: 1e9 };
        accounts.push({ _id: await db.insert("accounts", fields), ...fields });
      }
    });
    bare.addAccounts(accounts);
    all.push(...accounts.map(({ _id, number }) => ({ _id, number })));
  }
  return all;
}

async function fillNotes({ server, bare }: Data): Promise<void> {
  for (let from = 0; from < NOTES; from += 5_000) {
    const bodies = Array.from({ length: 5_000 }, () => Array.from({ length: 12 }, word).join(" "));
    bare.addNotes(bodies);
    await server.run(async ({ db }) => {
      for (const body of bodies) await db.insert("notes", { body });
    });
  }
}
