/**
 * The gate between commits and snapshots: readers are pinned only while the writer has no batch, so that all readers of a
 * wave see the same commits. The writer and pins take turns: when a turn of the writer ends, the pins that waited go first,
 * then its next turn goes before any later pin. A turn is of one batch, and of more for as long as no pin waits when one
 * is about to end: a pin waits for two batches at most. Neither side starves the other.
 */
export class Gate {
  /** Whether the writer has its turn. */
  #writing = false;
  /** Readers that are being pinned now. */
  #pinning = 0;
  /** The writer's next turn; there is at most one. */
  #turn: (() => void) | null = null;
  /** Pins that wait for the writer's turn to end. */
  readonly #pins: (() => void)[] = [];

  /** Runs `start` when a reader may be pinned, at once if that is now. Ends with {@linkcode unpin}. */
  pin(start: () => void): void {
    if (this.#writing || this.#turn !== null) {
      this.#pins.push(start);
      return;
    }
    this.#pinning++;
    start();
  }

  /** A reader has been pinned, or is gone. */
  unpin(): void {
    this.#pinning--;
    this.#nextTurn();
  }

  /** Runs `start` when the writer may commit, at once if that is now. Ends with {@linkcode endTurn}. One at a time. */
  takeTurn(start: () => void): void {
    if (this.#turn !== null) throw new Error("The writer waits for its turn already");
    this.#turn = start;
    if (!this.#writing) this.#nextTurn();
  }

  /** Whether the writer may stay for another batch: nobody waits for the end of its turn. */
  get mayStay(): boolean {
    return this.#pins.length === 0;
  }

  /** The writer commits nothing more until its next turn. */
  endTurn(): void {
    this.#writing = false;
    const pins = this.#pins.splice(0);
    // Counted before the first of them starts: one that is done at once must not let the writer in before the others.
    this.#pinning += pins.length;
    for (const start of pins) start();
    this.#nextTurn();
  }

  #nextTurn(): void {
    if (this.#pinning > 0 || this.#writing || this.#turn === null) return;
    const start = this.#turn;
    this.#turn = null;
    this.#writing = true;
    start();
  }
}
