/** The reason why a server cannot join a cluster, as a message for the operator. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
}
