/** Measures operations of a query on `ctx.db` in rounds that alternate with a control. */
import { createApi, createFunctions, type DataModel, defineSchema, type QueryCtx } from "syncline/server";
import type { TestServer } from "syncline/test";
import { z } from "zod";
import { median } from "./statistics.ts";

// Captured here, because time is frozen inside functions.
const now = performance.now.bind(performance);

const ROUNDS = 9;

const { query } = createFunctions(defineSchema({}));

/** Operation of the current round. */
let work: (ctx: never) => Promise<unknown> = () => Promise.resolve();

/** Module of a test server; its name must be `timed`. */
export const timed = {
  // A new argument each time prevents a cached result.
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

/** Milliseconds of one operation. */
export interface Times {
  readonly ours: number;
  readonly bare: number;
}

/** Returns medians over rounds in which each operation runs `count` times. */
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
  // The first two rounds warm up.
  for (let round = -2; round < ROUNDS; round++) {
    const oursMs = await server.query(api.timed.measure, { round: now() });
    const start = now();
    for (let n = 0; n < count; n++) bare();
    const bareMs = now() - start;
    if (round >= 0) times.ours.push(oursMs / count), times.bare.push(bareMs / count);
  }
  return { ours: median(times.ours), bare: median(times.bare) };
}
