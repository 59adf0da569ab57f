/** Triggers changes one after another and measures when all subscribers have received each. */
import { pause } from "../../tests/support/waiting.ts";

export interface TriggerOptions {
  /** Messages that trigger a change. `{id}` is replaced with consecutive numbers. */
  readonly messages: readonly string[];
  /** Deliveries of each change. */
  readonly deliveries: number;
  /** Substring of a delivery. */
  readonly marker: string;
  /** Minimum time between two messages. A message also waits for all deliveries of the one before. */
  readonly intervalMs: number;
}

export interface TriggerResult {
  /** From sending each message to its last delivery. */
  readonly lastDeliveryMs: number[];
  /** The text of a delivery. */
  readonly sample: string;
}

const DELIVERY_MS_MAX = 30_000;

export class Deliveries {
  #marker = "";
  #outstanding = 0;
  #sample = "";
  #delivered: PromiseWithResolvers<number> = Promise.withResolvers();
  #requestId = 0;

  /** Must be called with each message that a subscriber receives. */
  received(text: string): void {
    if (this.#outstanding === 0 || !text.includes(this.#marker)) return;
    this.#sample = text;
    if (--this.#outstanding === 0) this.#delivered.resolve(performance.now());
  }

  /** Makes `trigger` throw an error. */
  failed(error: unknown): void {
    this.#delivered.promise.catch(() => {});
    this.#delivered.reject(error);
  }

  async trigger(
    { messages, deliveries, marker, intervalMs }: TriggerOptions,
    send: (message: string) => void,
  ): Promise<TriggerResult> {
    this.#marker = marker;
    const lastDeliveryMs: number[] = [];
    for (const message of messages) {
      this.#delivered = Promise.withResolvers();
      this.#outstanding = deliveries;
      const interval = pause(intervalMs);
      const timer = setTimeout(() => {
        this.#delivered.reject(new Error(`${this.#outstanding} deliveries are missing`));
      }, DELIVERY_MS_MAX);
      const sentAt = performance.now();
      send(message.replace("{id}", String(this.#requestId++)));
      try {
        lastDeliveryMs.push(await this.#delivered.promise - sentAt);
      } finally {
        clearTimeout(timer);
        await interval;
      }
    }
    return { lastDeliveryMs, sample: this.#sample };
  }
}
