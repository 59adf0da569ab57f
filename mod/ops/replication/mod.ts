/** Replication: the journal shipped to a folder or a bucket, and states of the past rebuilt from there. */
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
export { type ReplicaTarget } from "./target/replica_target.ts";
export { openTarget, placeText, type TargetPlace } from "./target/open_target.ts";
