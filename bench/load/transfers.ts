/** The transfers of the benchmark: which accounts, how much, as an endless seeded stream of arguments. */
import { drawer, mulberry32 } from "../../tests/support/processes/random.ts";

export interface TransferWorkload {
  /** Accounts are numbered from 0 to `accounts - 1`. */
  readonly accounts: number;
  /** 0 for uniform draws, else the exponent of Zipf's law. */
  readonly alpha: number;
  readonly seed: number;
}

/** Gives the JSON text of the next transfer's arguments with each call. */
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

/** Gives the number of the next account with each call. */
export function accountNumbers({ accounts, alpha, seed }: TransferWorkload): () => number {
  return drawer(accounts, { alpha, random: mulberry32(seed) });
}
