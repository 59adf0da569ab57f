/** Replication: ships the journal to a folder or bucket, and restores earlier states from there. */
export type { FollowerUpdate } from "./follow/update_follower.ts";
export {
  fetchSnapshotInProcess,
  FollowerUpdateError,
  historyInProcess,
  stageInProcess,
  updateFollowerInProcess,
} from "./process/jobs.ts";
export {
  type CommitLog,
  Follower,
  type FollowerDatabase,
  type FollowerFigures,
  type LogBatch,
  LogGapError,
  type LogPosition,
} from "./follow/follower.ts";
export { ProcessLog } from "./follow/process_log.ts";
export type { DocumentHistory } from "./document_history.ts";
export { type Generation, planRestore, rangesText, type RestorePlan, type RestorePoint } from "./history.ts";
export { isGeneration } from "./names.ts";
export { Replication, type ReplicationOptions } from "./replication.ts";
export {
  listGenerations,
  planText,
  type PointProgress,
  type StagedPoint,
  stagePoint,
} from "./restore_point.ts";
export { type ReplicationPort, replicationRoutes } from "./routes.ts";
export { verifyReplica, type VerifyReport } from "./verify.ts";
export { type LoggedSnapshot, LogReplica, type LogSource } from "./log_replica.ts";
export { openTarget, type ReplicaReader, targetProbe } from "./replica_target.ts";
