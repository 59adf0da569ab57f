/** What was found out about two outcomes, once for all sockets that show them: it lives as long as both do. */
import type { Outcome } from "../functions/outcome.ts";

export class PairMemo<Found extends string | boolean | null> {
  readonly #found = new WeakMap<Outcome, WeakMap<Outcome, Found>>();

  /** What `find` gives for the pair, the first time it is asked for. */
  get(a: Outcome, b: Outcome, find: () => Found): Found {
    let others = this.#found.get(a);
    if (others === undefined) this.#found.set(a, others = new WeakMap());
    let found = others.get(b);
    if (found === undefined) others.set(b, found = find());
    return found;
  }
}
