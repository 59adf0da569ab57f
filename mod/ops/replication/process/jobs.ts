/** Jobs of a separate process: staging a point in time, and updating the database of a follower. */
import { ServiceError } from "../../../errors.ts";
import type { LocationFault, ObjectLocation } from "../../../kit/locations/object_store.ts";
import type { RestoreFailureCause } from "../../backups/restore/mod.ts";
import type { FollowerUpdate, FollowerUpdateOptions, SnapshotOptions } from "../follow/update_follower.ts";
import type { DocumentHistory } from "../document_history.ts";
import type { RestorePoint } from "../history.ts";
import type { PointProgress, StagedPoint } from "../restore_point.ts";
import type { Begin, FromProcess } from "./messages.ts";
import { ReplicaProcess } from "./replica_process.ts";

/** Returned when the process exits without a result. */
export interface LostJob {
  readonly ok: false;
  readonly fault: null;
  readonly message: string;
}

export interface OneJobOptions<Result> {
  /** Ends the process. */
  readonly signal: AbortSignal;
  readonly resultOf: (message: FromProcess) => Result | undefined;
}

/** A process that does one job, reports its result and exits. */
async function oneJob<Result>(
  begin: Begin,
  { signal, resultOf }: OneJobOptions<Result>,
): Promise<Result | LostJob> {
  const answer = Promise.withResolvers<Result | LostJob>();
  const process = await ReplicaProcess.start(begin, (message) => {
    const result = resultOf(message);
    if (result !== undefined) answer.resolve(result);
  });
  const kill = () => process.kill();
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  const message = "The process exited before it had finished";
  void process.ended.then(() => answer.resolve({ ok: false, fault: null, message }));
  const result = await answer.promise;
  await process.close(0);
  signal.removeEventListener("abort", kill);
  return result;
}

export interface StageJobOptions {
  readonly dataDir: string;
  readonly target: ObjectLocation;
  readonly localFiles: boolean;
  readonly point: RestorePoint;
  /** Path in the data folder for the database. Nothing is staged then. */
  readonly databaseTo?: string;
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

export interface HistoryJobOptions {
  readonly dataDir: string;
  readonly target: ObjectLocation;
  readonly id: string;
  /** Path in the data folder for an unpacked snapshot, which is removed afterwards. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Reads the earlier states of a document. Throws a `ServiceError` with the reason. */
export async function historyInProcess({ signal, ...work }: HistoryJobOptions): Promise<DocumentHistory> {
  const result = await oneJob({ type: "Begin", work: "history", ...work }, {
    signal,
    resultOf: (message) => message.type === "History" ? message.result : undefined,
  });
  if (!result.ok) throw new ServiceError("unavailable", `Cannot read the replica: ${result.message}`);
  return result.history;
}

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
