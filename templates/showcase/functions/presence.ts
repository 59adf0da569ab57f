/** Users with an open page. */
import { z } from "zod";
import { nameOf, signedIn } from "./people.ts";
import { internalQuery } from "./schema.ts";

/** Called when a page joins a room. Its result is shown to the other pages. */
export const authorize = internalQuery({
  args: { room: z.literal("board") },
  handler: async (ctx) => ({ name: await nameOf(ctx, signedIn(ctx)) }),
});
