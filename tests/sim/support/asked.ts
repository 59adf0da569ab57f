/** Requests of model clients: a subscription, or a mutation, chosen by a seed. */
import { groups, keys } from "./app.ts";
import type { Random } from "./random.ts";

export function anySubscription(random: Random) {
  const udfPath = random.pick([
    "rows:get",
    "rows:group",
    "rows:group",
    "rows:all",
    "rows:sum",
    "rows:odd",
    "mine",
    "my/session",
    "rows:guarded",
    "rows:guarded",
    "no:such",
  ]);
  return { udfPath, args: { k: random.pick(keys.slice(0, 4)), g: random.pick(groups) } };
}

export function anyMutation(random: Random): [udfPath: string, args: Record<string, unknown>] {
  const k = random.pick(keys);
  const g = random.pick(groups);
  return random.pick<[string, Record<string, unknown>]>([
    ["put", { k, g, n: random.below(10) }],
    ["put", { k, g, n: random.below(10) }],
    ["add", { k }],
    ["add", { k: random.pick(keys.slice(0, 4)) }],
    ["move", { k, g }],
    ["transfer", { from: k, to: random.pick(keys) }],
    ["remove", { k }],
    ["claim", { k }],
    ["halfway", { k }],
    ["nothing", {}],
    ["no:such", {}],
  ]);
}
