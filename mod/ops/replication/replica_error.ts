/** Why something cannot be done with a replica, in words for whoever asked for it. */

/**
 * Whose trouble it is: `target`, what lies there is not as it should be; `refused`, the target does not let us; `away`, it
 * cannot be reached now; `asked`, there is nothing like what was asked for.
 */
export type ReplicaFault = "target" | "refused" | "away" | "asked";

export class ReplicaError extends Error {
  override readonly name = "ReplicaError";
  readonly fault: ReplicaFault;

  constructor(fault: ReplicaFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}
