/**
 * To which scheduled function a call goes back. It stands in the `ctx` of the service's mutations as `lineage`; functions of
 * the app have none, and cannot change it.
 */
import type { Lineage } from "../../api/system_context.ts";
import type { Call } from "../runs/call.ts";

export class LineageApi {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  /** `null` for calls that go back to none. */
  get current(): Lineage | null {
    return this.#call.lineage;
  }

  /** What is called from here on goes back to this one. */
  begin(lineage: Lineage): void {
    this.#call.lineage = lineage;
  }

  /** What is to be done when what the function does now is undone. */
  onUndone(undo: () => void): void {
    this.#call.undos.note(undo);
  }
}
