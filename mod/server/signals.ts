/** Stop signals: the first stops the server gracefully, the second ends it at once. */
import { stopLimits } from "./limits.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

export type StopSignal = (typeof SIGNALS)[number];

/** Source of signals; tests replace it. */
export interface SignalSource {
  add(signal: StopSignal, listener: () => void): void;
  remove(signal: StopSignal, listener: () => void): void;
  exit(code: number): void;
  /** Monotonic time in milliseconds. */
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
        // A terminal or service manager signals the whole process group, and a parent may forward it: count that as one signal.
        if (signal === asked.signal && source.now() - asked.at < stopLimits.sameSignalMs) return;
        // By convention, the exit code is 128 plus the signal number.
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
