/** Triggers changes one after another, and measures the time until all listeners have received each. */

export interface TriggerOptions {
  /** Message that triggers; `{id}` becomes a running number. */
  readonly messages: readonly string[];
  /** Deliveries that follow each message. */
  readonly deliveries: number;
  /** Text that a delivery contains. */
  readonly marker: string;
  /** A message leaves this long after the one before it, or when all its deliveries are there, whichever is later. */
  readonly intervalMs: number;
}

export interface TriggerResult {
  /** From sending each message to its last delivery. */
  readonly lastDeliveryMs: number[];
  /** From sending each message to its answer, where there is one. */
  readonly answerMs: number[];
  /** One delivery, whole. */
  readonly sample: string;
}

const DELIVERY_MS = 30_000;

export class Deliveries {
  #marker = "";
  #outstanding = 0;
  #sample = "";
  #delivered: PromiseWithResolvers<number> = Promise.withResolvers();
  #answered: PromiseWithResolvers<number> | null = null;
  #requestId = 0;

  /** To be called with each message that a listener receives. */
  received(text: string): void {
    if (this.#outstanding === 0 || !text.includes(this.#marker)) return;
    this.#sample = text;
    if (--this.#outstanding === 0) this.#delivered.resolve(performance.now());
  }

  /** To be called when a message has its answer. */
  answered(): void {
    this.#answered?.resolve(performance.now());
  }

  /** Ends a run in progress. */
  failed(error: unknown): void {
    this.#delivered.promise.catch(() => {});
    this.#delivered.reject(error);
  }

  async run(options: TriggerOptions, send: (message: string) => void): Promise<TriggerResult> {
    this.#marker = options.marker;
    const lastDeliveryMs: number[] = [];
    const answerMs: number[] = [];
    for (const message of options.messages) {
      this.#delivered = Promise.withResolvers();
      this.#outstanding = options.deliveries;
      const answered = this.#answered = Promise.withResolvers<number>();
      const pause = new Promise((resolve) => setTimeout(resolve, options.intervalMs));
      const timer = setTimeout(() => {
        this.#delivered.reject(new Error(`${this.#outstanding} deliveries are missing`));
      }, DELIVERY_MS);
      const sentAt = performance.now();
      send(message.replace("{id}", String(this.#requestId++)));
      try {
        lastDeliveryMs.push(await this.#delivered.promise - sentAt);
      } finally {
        clearTimeout(timer);
        await pause;
      }
      const answeredAt = await Promise.race([answered.promise, Promise.resolve(null)]);
      if (answeredAt !== null) answerMs.push(answeredAt - sentAt);
    }
    return { lastDeliveryMs, answerMs, sample: this.#sample };
  }
}
