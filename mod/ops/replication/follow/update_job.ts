/** Updates a database to the newest state of a replica in a separate process. */
import type { Begin } from "../process/messages.ts";
import { oneJob } from "../process/one_job.ts";
import type { LocationFault, ObjectLocation } from "../../../kit/locations/object_store.ts";
import type { FollowerUpdate, FollowerUpdateOptions, SnapshotOptions } from "./update_follower.ts";

export interface FollowerUpdateJobOptions extends Pick<FollowerUpdateOptions, "dataDir" | "step"> {
  readonly target: ObjectLocation;
  /** Aborts the job; the next job restarts the unfinished step. */
  readonly signal: AbortSignal;
}

/** Thrown when a database cannot be updated. */
export class FollowerUpdateError extends Error {
  override readonly name = "FollowerUpdateError";
  readonly fault: LocationFault | null;

  constructor(fault: LocationFault | null, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Throws a `FollowerUpdateError` with the reason. */
export async function updateFollowerInProcess(
  { signal, ...work }: FollowerUpdateJobOptions,
): Promise<FollowerUpdate> {
  return await runUpdate({ type: "Begin", work: "update", ...work }, signal);
}

export interface FetchSnapshotJobOptions extends SnapshotOptions {
  readonly target: ObjectLocation;
}

/** Replaces the database of a data folder, which no process may have open, with a snapshot. Throws a `FollowerUpdateError`. */
export async function fetchSnapshotInProcess({ signal, ...work }: FetchSnapshotJobOptions): Promise<void> {
  await runUpdate({ type: "Begin", work: "fetch", ...work }, signal);
}

async function runUpdate(begin: Begin, signal: AbortSignal): Promise<FollowerUpdate> {
  const result = await oneJob(begin, {
    signal,
    resultOf: (message) => message.type === "Updated" ? message.result : undefined,
  });
  if (!result.ok) throw new FollowerUpdateError(result.fault, result.message);
  return result.update;
}
