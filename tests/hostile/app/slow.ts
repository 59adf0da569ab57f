/** Slow functions. */
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";

/** Takes about this long. Counts iterations, because the clock of a function is frozen. */
export function spin(ms: number): void {
  let state = 1;
  for (let turn = 0; turn < ms * 80_000; turn++) state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
  if (state === -1) throw new Error("never");
}

const forever = () => {
  for (;;);
};

export const endlessMutation = untypedMutation({ args: {}, handler: forever });
export const endlessQuery = untypedQuery({ args: { nonce: z.string() }, handler: forever });
export const slowMutation = untypedMutation({
  args: { ms: z.number() },
  handler: (_ctx, { ms }) => (spin(ms), null),
});
export const slowQuery = untypedQuery({
  args: { ms: z.number(), nonce: z.string() },
  handler: (_ctx, { ms }) => (spin(ms), null),
});
export const forkBomb = untypedAction({
  args: {},
  handler: async (ctx): Promise<null> => {
    await Promise.all(Array.from({ length: 3 }, () => ctx.runAction("slow:forkBomb", {})));
    return null;
  },
});
export const slowAction = untypedAction({
  args: { ms: z.number() },
  handler: (_ctx, { ms }) => new Promise<null>((resolve) => setTimeout(() => resolve(null), ms)),
});
