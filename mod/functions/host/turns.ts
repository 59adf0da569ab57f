/**
 * A line in which callers take turns. What a caller has taken of the server is counted in milliseconds of work, as far as
 * it is known what things take; next is whoever would be the first to have had his share. So a call that is known to take
 * long stands behind short ones of others, but not for ever. What one caller gave comes in the order given.
 */

/** Work that is taken to cost more than this is not held against its caller: it waits long enough as it is. */
const COST_MS_MAX = 250;
/** Callers without anything in line whose share is remembered. */
const IDLE_CALLERS_MAX = 10_000;

interface Caller<Item> {
  readonly key: string;
  /** In order; those before `taken` have left. */
  items: Item[];
  taken: number;
  /** When, in shared time, the caller will have had the work at the head of its line. */
  due: number;
  /** The same for all that it has been given so far. */
  had: number;
  /** When it came to stand in line, as a count: decides between equals. */
  since: number;
}

export interface TurnsOptions<Item> {
  /** Whose turn an item takes. */
  readonly callerOf: (item: Item) => string;
  /** What it is taken to cost, in milliseconds of work; above zero. */
  readonly costOf: (item: Item) => number;
}

export class Turns<Item> {
  readonly #options: TurnsOptions<Item>;
  readonly #callers = new Map<string, Caller<Item>>();
  /** Callers with items, as a heap: the one whose turn is next stands first. */
  readonly #line: Caller<Item>[] = [];
  /** Shared time: moves on by what each caller in line has had on average. */
  #now = 0;
  #size = 0;
  #arrivals = 0;

  constructor(options: TurnsOptions<Item>) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Callers with items in line. */
  get callers(): number {
    return this.#line.length;
  }

  /** Items of a caller in line. */
  countOf(key: string): number {
    const caller = this.#callers.get(key);
    return caller === undefined ? 0 : caller.items.length - caller.taken;
  }

  /** Puts an item behind the others of its caller. */
  push(item: Item): void {
    const caller = this.#callerOf(item);
    caller.items.push(item);
    this.#size++;
    if (caller.items.length - caller.taken === 1) this.#enter(caller);
  }

  /** The item whose turn is next. */
  peek(): Item | undefined {
    const [caller] = this.#line;
    return caller?.items[caller.taken];
  }

  /** Takes it out. */
  take(): Item | undefined {
    const [caller] = this.#line;
    const item = caller?.items[caller.taken];
    if (caller === undefined || item === undefined) return undefined;
    this.#now += this.#cost(item) / this.#line.length;
    caller.had = caller.due;
    caller.taken++;
    this.#size--;
    if (caller.taken < caller.items.length) {
      if (caller.taken > 1_024) this.#compact(caller);
      this.#setDue(caller);
      this.#sink(0);
    } else this.#leave(0);
    return item;
  }

  /** Puts items that were taken back in front of the others of their callers; given in order. */
  putBack(items: readonly Item[]): void {
    const byCaller = Map.groupBy(items, (item) => this.#callerOf(item));
    for (const [caller, back] of byCaller) {
      const waited = caller.taken < caller.items.length;
      caller.items = [...back, ...caller.items.slice(caller.taken)];
      caller.taken = 0;
      this.#size += back.length;
      if (!waited) this.#enter(caller);
    }
    for (const caller of this.#line) this.#setDue(caller);
    this.#heapify();
  }

  /** Takes out the items that `chosen` is true of, in the order of their callers. */
  takeOut(chosen: (item: Item) => boolean): Item[] {
    const out: Item[] = [];
    for (const caller of [...this.#line]) {
      const kept: Item[] = [];
      for (const item of caller.items.slice(caller.taken)) (chosen(item) ? out : kept).push(item);
      caller.items = kept;
      caller.taken = 0;
    }
    this.#size -= out.length;
    const left = this.#line.filter(({ items }) => items.length > 0);
    for (const caller of this.#line) if (caller.items.length === 0) this.#forget(caller);
    this.#line.splice(0, this.#line.length, ...left);
    for (const caller of left) this.#setDue(caller);
    this.#heapify();
    return out;
  }

  /**
   * Takes out the newest item of the caller whose items weigh most, to make room for one of another caller with less than
   * half of that; `null` when there is no such caller.
   */
  giveWay(item: Item, weightOf: (item: Item) => number): Item | null {
    const weigh = ({ items, taken }: Caller<Item>) =>
      items.slice(taken).reduce((sum, other) => sum + weightOf(other), 0);
    const weights = this.#line.map((caller) => ({ caller, weight: weigh(caller) }));
    const [first, ...others] = weights;
    if (first === undefined) return null;
    const largest = others.reduce((most, next) => next.weight > most.weight ? next : most, first);
    const key = this.#options.callerOf(item);
    const own = weights.find(({ caller }) => caller.key === key)?.weight ?? 0;
    if (largest.weight <= 2 * (own + weightOf(item))) return null;
    const { caller } = largest;
    const out = caller.items.pop() ?? null;
    this.#size--;
    if (caller.items.length <= caller.taken) this.#leave(this.#line.indexOf(caller));
    return out;
  }

  #cost(item: Item): number {
    return Math.min(this.#options.costOf(item), COST_MS_MAX);
  }

  #callerOf(item: Item): Caller<Item> {
    const key = this.#options.callerOf(item);
    let caller = this.#callers.get(key);
    if (caller === undefined) {
      caller = { key, items: [], taken: 0, due: 0, had: 0, since: 0 };
      this.#callers.set(key, caller);
    }
    return caller;
  }

  #enter(caller: Caller<Item>): void {
    caller.since = ++this.#arrivals;
    this.#setDue(caller);
    this.#line.push(caller);
    this.#rise(this.#line.length - 1);
  }

  /** Takes a caller without items out of the line. */
  #leave(at: number): void {
    const caller = this.#line[at];
    const last = this.#line.pop();
    if (caller === undefined || last === undefined) return;
    if (last !== caller) {
      this.#line[at] = last;
      this.#sink(at);
      this.#rise(at);
    }
    caller.items = [];
    caller.taken = 0;
    this.#forget(caller);
  }

  /** Forgets a caller that has had no more than its share, and all shares when nobody waits. */
  #forget(caller: Caller<Item>): void {
    if (this.#size === 0) {
      this.#callers.clear();
      this.#now = 0;
    } else if (caller.had <= this.#now) {
      this.#callers.delete(caller.key);
    } else if (this.#callers.size - this.#line.length > IDLE_CALLERS_MAX) {
      for (const [key, { items, taken, had }] of this.#callers) {
        if (items.length === taken && (had <= this.#now || key !== caller.key)) this.#callers.delete(key);
      }
    }
  }

  #compact(caller: Caller<Item>): void {
    caller.items = caller.items.slice(caller.taken);
    caller.taken = 0;
  }

  #setDue(caller: Caller<Item>): void {
    const item = caller.items[caller.taken];
    if (item !== undefined) caller.due = Math.max(this.#now, caller.had) + this.#cost(item);
  }

  #before(a: Caller<Item>, b: Caller<Item>): boolean {
    return a.due < b.due || (a.due === b.due && a.since < b.since);
  }

  #heapify(): void {
    for (let at = (this.#line.length >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  #rise(at: number): void {
    const line = this.#line;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const [below, above] = [line[at], line[up]];
      if (below === undefined || above === undefined || !this.#before(below, above)) return;
      line[at] = above;
      line[up] = below;
      at = up;
    }
  }

  #sink(at: number): void {
    const line = this.#line;
    for (;;) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        const [a, b] = [line[child], line[first]];
        if (a !== undefined && b !== undefined && this.#before(a, b)) first = child;
      }
      if (first === at) return;
      const [a, b] = [line[at], line[first]];
      if (a === undefined || b === undefined) return;
      line[at] = b;
      line[first] = a;
      at = first;
    }
  }
}
