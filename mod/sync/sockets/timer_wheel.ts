/** A timer wheel for the deadlines of all sockets. Finds due items without visiting the others. */

/** An item of the wheel. It is in at most one slot. */
export interface Timed {
  /** Its slot, or -1. Set by the wheel only. */
  slot: number;
}

export class TimerWheel<Item extends Timed> {
  readonly #slots = new Map<number, Set<Item>>();
  readonly #slotMs: number;
  #currentSlot: number;

  constructor(now: number, slotMs: number) {
    this.#slotMs = slotMs;
    this.#currentSlot = Math.floor(now / slotMs);
  }

  /** Schedules an item for `at`, rounded up to a slot. Replaces its previous deadline. */
  schedule(item: Item, at: number): void {
    const slot = Math.max(Math.ceil(at / this.#slotMs), this.#currentSlot + 1);
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

  /** Removes and returns the items due by `now`. */
  advance(now: number): Item[] {
    const target = Math.floor(now / this.#slotMs);
    const due: Item[] = [];
    // After a long pause fewer slots are in use than have passed.
    const slots = target - this.#currentSlot > this.#slots.size
      ? [...this.#slots.keys()].filter((slot) => slot <= target).sort((a, b) => a - b)
      : Array.from({ length: Math.max(0, target - this.#currentSlot) }, (_, i) => this.#currentSlot + 1 + i);
    for (const slot of slots) {
      for (const item of this.#slots.get(slot) ?? []) {
        item.slot = -1;
        due.push(item);
      }
      this.#slots.delete(slot);
    }
    this.#currentSlot = Math.max(this.#currentSlot, target);
    return due;
  }
}
