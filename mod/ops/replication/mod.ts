/** Replication: the journal shipped to a folder or a bucket, and states of the past rebuilt from there. */
export type { Brought } from "./follow/bring.ts";
export { BringError, bringInProcess, fetchInProcess } from "./follow/bring_job.ts";
export { type CommitLog, LogGapError, type LogPart, type LogPosition } from "./follow/commit_log.ts";
export { Follower, type FollowerFigures, type FollowSide } from "./follow/follower.ts";
export { ProcessLog } from "./follow/process_log.ts";
export { type Generation, planRestore, rangesText, type RestorePlan, type RestorePoint } from "./history.ts";
export { isGeneration } from "./names.ts";
export { ReplicaError } from "./replica_error.ts";
export { Replication, type ReplicationOptions } from "./replication.ts";
export {
  listGenerations,
  planText,
  type PointProgress,
  type StagedPoint,
  stagePoint,
} from "./restore_point.ts";
export { type ReplicationPort, replicationRoutes } from "./routes.ts";
export { stageInProcess } from "./stage_job.ts";
export { verifyReplica, type VerifyReport } from "./verify.ts";
export { type LoggedSnapshot, LogReplica, type LogSource } from "./target/log_replica.ts";
export { openTarget, type ReplicaTarget, targetProbe } from "./target/replica_target.ts";
