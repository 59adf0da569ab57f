/** Several servers on one PostgreSQL, which stores the log of commits and the lease of the leader. */
export { ClusterError } from "./cluster_error.ts";
export { type ClusterFigures, type ClusterRole, PostgresCluster, type ServedState } from "./cluster.ts";
export { openClusterReplica } from "./cluster_source.ts";
export type { Member } from "./members.ts";
export type { SharedVersion, SharedVersions } from "./shared_versions.ts";
