/** Chooses the operations of a run, and records their outcomes. */
import type { Lists, Mutation, Query, Step, View } from "./history.ts";

/** Lists in use at a time, and appends after which one is replaced. */
const SLOTS = 5;
const APPENDS_MAX = 24;
const STEPS_MAX = 4;
const KEYS_READ_MAX = 4;
const PROBLEMS_MAX = 50;

/** A mutation that was sent. */
export interface SentMutation {
  readonly id: string;
  readonly steps: readonly Step[];
  readonly startedAt: number;
}

export class Recorder {
  readonly mutations: Mutation[] = [];
  readonly queries: Query[] = [];
  readonly views: View[] = [];
  /** Breaks of the protocol, and requests that never got an answer. */
  readonly problems: string[] = [];
  /** Number of refused or lost requests by reason. */
  readonly errors = new Map<string, number>();
  readonly keys: string[] = [];
  readonly #slots: string[] = [];
  readonly #appends = new Map<string, number>();
  readonly #random: () => number;
  #lastValue = 0;

  constructor(random: () => number) {
    this.#random = random;
    for (let slot = 0; slot < SLOTS; slot++) this.#replace(slot);
  }

  now(): number {
    return performance.now();
  }

  /** A random integer from 0 to `below - 1`. */
  pick(below: number): number {
    return Math.floor(this.#random() * below);
  }

  /** Creates one to four reads and appends. */
  mutation(id: string): SentMutation {
    const steps = Array.from({ length: 1 + this.pick(STEPS_MAX) }, (): Step => {
      const slot = this.pick(SLOTS);
      const key = this.#slots[slot] ?? "";
      if (this.pick(2) === 0) return { type: "read", key, values: null };
      const appends = (this.#appends.get(key) ?? 0) + 1;
      this.#appends.set(key, appends);
      if (appends >= APPENDS_MAX) this.#replace(slot);
      return { type: "append", key, value: ++this.#lastValue };
    });
    return { id, steps, startedAt: this.now() };
  }

  /** Keys for a query, in use or replaced a moment ago. */
  keysToRead(): string[] {
    const recent = this.keys.slice(-2 * SLOTS);
    const count = 1 + this.pick(KEYS_READ_MAX);
    return [...new Set(Array.from({ length: count }, () => recent[this.pick(recent.length)] ?? ""))];
  }

  /** Keys for the subscriptions of a socket, without common ones. */
  keysToWatch(): string[][] {
    return [this.#slots.slice(0, 2), this.#slots.slice(2, 4)];
  }

  committed(sent: SentMutation, { machine, ts, result }: {
    readonly machine: string;
    readonly ts: number;
    readonly result: readonly (readonly number[] | null)[];
  }): void {
    const steps = sent.steps.map((step, at) =>
      step.type === "read" ? { ...step, values: result[at] ?? null } : step
    );
    this.mutations.push({ ...sent, steps, machine, endedAt: this.now(), outcome: "committed", ts });
  }

  /** Records a mutation that was rolled back. */
  failed(sent: SentMutation, machine: string): void {
    this.mutations.push({ ...sent, machine, endedAt: this.now(), outcome: "failed", ts: null });
  }

  /** Records a mutation that may have been committed, or may still be. */
  unknown(sent: SentMutation, machine: string): void {
    this.mutations.push({ ...sent, machine, endedAt: Infinity, outcome: "unknown", ts: null });
  }

  error(reason: string): void {
    this.errors.set(reason, (this.errors.get(reason) ?? 0) + 1);
  }

  problem(text: string): void {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(text);
  }

  #replace(slot: number): void {
    const key = `list${this.keys.length}`;
    this.keys.push(key);
    this.#slots[slot] = key;
  }
}

/** The results of a query by key. */
export function listsOf(keys: readonly string[], results: readonly (readonly number[])[]): Lists {
  return Object.fromEntries(keys.map((key, at) => [key, results[at] ?? []]));
}
