/** Requests that arrive while the database is released and it is undecided which process answers. */
import { ServiceError } from "../../errors.ts";
import type { Lent } from "../../functions/host/mod.ts";
import { takeoverLimits } from "../limits.ts";
import type { NewProcess } from "./new_process.ts";

export class HeldRequests {
  readonly #decided = Promise.withResolvers<NewProcess | null>();
  #lent: Lent | null = null;
  #held = 0;

  /** Sets the released database. */
  lent(lent: Lent): void {
    this.#lent = lent;
  }

  /**
   * Waits for the end of the switch. Returns the new process, or `null` if this server continues. Rejects with `unavailable` if
   * too many requests wait.
   */
  async wait(): Promise<NewProcess | null> {
    if (this.#held >= takeoverLimits.requestsHeldMax) throw new ServiceError("unavailable");
    this.#held++;
    try {
      return await this.#decided.promise;
    } finally {
      this.#held--;
    }
  }

  /** This server continues. */
  release(): void {
    this.#lent?.giveBack();
    this.#decided.resolve(null);
  }

  /** This server stops without reopening the database. */
  refuse(): void {
    this.#decided.resolve(null);
  }

  handOver(newProcess: NewProcess): void {
    this.#lent?.passOn(newProcess.calls);
    this.#decided.resolve(newProcess);
  }
}
