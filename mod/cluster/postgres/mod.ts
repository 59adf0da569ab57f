/** Several servers on one PostgreSQL, which stores the log of commits and the lease of the leader. */
export { ClusterError } from "./cluster_error.ts";
export { type ClusterFigures, PostgresCluster } from "./cluster.ts";
export type { ClusterRole, ServedState } from "./election.ts";
export { openClusterReplica } from "./cluster_source.ts";
export type { Member } from "./members.ts";
export type { SharedVersion, SharedVersions } from "./shared_versions.ts";
