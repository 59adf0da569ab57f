/** Times what a query does through `ctx.db`, in rounds that alternate with a control. */
import { createApi, createFunctions, type DataModel, defineSchema, type QueryCtx } from "syncline/server";
import type { TestServer } from "syncline/test";
import { z } from "zod";
import { median } from "./statistics.ts";

// Taken before functions run, because time is frozen inside them.
const now = performance.now.bind(performance);

const ROUNDS = 9;

const { query } = createFunctions(defineSchema({}));

/** The work of this round's query. */
let work: (ctx: never) => Promise<unknown> = () => Promise.resolve();

/** The module `timed` of a test server. */
export const timed = {
  // A new argument each time, so that no cached result of an earlier round is returned.
  measure: query({
    args: { round: z.number() },
    handler: async (ctx) => {
      const start = now();
      await work(ctx as never);
      return now() - start;
    },
  }),
};
const { api } = createApi<{ timed: typeof timed }>();

/** Times of one operation in milliseconds. */
export interface Times {
  readonly ours: number;
  readonly bare: number;
}

/** Returns medians of rounds in which each operation runs `count` times. The server has the module `timed`. */
export async function timesOf<Model extends DataModel>(
  server: TestServer<Model>,
  { count, ours, bare = () => {} }: {
    readonly count: number;
    readonly ours: (ctx: QueryCtx<Model>) => Promise<unknown>;
    readonly bare?: () => unknown;
  },
): Promise<Times> {
  const times = { ours: [] as number[], bare: [] as number[] };
  work = async (ctx) => {
    for (let n = 0; n < count; n++) await ours(ctx);
  };
  // The first rounds warm up.
  for (let round = -2; round < ROUNDS; round++) {
    const oursMs = await server.query(api.timed.measure, { round: now() });
    const start = now();
    for (let n = 0; n < count; n++) bare();
    const bareMs = now() - start;
    if (round >= 0) times.ours.push(oursMs / count), times.bare.push(bareMs / count);
  }
  return { ours: median(times.ours), bare: median(times.bare) };
}
