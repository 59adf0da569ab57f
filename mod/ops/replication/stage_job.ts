/** A point of the past staged on a running server: the work is done by a process of its own. */
import type { RestoreFault } from "../backups/restore/mod.ts";
import type { RestorePoint } from "./history.ts";
import type { FromProcess } from "./process/messages.ts";
import { ReplicaProcess } from "./process/replica_process.ts";
import type { ReplicaFault } from "./replica_error.ts";
import type { PointProgress, StagedPoint } from "./restore_point.ts";
import type { TargetPlace } from "./target/open_target.ts";

export interface StageJobOptions {
  readonly dataDir: string;
  readonly target: TargetPlace;
  readonly localFiles: boolean;
  readonly point: RestorePoint;
  /** Ends it; nothing is staged then. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: PointProgress) => void;
}

/** Why a point could not be staged. */
export class StageJobError extends Error {
  override readonly name = "StageJobError";
  readonly fault: ReplicaFault | RestoreFault | null;

  constructor(fault: StageJobError["fault"], message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Throws a `StageJobError` with the reason. */
export async function stageInProcess(options: StageJobOptions): Promise<StagedPoint> {
  const { signal, onProgress = () => {}, ...work } = options;
  const answer = Promise.withResolvers<(FromProcess & { type: "Staged" })["result"]>();
  const process = await ReplicaProcess.start({ type: "Begin", work: "stage", ...work }, (message) => {
    if (message.type === "Staged") answer.resolve(message.result);
    else if (message.type === "Progress") onProgress(message.progress);
  });
  const kill = () => process.kill();
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  void process.ended.then(() =>
    answer.resolve({
      ok: false,
      fault: null,
      message: "The process that did the work ended before it was done",
    })
  );
  const result = await answer.promise;
  await process.close(0);
  signal.removeEventListener("abort", kill);
  if (!result.ok) throw new StageJobError(result.fault, result.message);
  return result.staged;
}
