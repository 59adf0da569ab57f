/**
 * A fair queue by caller. Usage is measured in estimated milliseconds of work, and the next item is that of the caller who would
 * first have received its share (weighted fair queuing). Expensive calls wait behind cheap ones of others, but not forever.
 * Items of one caller keep their order.
 */

/** Maximum cost charged for an item: expensive items wait long enough as it is. */
const COST_MS_MAX = 250;
/** Callers without queued items whose share is remembered. */
const IDLE_CALLERS_MAX = 10_000;

interface Caller<Item> {
  readonly key: string;
  /** In order. Those before `taken` were removed. */
  items: Item[];
  taken: number;
  /** Virtual finish time of the caller's next item. */
  due: number;
  /** Virtual finish time of the caller's completed work. */
  had: number;
  /** Sequence number of joining the queue, as a tie-breaker. */
  since: number;
}

export interface TurnsOptions<Item> {
  readonly callerOf: (item: Item) => string;
  /** Returns the estimated cost in milliseconds, above zero. */
  readonly costOf: (item: Item) => number;
}

export class FairQueue<Item> {
  readonly #options: TurnsOptions<Item>;
  readonly #callers = new Map<string, Caller<Item>>();
  /** Callers with items, as a heap by finish time. */
  readonly #line: Caller<Item>[] = [];
  /** Virtual time: advances by the average work per queued caller. */
  #now = 0;
  #size = 0;
  #arrivals = 0;

  constructor(options: TurnsOptions<Item>) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  get callers(): number {
    return this.#line.length;
  }

  /** Queued items of a caller. */
  countOf(key: string): number {
    const caller = this.#callers.get(key);
    return caller === undefined ? 0 : caller.items.length - caller.taken;
  }

  /** Appends an item for its caller. */
  push(item: Item): void {
    const caller = this.#callerOf(item);
    caller.items.push(item);
    this.#size++;
    if (caller.items.length - caller.taken === 1) this.#enter(caller);
  }

  /** Returns the next item without removing it. */
  peek(): Item | undefined {
    const [caller] = this.#line;
    return caller?.items[caller.taken];
  }

  /** Removes the next item. */
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

  /** Returns items, in their order, to the front of their callers' queues. */
  requeue(items: readonly Item[]): void {
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

  /** Removes the items for which `chosen` returns true, by caller. */
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

  /** Removes the newest item of the costliest caller, if this caller has less than half of that cost; otherwise `null`. */
  evictFor(item: Item, weightOf: (item: Item) => number): Item | null {
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

  /** Removes a caller without items. */
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

  /** Forgets callers that have used no more than their share, and all shares when the queue is empty. */
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
