/** Signals that tell the server to stop: the first asks it to, the second does not ask. */

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

export type StopSignal = (typeof SIGNALS)[number];

/** The part of the platform that signals come from. */
export interface SignalSource {
  add(signal: StopSignal, listener: () => void): void;
  remove(signal: StopSignal, listener: () => void): void;
  exit(code: number): void;
}

export const processSignals: SignalSource = {
  add: (signal, listener) => Deno.addSignalListener(signal, listener),
  remove: (signal, listener) => Deno.removeSignalListener(signal, listener),
  exit: (code) => Deno.exit(code),
};

export class StopSignals implements Disposable {
  /** Resolves with the first signal. */
  readonly first: Promise<StopSignal>;
  readonly #source: SignalSource;
  readonly #listeners: (readonly [StopSignal, () => void])[] = [];

  constructor(source: SignalSource = processSignals) {
    this.#source = source;
    const { promise, resolve } = Promise.withResolvers<StopSignal>();
    this.first = promise;
    let received = false;
    for (const signal of SIGNALS) {
      const listener = () => {
        // By convention a process that a signal ended exits with 128 plus the signal's number.
        if (received) source.exit(128 + SIGNAL_NUMBERS[signal]);
        received = true;
        resolve(signal);
      };
      source.add(signal, listener);
      this.#listeners.push([signal, listener]);
    }
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) this.#source.remove(signal, listener);
  }
}
