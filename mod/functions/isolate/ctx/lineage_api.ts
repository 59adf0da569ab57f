/** `ctx.lineage` of the service's mutations: the scheduled function that a call stems from. Not available to app code. */
import type { Lineage } from "../../api/system_context.ts";
import type { Call } from "../runs/call.ts";

export class LineageApi {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  /** `null` for calls that stem from no scheduled function. */
  get current(): Lineage | null {
    return this.#call.lineage;
  }

  /** Sets the lineage of later calls. */
  begin(lineage: Lineage): void {
    this.#call.lineage = lineage;
  }

  /** Registers a callback to run if the function's writes are rolled back. */
  onUndone(undo: () => void): void {
    this.#call.undos.note(undo);
  }
}
