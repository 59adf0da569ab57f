/** What has to be undone outside of the database when a transaction, or a part of it, is: the last first. */
export class Undos {
  readonly #undos: (() => void)[] = [];

  /** A point to go back to. */
  get mark(): number {
    return this.#undos.length;
  }

  note(undo: () => void): void {
    this.#undos.push(undo);
  }

  /** Undoes what was noted since the mark. */
  backTo(mark: number): void {
    while (this.#undos.length > mark) this.#undos.pop()?.();
  }
}
