/** Signals that tell the server to stop: the first asks it to, the second does not ask. */
import { stopLimits } from "./limits.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

export type StopSignal = (typeof SIGNALS)[number];

/** The part of the platform that signals come from. */
export interface SignalSource {
  add(signal: StopSignal, listener: () => void): void;
  remove(signal: StopSignal, listener: () => void): void;
  exit(code: number): void;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

export const processSignals: SignalSource = {
  add: (signal, listener) => Deno.addSignalListener(signal, listener),
  remove: (signal, listener) => Deno.removeSignalListener(signal, listener),
  exit: (code) => Deno.exit(code),
  now: () => performance.now(),
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
    let asked: { readonly signal: StopSignal; readonly at: number } | null = null;
    for (const signal of SIGNALS) {
      const listener = () => {
        if (asked === null) {
          asked = { signal, at: source.now() };
          resolve(signal);
          return;
        }
        // A terminal or a service manager tells all processes, and one that started this one passes it on: that is one signal.
        if (signal === asked.signal && source.now() - asked.at < stopLimits.sameSignalMs) return;
        // By convention a process that a signal ended exits with 128 plus the signal's number.
        source.exit(128 + SIGNAL_NUMBERS[signal]);
      };
      source.add(signal, listener);
      this.#listeners.push([signal, listener]);
    }
  }

  [Symbol.dispose](): void {
    for (const [signal, listener] of this.#listeners) this.#source.remove(signal, listener);
  }
}
