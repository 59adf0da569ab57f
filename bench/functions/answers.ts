/** An action that writes a stream at a fixed rate. */
import { z } from "zod";
import { action, internalMutation, query } from "./schema.ts";

export const begin = internalMutation({
  args: { stream: z.string() },
  handler: async (ctx, { stream }) => await ctx.db.insert("streams", { stream }),
});

export const newest = query({
  handler: async (ctx) => (await ctx.db.query("streams").order("desc").first())?.stream ?? null,
});

/** Waits for the readers to connect, then writes chunks at a fixed rate. */
export const write = action({
  args: { chunks: z.int(), intervalMs: z.number(), readers: z.int() },
  handler: async (ctx, { chunks, intervalMs, readers }) => {
    const stream = await ctx.streams.create({ store: false });
    await ctx.runMutation("answers:begin", { stream: stream.id });
    const startAt = Date.now() + 1_000 + readers;
    for (let n = 0; n < chunks; n++) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, startAt + n * intervalMs - Date.now())));
      await stream.write(`<${Date.now()}>word `);
    }
    await stream.end();
    return null;
  },
});
