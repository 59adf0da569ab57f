/** Updates a database to the newest state of a replica in a separate process. */
import type { ReplicaFault } from "../replica_error.ts";
import type { Begin } from "../process/messages.ts";
import { oneJob } from "../process/one_job.ts";
import { type ObjectLocation } from "../../../kit/locations/object_store.ts";
import type { BringOptions, Brought, SnapshotOptions } from "./bring.ts";

export interface BringJobOptions extends Pick<BringOptions, "dataDir" | "step"> {
  readonly target: ObjectLocation;
  /** Aborts the job; the next job restarts the unfinished step. */
  readonly signal: AbortSignal;
}

/** Thrown when a database cannot be updated. */
export class BringError extends Error {
  override readonly name = "BringError";
  readonly fault: ReplicaFault | null;

  constructor(fault: ReplicaFault | null, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Throws a `BringError` with the reason. */
export async function bringInProcess({ signal, ...work }: BringJobOptions): Promise<Brought> {
  return await brought({ type: "Begin", work: "bring", ...work }, signal);
}

export interface FetchJobOptions extends SnapshotOptions {
  readonly target: ObjectLocation;
}

/** Puts a snapshot in the place of the database of a data folder that nobody has open. Throws a `BringError`. */
export async function fetchInProcess({ signal, ...work }: FetchJobOptions): Promise<void> {
  await brought({ type: "Begin", work: "fetch", ...work }, signal);
}

async function brought(begin: Begin, signal: AbortSignal): Promise<Brought> {
  const result = await oneJob(begin, {
    signal,
    resultOf: (message) => message.type === "Brought" ? message.result : undefined,
  });
  if (!result.ok) throw new BringError(result.fault, result.message);
  return result.brought;
}
