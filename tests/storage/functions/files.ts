/** App functions of the tests on a real server. */
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

export const generate = untypedMutation((ctx) => ctx.storage.generateUploadUrl());

export const metadata = untypedQuery({
  args: { id: z.string() },
  handler: (ctx, { id }) => ctx.storage.getMetadata(id),
});

export const signedUrl = untypedQuery({
  args: { id: z.string() },
  handler: (ctx, { id }) => ctx.storage.getSignedUrl(id, { ttlSeconds: 60 }),
});

export const remove = untypedMutation({
  args: { id: z.string() },
  handler: (ctx, { id }) => ctx.storage.delete(id),
});

/** Copies a file and returns the length of the copy by reading it. */
export const copy = untypedAction({
  args: { id: z.string() },
  handler: async (ctx, { id }) => {
    const blob = await ctx.storage.get(id);
    if (blob === null) return null;
    const copied = await ctx.storage.store(blob, { name: "copy" });
    return { id: copied, size: (await ctx.storage.get(copied))?.size };
  },
});
