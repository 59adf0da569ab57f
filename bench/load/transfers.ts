/** Seeded arguments of the transfers and reads of the benchmark. */
import { drawer, mulberry32 } from "../../tests/support/processes/random.ts";

export interface TransferWorkload {
  /** Accounts are numbered from 0 to `accounts - 1`. */
  readonly accounts: number;
  /** Exponent of Zipf's law, or 0 for a uniform distribution. */
  readonly alpha: number;
  readonly seed: number;
}

/** Returns a function that returns the arguments of the next transfer as JSON. */
export function transferArgs(workload: TransferWorkload): () => string {
  const random = mulberry32(workload.seed);
  const draw = drawer(workload.accounts, { alpha: workload.alpha, random });
  return () => {
    const from = draw();
    let to = draw();
    while (to === from) to = draw();
    return `{"from_id":${from},"to_id":${to},"amount":1}`;
  };
}

/** Returns a function that returns the number of a random account. */
export function accountNumbers({ accounts, alpha, seed }: TransferWorkload): () => number {
  return drawer(accounts, { alpha, random: mulberry32(seed) });
}
