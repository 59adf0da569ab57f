/** Functions that take long. */
import { action, mutation, query } from "syncline/server";
import { z } from "zod";

function spin(ms: number): void {
  // The clock of a function stands still, so turns are counted: some 400,000 of them are a millisecond or less.
  let state = 1;
  for (let turn = 0; turn < ms * 400_000; turn++) state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
  if (state === -1) throw new Error("never");
}

const forever = () => {
  for (;;);
};

export const endlessMutation = mutation({ args: {}, handler: forever });
export const endlessQuery = query({ args: { nonce: z.string() }, handler: forever });
export const slowMutation = mutation({
  args: { ms: z.number() },
  handler: (_ctx, { ms }) => (spin(ms), null),
});
export const slowQuery = query({
  args: { ms: z.number(), nonce: z.string() },
  handler: (_ctx, { ms }) => (spin(ms), null),
});
export const slowAction = action({
  args: { ms: z.number() },
  handler: (_ctx, { ms }) => new Promise<null>((resolve) => setTimeout(() => resolve(null), ms)),
});
