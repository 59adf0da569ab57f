/** Limits of a cluster over PostgreSQL. */
export const clusterLimits = {
  /** Duration of the lease, by the database's clock. */
  leaseMs: 3_000,
  /** Interval of renewals, and of checks for an ended lease: a third of its duration, so that one attempt may be lost. */
  renewMs: 1_000,
  /** Delay of the check after the expected end of a lease. */
  endedMs: 10,
  /** Random delay before a free lease is taken, so that few servers compete. */
  jitterMs: 150,
  /** Time that commits wait for an unreachable database. Then they fail with a retryable error. */
  writeWaitMs: 5_000,
  /** Timeout of a statement. After it, the connection is closed. */
  statementMs: 4_000,
  /** Time after which a renewal without a response is also sent on another connection. */
  leaseAnswerMs: 1_000,
  /** Timeout of a connection attempt. */
  connectMs: 3_000,
  /** Pause between connection attempts. */
  reconnectMs: 100,
  /** Time that a starting server waits for the database. */
  startMs: 30_000,
  /** Interval in which followers check for rows without a notification. */
  pollMs: 1_000,
  /** Interval in which a new holder of the lease checks whether all rows are applied. */
  applyCheckMs: 1,
  /** Maximum distance from the end of the log at which a server takes the lease. */
  takeRowsMax: 1_000,
  /** Time without progress after which a holder that does not lead releases the lease. */
  stuckMs: 10_000,
  /**
   * Delay of the next read for each received commit, about the time in which a busy leader makes one. Rows applied in one
   * transaction cost less.
   */
  gatherMsPerCommit: 0.25,
  /** Longest delay of that kind. */
  gatherMsMax: 50,
  /** Rows of one read. */
  rowsRead: 512,
  /** Bytes of one read, unless a single row is larger. */
  rowBytesRead: 8 * 2 ** 20,
  /** The same for a point-in-time restore, which may use a slow network. */
  restoreRowBytesRead: 2 * 2 ** 20,
  /** Timeout of a statement of a restore. */
  restoreStatementMs: 30_000,
  /** Time that a restore waits for an unreachable database, such as during a failover, and the pause between attempts. */
  restoreAwayMs: 30_000,
  restorePauseMs: 500,
  /** Rows after the newest snapshot that make the next one due. */
  snapshotRows: 200_000,
  /** The same in bytes. */
  snapshotBytes: 256 * 2 ** 20,
  /** Maximum age of the newest snapshot while there are commits. */
  snapshotEveryMs: 86_400_000,
  /** Pause before a failed download is repeated. */
  snapshotFetchRetryMs: 1_000,
  /** Pause after a failed snapshot. */
  snapshotRetryMs: 60_000,
  /** The same before the first snapshot, which other servers wait for. */
  firstSnapshotRetryMs: 5_000,
  /** Time that a starting server waits for the first snapshot, which may be large, and the interval of its checks. */
  firstSnapshotMs: 600_000,
  firstSnapshotCheckMs: 250,
  /** Number of snapshots. The log starts at the oldest one. */
  snapshotsKept: 2,
  /** Rows of the log that one statement removes at most. */
  rowsTrimmed: 2_000,
  /** Bytes of these rows, because a statement has a timeout. */
  rowBytesTrimmed: 16 * 2 ** 20,
  /** Size of the pieces of a bundle. */
  versionPieceBytes: 256 * 2 ** 10,
  /** Size of all bundles. A deploy beyond it is refused. */
  versionsBytesMax: 2 * 2 ** 30,
  /** Versions for rollbacks. Older ones are kept while a row of the log names them. */
  versionsKept: 10,
  /** Time after which a silent server is not listed. */
  memberMs: 60_000,
  /** Time after which a leader counts a silent server as gone. */
  silentMs: 3_000,
  /** Time after which a leader that no other server reaches releases the lease. Broken links recover sooner. */
  unreachedMs: 8_000,
  /** Number of other servers for that. With two servers, it is unknown which one is cut off. */
  othersMin: 2,
  /** Time in which a server that failed to lead does not take the lease. */
  holdOffMs: 10_000,
  /** Time that a new socket waits for earlier commits, so that its client sees no older state than before. */
  socketWaitMs: 3_000,
  /** Interval of the checks in that time. */
  socketCheckMs: 5,
  /** Minimum length of the secret. */
  secretCharsMin: 24,
  /** Time without a link to the leader after which a follower is not ready. */
  unlinkedMs: 5_000,
} as const;
