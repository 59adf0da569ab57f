/** One ticker for the deadlines of all sockets: what is due is found without looking at what is not. */

/** What the wheel holds. Each item stands in one slot at most. */
export interface Timed {
  /** The slot it stands in, -1 for none. Set by the wheel alone. */
  slot: number;
}

export class DeadlineWheel<Item extends Timed> {
  readonly #slots = new Map<number, Set<Item>>();
  readonly #slotMs: number;
  #turnedTo: number;

  constructor(now: number, slotMs: number) {
    this.#slotMs = slotMs;
    this.#turnedTo = Math.floor(now / slotMs);
  }

  /** Puts an item where it comes due at `at` or one slot later; it leaves the slot it stood in. */
  schedule(item: Item, at: number): void {
    const slot = Math.max(Math.ceil(at / this.#slotMs), this.#turnedTo + 1);
    if (item.slot === slot) return;
    this.remove(item);
    item.slot = slot;
    const items = this.#slots.get(slot);
    if (items === undefined) this.#slots.set(slot, new Set([item]));
    else items.add(item);
  }

  remove(item: Item): void {
    const items = this.#slots.get(item.slot);
    if (items?.delete(item) && items.size === 0) this.#slots.delete(item.slot);
    item.slot = -1;
  }

  /** Takes out what has come due by `now`. */
  turn(now: number): Item[] {
    const target = Math.floor(now / this.#slotMs);
    const due: Item[] = [];
    // After a long pause there are fewer slots in use than slots gone by.
    const slots = target - this.#turnedTo > this.#slots.size
      ? [...this.#slots.keys()].filter((slot) => slot <= target).sort((a, b) => a - b)
      : Array.from({ length: Math.max(0, target - this.#turnedTo) }, (_, i) => this.#turnedTo + 1 + i);
    for (const slot of slots) {
      for (const item of this.#slots.get(slot) ?? []) {
        item.slot = -1;
        due.push(item);
      }
      this.#slots.delete(slot);
    }
    this.#turnedTo = Math.max(this.#turnedTo, target);
    return due;
  }
}
