/** What the functions are known to take, in milliseconds: those that take long are remembered, the others cost next to nothing. */
import { isolateLimits } from "../limits.ts";

/** What a function costs of which nothing is known. */
const USUAL_MS = 0.1;
/** Share of what is remembered that is left after a run that was quick. */
const FADING = 0.5;
/** Functions remembered; the one noted first gives way. */
const FUNCTIONS_MAX = 10_000;

export class Costs {
  readonly #ms = new Map<string, number>();

  /** Whether nothing is known to take long. */
  get empty(): boolean {
    return this.#ms.size === 0;
  }

  of(work: string): number {
    return this.#ms.get(work) ?? USUAL_MS;
  }

  /** A run took so long. A slow one counts at once, quick ones bit by bit. */
  took(work: string, ms: number): void {
    const known = this.#ms.get(work);
    if (known === undefined && ms < isolateLimits.costToldMs) return;
    const cost = Math.max(ms, (known ?? 0) * FADING);
    this.#ms.delete(work);
    if (cost < isolateLimits.costToldMs) return;
    if (this.#ms.size >= FUNCTIONS_MAX) {
      const [oldest] = this.#ms.keys();
      if (oldest !== undefined) this.#ms.delete(oldest);
    }
    this.#ms.set(work, cost);
  }
}
