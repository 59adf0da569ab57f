/** One thread that hashes, as main sees it. What is hashed is copied into memory both share, in slots used in turn. */
import { storageLimits } from "../../limits.ts";
import type { ContentHash } from "./content_hashes.ts";
import type { FromThread, ToThread } from "./messages.ts";

const { hashSlotBytes, hashSlots } = storageLimits;

type Settled<T> = Pick<PromiseWithResolvers<T>, "resolve" | "reject">;

export class HashThread implements Disposable {
  readonly #worker = new Worker(new URL("./thread.ts", import.meta.url), { type: "module" });
  readonly #memory = new Uint8Array(new SharedArrayBuffer(hashSlots * hashSlotBytes));
  readonly #free: number[] = Array.from({ length: hashSlots }, (_, slot) => slot);
  /** Those who wait for a slot, in order. */
  readonly #waiting: Settled<number>[] = [];
  /** Those who wait for a digest, by the number of the hash. */
  readonly #digests = new Map<number, Settled<string>>();
  #begun = 0;
  /** Why it hashes no more. */
  #failure: Error | null = null;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<FromThread>) => this.#onMessage(data);
    this.#worker.onerror = (event) => {
      // Otherwise it would end this process too.
      event.preventDefault();
      this.#fail(new Error(`The thread that hashes has failed: ${event.message}`));
    };
    this.#send({ type: "Memory", memory: this.#memory.buffer });
  }

  get failed(): boolean {
    return this.#failure !== null;
  }

  /** A new hash; its promises reject when the thread fails. */
  begin(): ContentHash {
    const hash = this.#begun++;
    return {
      update: (chunk) => this.#update(hash, chunk),
      digest: () => this.#digest(hash),
      [Symbol.dispose]: () => this.#send({ type: "Forget", hash }),
    };
  }

  /** Ends the thread; hashes that were not finished are rejected. */
  [Symbol.dispose](): void {
    this.#fail(new Error("The thread that hashes has ended"));
  }

  async #update(hash: number, chunk: Uint8Array): Promise<void> {
    for (let taken = 0; taken < chunk.length; taken += hashSlotBytes) {
      const part = chunk.subarray(taken, taken + hashSlotBytes);
      const slot = this.#free.pop() ?? await this.#nextSlot();
      const start = slot * hashSlotBytes;
      this.#memory.set(part, start);
      this.#send({ type: "Update", hash, slot, start, end: start + part.length });
    }
  }

  #nextSlot(): Promise<number> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const { promise, ...settled } = Promise.withResolvers<number>();
    this.#waiting.push(settled);
    return promise;
  }

  #digest(hash: number): Promise<string> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const { promise, ...settled } = Promise.withResolvers<string>();
    this.#digests.set(hash, settled);
    this.#send({ type: "Digest", hash });
    return promise;
  }

  #send(message: ToThread): void {
    if (this.#failure === null) this.#worker.postMessage(message);
  }

  #onMessage(message: FromThread): void {
    switch (message.type) {
      case "Taken": {
        const next = this.#waiting.shift();
        if (next === undefined) this.#free.push(message.slot);
        else next.resolve(message.slot);
        return;
      }
      case "Digested":
        this.#digests.get(message.hash)?.resolve(message.sha256);
        this.#digests.delete(message.hash);
        return;
      default:
        return message satisfies never;
    }
  }

  #fail(failure: Error): void {
    if (this.#failure !== null) return;
    this.#failure = failure;
    this.#worker.terminate();
    for (const { reject } of [...this.#waiting.splice(0), ...this.#digests.values()]) reject(failure);
    this.#digests.clear();
  }
}
