/** Why a server cannot be part of a cluster, for whoever runs it. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
}
