/** Memoizes a value for each pair of outcomes, for as long as both are alive. Shared by all sockets. */
import type { Outcome } from "../functions/outcome.ts";

export class PairMemo<Found extends string | boolean | null> {
  readonly #found = new WeakMap<Outcome, WeakMap<Outcome, Found>>();

  /** Returns the value for the pair, computing it on first use. */
  get(a: Outcome, b: Outcome, find: () => Found): Found {
    let others = this.#found.get(a);
    if (others === undefined) this.#found.set(a, others = new WeakMap());
    let found = others.get(b);
    if (found === undefined) others.set(b, found = find());
    return found;
  }
}
