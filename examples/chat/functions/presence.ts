/** Rooms of connected pages: one for each channel, with the people who have it open and those who type. */
import { z } from "zod";
import { signedIn } from "./people.ts";
import { internalQuery } from "./schema.ts";

/** Anyone may join the room of a channel. Signed-in people have the name of their account there. */
export const authorize = internalQuery({
  args: { room: z.string().regex(/^channel ./) },
  handler: async (ctx) => await signedIn(ctx),
});
