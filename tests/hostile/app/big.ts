/** Large results. */
import { untypedQuery } from "syncline/server";
import { z } from "zod";

/** The same for all callers, so that only sending takes memory for each socket. */
export const text = untypedQuery({
  args: { n: z.number(), chars: z.number() },
  handler: (_ctx, { n, chars }) => String(n % 10).repeat(chars),
});
