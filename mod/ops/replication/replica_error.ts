/** Errors of replicas, shown to operators. */
import type { LocationFault } from "../../kit/locations/object_store.ts";

/**
 * `target`: the contents of the target are not as expected. `refused`: the target denies access. `away`: it cannot be reached
 * at present. `asked`: it does not have what was requested.
 */
export type ReplicaFault = LocationFault;

export class ReplicaError extends Error {
  override readonly name = "ReplicaError";
  readonly fault: ReplicaFault;

  constructor(fault: ReplicaFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}
