/** Whether callers whose sessions may have ended are let in, at the one who knows: in the order of their calls. */
import type { FunctionCall } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { failed, type Outcome } from "../functions/outcome.ts";

/** Whether the session of a caller lives. */
export type Admits = (identity: Identity) => Promise<boolean>;

export class Admissions {
  readonly #admits: Admits | undefined;
  /** By whose turn it is: what is looked up of callers before their calls are taken, in the order of the calls. */
  readonly #under = new Map<string, Promise<Outcome | null>>();

  /** Without `admits` everybody is let in. */
  constructor(admits: Admits | undefined) {
    this.#admits = admits;
  }

  /** Why a call is not taken. Calls of one caller keep their order, although one may be looked up and the next not. */
  async refusalOf({ caller, identity, origin }: FunctionCall): Promise<Outcome | null> {
    const turn = caller?.turn ?? "";
    const before = this.#under.get(turn);
    const admits = this.#admits;
    // Guests have nothing that could have ended.
    const asks = admits !== undefined && identity.sessionId !== null && origin !== "system";
    if (before === undefined && !asks) return null;
    const admission = (before ?? Promise.resolve()).catch(() => {})
      .then(async () => !asks || await admits(identity) ? null : ended());
    this.#under.set(turn, admission);
    try {
      return await admission;
    } finally {
      if (this.#under.get(turn) === admission) this.#under.delete(turn);
    }
  }
}

function ended(): Outcome {
  return failed("internal", "The session of the caller has ended", { retryable: true });
}
