/** Stages a point-in-time restore on a running server, in a separate process. */
import type { RestoreFailureCause } from "../backups/restore/mod.ts";
import type { RestorePoint } from "./history.ts";
import { oneJob } from "./process/one_job.ts";
import type { PointProgress, StagedPoint } from "./restore_point.ts";
import type { LocationFault, ObjectLocation } from "../../kit/locations/object_store.ts";

export interface StageJobOptions {
  readonly dataDir: string;
  readonly target: ObjectLocation;
  readonly localFiles: boolean;
  readonly point: RestorePoint;
  /** Aborts the job; then nothing is staged. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: PointProgress) => void;
}

/** Reason why a point could not be staged. */
export class StageJobError extends Error {
  override readonly name = "StageJobError";
  readonly fault: LocationFault | RestoreFailureCause | null;

  constructor(fault: StageJobError["fault"], message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Throws a `StageJobError` with the reason. */
export async function stageInProcess(options: StageJobOptions): Promise<StagedPoint> {
  const { signal, onProgress = () => {}, ...work } = options;
  const result = await oneJob({ type: "Begin", work: "stage", ...work }, {
    signal,
    resultOf(message) {
      if (message.type === "Progress") onProgress(message.progress);
      return message.type === "Staged" ? message.result : undefined;
    },
  });
  if (!result.ok) throw new StageJobError(result.fault, result.message);
  return result.staged;
}
