/** Large results. */
import { untypedQuery } from "syncline/server";
import { z } from "zod";

/** The same for all callers, so that only what is sent costs memory for each socket. */
export const text = untypedQuery({
  args: { n: z.number(), chars: z.number() },
  handler: (_ctx, { n, chars }) => String(n % 10).repeat(chars),
});
