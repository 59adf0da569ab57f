/** How many requests are being answered, for who has to wait until none is. */
export class RequestsUnderWay {
  #count = 0;
  #none = Promise.withResolvers<void>();

  /** One has come; `completed` settles when its answer has left, or cannot. */
  begin(completed: Promise<unknown>): void {
    this.#count++;
    const end = () => {
      if (--this.#count > 0) return;
      this.#none.resolve();
      this.#none = Promise.withResolvers();
    };
    completed.then(end, end);
  }

  /** Resolves when there is none, or after so long. */
  async none(msMax: number): Promise<void> {
    if (this.#count === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, msMax));
    await Promise.race([this.#none.promise, late]);
    clearTimeout(timer);
  }
}
