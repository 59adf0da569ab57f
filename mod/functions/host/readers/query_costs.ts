/**
 * What queries are known to take: of a function and whoever answers for the call, and of the function whoever calls it. A
 * function that was slow for somebody is taken to be slow for everybody for whom it was not quick yet: else each of many
 * callers could take a reader with it once.
 */
import { isolateLimits } from "../../limits.ts";
import { Costs } from "../costs.ts";
import type { QueryWork } from "./wave_run.ts";

/** A query that took this long is known to be slow. */
export const SLOW_KNOWN_MS = 2 * isolateLimits.slowQueryMs;
/** One that was quick for this caller is so only after this time: on a busy machine anything may stand still for a moment. */
const SLOW_SURELY_MS = 2 * SLOW_KNOWN_MS;
/** Functions and callers of which it is known that they are quick; the one used least recently gives way. */
const QUICK_MAX = 20_000;

export type CostOf = Pick<QueryWork, "cost" | "path">;

export class QueryCosts {
  readonly #ofCallers = new Costs();
  readonly #ofFunctions = new Costs();
  readonly #quick = new Set<string>();
  /** Functions that were quick for somebody, until they are slow for somebody. */
  readonly #quickPaths = new Set<string>();

  /** Whether nothing is known to take long. */
  get empty(): boolean {
    return this.#ofCallers.empty && this.#ofFunctions.empty;
  }

  /** Whether it was quick for this caller. */
  isQuick({ cost }: Pick<QueryWork, "cost">): boolean {
    return this.#quick.has(cost);
  }

  isSlow({ cost, path }: CostOf): boolean {
    if (this.#ofCallers.of(cost) >= SLOW_KNOWN_MS) return true;
    return !this.#quick.has(cost) && this.#ofFunctions.of(path) >= SLOW_KNOWN_MS;
  }

  /** A run took so long. */
  took(work: CostOf, ms: number): void {
    if (ms >= SLOW_KNOWN_MS) return this.#slow(work, ms);
    if (this.#quick.delete(work.cost)) {
      this.#quick.add(work.cost);
    } else {
      add(this.#quick, work.cost);
      add(this.#quickPaths, work.path);
    }
    if (this.empty) return;
    this.#ofCallers.took(work.cost, ms);
    this.#ofFunctions.took(work.path, ms);
  }

  /** A run is under way that has taken so long already. */
  takes(work: CostOf, ms: number): void {
    const sure = this.#quick.has(work.cost)
      ? SLOW_SURELY_MS
      : this.#quickPaths.has(work.path)
      ? SLOW_KNOWN_MS
      : 0;
    if (ms < sure) return;
    this.#slow(work, Math.max(ms, SLOW_KNOWN_MS));
  }

  #slow({ cost, path }: CostOf, ms: number): void {
    this.#quick.delete(cost);
    this.#quickPaths.delete(path);
    this.#ofCallers.took(cost, ms);
    this.#ofFunctions.took(path, ms);
  }
}

function add(names: Set<string>, name: string): void {
  names.add(name);
  if (names.size <= QUICK_MAX) return;
  const [oldest] = names;
  if (oldest !== undefined) names.delete(oldest);
}
