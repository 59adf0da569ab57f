/** Undo log for effects outside the database, applied in reverse order on rollback. */
export class UndoLog {
  readonly #undos: (() => void)[] = [];

  /** The current position. */
  get mark(): number {
    return this.#undos.length;
  }

  note(undo: () => void): void {
    this.#undos.push(undo);
  }

  /** Undoes everything since the mark. */
  backTo(mark: number): void {
    while (this.#undos.length > mark) this.#undos.pop()?.();
  }
}
