/** Bounds of a cluster over PostgreSQL, each with its reason. */
export const clusterLimits = {
  /** A leader that was not heard of for this long, by the database's clock, is taken over from. */
  leaseMs: 3_000,
  /** A lease is renewed, and one that ended is looked for, so often: a third of it, so that one lost try costs nothing. */
  tendMs: 1_000,
  /** A lease that is to end is looked at so long after it. */
  endedMs: 10,
  /** Of those who see a lease end at once one should come first. */
  jitterMs: 150,
  /** Commits wait this long for a database that is away, then they fail and can be tried again. */
  writeWaitMs: 5_000,
  /** A statement without an answer for this long has none: the connection is given up. */
  statementMs: 4_000,
  /** A renewal of the lease without an answer for this long goes by another connection as well: a third of the lease. */
  leaseAnswerMs: 1_000,
  /** A connection that is not there after this long is tried anew. */
  connectMs: 3_000,
  /** Pause between two tries to connect. */
  reconnectMs: 100,
  /** A server that starts waits this long for the database. */
  startMs: 30_000,
  /** Who changes a table that others use waits so long for its lock, and tries again after that pause. */
  lockMs: 200,
  lockPauseMs: 500,
  /** Followers look for rows this often when nobody tells them of any. */
  pollMs: 1_000,
  /** Who has taken the lease looks so often whether all rows are applied. */
  applyLookMs: 1,
  /** Only who is behind the end of the log by fewer rows takes the lease: what is applied within a moment. */
  takeRowsMax: 1_000,
  /** A lease is given up when its holder does not lead and has not come nearer to it for this long. */
  stuckMs: 10_000,
  /**
   * Who was given commits reads on so much later for each of them, about as long as a leader under full load makes as many:
   * what is applied in one transaction costs less, and few commits are read on from at once. At most so long.
   */
  gatherMsPerCommit: 0.25,
  gatherMsMax: 50,
  /** The same where nobody looks: above 200 commits/s documents and pages that change again and again are written once a second. */
  unseenGatherMsPerCommit: 5,
  unseenGatherMsMax: 1_000,
  /** Whoever asked for something here is taken to look for so long. */
  lookMs: 10_000,
  /** Who asks first after nobody has waits so long for what came together. */
  firstLookWaitMs: 1_000,
  /** Rows that are read at once. */
  rowsRead: 512,
  /** Bytes of them: one row may be larger. */
  rowBytesRead: 8 * 2 ** 20,
  /** The same for who restores a point in time, perhaps over a slow link. */
  restoreRowBytesRead: 2 * 2 ** 20,
  /** A statement of theirs has so long, in the database and with its answer. */
  restoreStatementMs: 30_000,
  /** When the database is away they ask again for this long, as while another one takes over, with such a pause. */
  restoreAwayMs: 30_000,
  restorePauseMs: 500,
  /** Rows behind the newest snapshot after which another one is made. */
  snapshotRows: 200_000,
  /** The same in bytes. */
  snapshotBytes: 256 * 2 ** 20,
  /** A snapshot is looked for so often: a day of little work makes one, too. */
  snapshotEveryMs: 86_400_000,
  /** One that could not be fetched is tried again after this long. */
  snapshotFetchRetryMs: 1_000,
  /** A snapshot that failed is tried again after this long. */
  snapshotRetryMs: 60_000,
  /** The same where there is none yet: nobody else can begin. */
  firstSnapshotRetryMs: 5_000,
  /** A server that begins waits this long for a first one, which may be of large data, and looks so often. */
  firstSnapshotMs: 600_000,
  firstSnapshotLookMs: 250,
  /** Snapshots that are kept; the log is kept from the oldest of them on. */
  snapshotsKept: 2,
  /** Rows of the log that one statement removes. */
  rowsTrimmed: 2_000,
  /** Bytes of them: a statement has only so long. */
  rowBytesTrimmed: 16 * 2 ** 20,
  /** Pieces in which bundles of code lie in the database. */
  versionPieceBytes: 256 * 2 ** 10,
  /** Bytes of all bundles; a deploy is refused that would make it more. */
  versionsBytesMax: 2 * 2 ** 30,
  /** Versions to which a cluster can go back; older ones are kept while a server may come by them in the log. */
  versionsKept: 10,
  /** A server that was not heard of for this long is not listed any more. */
  memberMs: 60_000,
  /** A leader counts those others that were heard of within this: three looks. */
  heardMs: 3_000,
  /** A leader that none of several others reaches for this long leaves the lease to them: links that break come back sooner. */
  unreachedMs: 8_000,
  /** Of so many: of two servers that do not reach one another nobody knows which is cut off. */
  othersMin: 2,
  /** A server that could not serve as the leader leaves the lease to others for this long. */
  holdOffMs: 10_000,
  /** A socket waits this long for what was committed before it came, so that nobody sees an older state than before. */
  socketWaitMs: 3_000,
  /** It looks so often. */
  socketLookMs: 5,
  /** A server that has made ready to lead waits this long for the lease. */
  handOverMs: 20_000,
  /** What a server that comes to lead had begun to answer before gets this long. */
  answersMs: 1_000,
  /** A secret of fewer characters could be guessed. */
  secretCharsMin: 24,
  /** A follower without a link to the leader for this long is not ready. */
  unlinkedMs: 5_000,
} as const;
