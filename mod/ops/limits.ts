/** The bounds of operations. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Backups, restores, exports, imports, the admin endpoints and the metrics. */
export const opsLimits = {
  /** Documents of a table counted for administrators whenever the table changes; how many more there are is asked for. */
  adminCountMax: 10_000,
  /** Documents looked at for one page when conditions leave some out. */
  adminRowsReadMax: 4_000,
  /** Characters of documents with which a page for administrators ends, and a step of a deletion of many. */
  adminPageCharsMax: 2 * MiB,
  /** Scheduled backups that administrators are told of, the newest. */
  scheduledTold: 200,
  /** The furthest position that administrators go to at once in an index; the keys before it are all read. */
  adminPositionMax: 10_000_000,
  /** Documents that administrators store or delete in one call. */
  adminDocumentsMax: 1_000,
  /** Conditions of one look at a table. */
  adminConditionsMax: 20,
  /** Longest text that administrators search for. */
  adminSearchCharsMax: 1_000,
  /** Documents deleted in one step of a deletion of many. */
  adminDeletedAtOnce: 500,
  /** Long works of administrators at once; one more is refused. */
  adminWorksMax: 4,
  /** Works that have ended and are still shown. */
  adminWorksKept: 100,
  /** Table sizes are looked up again after this long. */
  tableSizesKnownMs: 10_000,
  /** Longest text of an argument in the audit log; the rest is cut off. */
  auditTextCharsMax: 200,
  /** Arguments of one call that are noted. */
  auditArgsMax: 20,
  /** How long the audit log is kept: never less than 90 days. */
  auditKeptMs: 400 * 86_400_000,
  /** Rows of the audit log deleted in one step. */
  auditRowsCleanedMax: 500,
  /** Time between two looks at how late main's event loop is; only with `--metrics`. */
  loopLagSampleMs: 200,
  /** For so long the memory of the isolates is not asked for again, however often the metrics are read. */
  memoryKnownMs: 1_000,
  /** Bytes of one line of JSONL that is imported: the largest document has fewer, with every character escaped. */
  importLineBytesMax: 8 * MiB,
  /** Rows written in one commit of an import. */
  importBatchRowsMax: 256,
  /** Characters of the rows of such a commit, as they stand in the file; a row that is longer goes alone. */
  importBatchCharsMax: 512 * KiB,
  /** Rows of one imported file. */
  importRowsMax: 10_000_000,
  /** Documents of an export of Convex, whose ids are kept in memory. */
  snapshotIdsMax: 5_000_000,
  /** Files in such an export. */
  snapshotFilesMax: 1_000_000,
  /** Bad rows that are told before an import is given up. */
  importFaultsMax: 20,
  /** Characters told of what is wrong with one row; the rest is cut. */
  importFaultCharsMax: 500,
  /** Documents deleted in one commit when an import empties a table. */
  importDeletedRowsMax: 512,
  /** Characters of such documents. */
  importDeletedCharsMax: 4 * MiB,
  /** Body of an import over HTTP; it is kept in a temporary file until its rows are checked. */
  importBodyBytesMax: 1024 * MiB,
  /** An import over HTTP whose body brings nothing for this long has broken off. */
  importStallMs: 60_000,
  /** Exports over HTTP at once: each holds a snapshot, which keeps the write-ahead log from being used again. */
  exportsAtOnceMax: 4,
  /** An export over HTTP whose client takes nothing for this long is ended. */
  exportStallMs: 60_000,
  /** An export over HTTP that takes longer is ended. */
  exportMsMax: 6 * 3_600_000,
  /**
   * Bytes of the write-ahead log above which exports over HTTP are ended when it has grown since they began: a slow client
   * keeps the log from being used again, and a busy server would fill the disk with it.
   */
  exportLogBytesMax: 1024 * MiB,
  /** Time between two looks at it. */
  exportLogCheckMs: 1_000,
  /** Longest filter of an export over HTTP, as JSON. */
  exportWhereCharsMax: 16 * KiB,
  /** Characters of an export made at once; the server does its other work in between. */
  exportPieceChars: 64 * KiB,
  /** Longest JSON body of an admin endpoint. */
  bodyBytesMax: 64 * KiB,
  /** How long a session lasts in which an administrator acts as a user, when the request does not say. */
  impersonationSecondsDefault: 900,
  /** Longest such session that a request may ask for. */
  impersonationSecondsMax: 86_400,
  /** Largest archive that is taken over HTTP; the disk may set a lower bound. */
  uploadedArchiveBytesMax: 1024 * 1024 * MiB,
  /** An archive that brings no byte for this long has broken off. */
  uploadedArchiveStallMs: 60_000,
  /** Bytes of such an archive between two looks at the room on the disk; less than `diskReserveBytes`. */
  uploadedArchiveCheckBytes: 16 * MiB,
  /**
   * Bytes of such a body, or of one that is imported, read at once. No more than a client sends in one chunk: reads into
   * larger buffers, which stay half empty, take milliseconds each with the chunked encoding.
   */
  receivedChunkBytes: 64 * KiB,
  /** While so long is spent waiting for such a body, at least `receivedWindowBytesMin` bytes of it have to come. */
  receivedWindowMs: 60_000,
  /** About 17 KB/s: whoever sends more slowly keeps all others out. */
  receivedWindowBytesMin: 1 * MiB,
  /** Characters of the name under which an uploaded archive is shown. */
  archiveSourceCharsMax: 255,
  /** Bytes that one frame of a backup archive holds, compressed on its own. */
  archiveFrameBytes: 1 * MiB,
  /** Files in one backup archive. */
  archiveEntriesMax: 1_000_000,
  /** Characters in the name of a file in a backup archive. */
  archiveNameCharsMax: 250,
  /** Bytes of the manifest of a backup archive. */
  archiveManifestBytesMax: 64 * KiB,
  /** Bytes of a backup archive that belong to no file, above what the format needs: padding at its end. */
  archiveSlackBytes: 16 * MiB,
  /** Time between two tries to take what another process holds, as the right to make a backup or to stage a restore. */
  heldLookMs: 100,
  /** Who cancels a restore while another is being staged waits for so long. */
  stagingWaitMs: 10_000,
  /** Who stages a restore while another is being staged or cancelled waits for so long. */
  stagingHeldMs: 2_000,
  /** Times a state of the database is taken for one backup, as files that it names may go at that moment. */
  snapshotAttemptsMax: 3,
  /** Bytes of a backup written between two looks at the room on the disk; less than `diskReserveBytes`. */
  roomCheckBytes: 16 * MiB,
  /** Larger files are put into a backup piece by piece. */
  wholeFileBytesMax: 256 * KiB,
  /** Files without contents that are told apart when a backup is made; of more it is not asked why. */
  missingFilesMax: 10_000,
  /** Shortest time between two scheduled backups. One that takes longer than that is followed by the next turn's. */
  backupEveryMsMin: 1_000,
  /** Longest. */
  backupEveryMsMax: 366 * 86_400_000,
  /** Scheduled backups that are left when `--backup-keep` does not say. */
  backupsKeptDefault: 7,
  /** Most that can be asked for. */
  backupsKeptMax: 10_000,
  /** Pause before a scheduled backup that failed is tried again; then twice as long. */
  backupRetryMs: 60_000,
  /** Longest such pause; the next turn comes in any case. */
  backupRetryMsMax: 3_600_000,
  /** A scheduled backup made so short a time ago is not made again when its turn comes. */
  backupFreshMs: 60_000,
  /** Longest wait for a backup that is late without a look at the clock, which may be set. */
  backupLookMs: 3_600_000,
  /** A step of trying out a place that takes longer has failed. */
  placeStepMs: 20_000,
  /** A request to a bucket of backups that has no answer for this long has failed. */
  bucketRequestMs: 300_000,
  /** Bytes of an archive that are sent to a bucket at once and held in memory. */
  bucketPartBytes: 8 * MiB,
  /** Parts of one upload: services refuse more, so those of archives above 80 GiB are larger. */
  bucketPartsMax: 10_000,
  /** An archive from a bucket that brings no byte for this long has broken off. */
  downloadStallMs: 60_000,
  /** Times that a download which broke off is gone on with although it brought nothing new. */
  downloadAttemptsMax: 5,
  /** Archives in a bucket that are named to somebody who named none of them. */
  archivesNamedMax: 10,
  /** Backups and checks of archives under way or waiting; one more is refused. */
  maintenanceJobsMax: 16,
  /** The process that does them ends when it had nothing to do for this long. */
  maintenanceIdleMs: 30_000,
  /** Private writable memory of that process, above what the runtime itself reserves. */
  maintenanceDataMiB: 1_024,
  /** Longest message between it and the server. */
  maintenanceLineCharsMax: 1 * MiB,
  /** Room left on the disk when an archive is unpacked: a server may run beside it. */
  diskReserveBytes: 64 * MiB,
} as const;

/** The execution log: what waits for its process, what one run may bring, and what one answer may cost. */
export const logLimits = {
  /** Runs that wait in main for the log process; of more, the newest are dropped and counted. */
  queuedRunsMax: 50_000,
  /** Characters of the log lines and errors of such runs. */
  queuedCharsMax: 32 * MiB,
  /** Runs sent to the log process at once. */
  batchRunsMax: 5_000,
  /** A run is on its way to the log process after this long; a longer time makes larger transactions there. */
  flushMs: 200,
  /** Characters of log lines kept of one run; the rest is cut, with a line that says so. */
  linesCharsMax: 64 * KiB,
  /** Characters of a function's path, which a client may have made up. */
  pathCharsMax: 256,
  /** Functions that the log tells apart by number; the paths of more stand in their runs only. */
  functionsMax: 20_000,
  /** Runs in one part of the log. Old runs leave the log by parts. */
  segmentRowsMax: 200_000,
  /** Parts into which what is kept falls at least, by age and by size. */
  segmentsMin: 8,
  /** Shortest time that one part covers, however short the time that runs are kept. */
  segmentMsMin: 60_000,
  /** Runs looked at between two looks at the clock while a page is searched. */
  searchStepRows: 16_384,
  /** A search that has taken so long ends with what it found and says how far back it came. */
  searchMs: 60,
  /** Likewise, the count of runs over time. */
  histogramMs: 60,
  /** Bars of one histogram. */
  histogramBarsMax: 240,
  /** Runs on a page when the request does not say. */
  pageRunsDefault: 50,
  /** Most that a request may ask for. */
  pageRunsMax: 500,
  /** Characters of a text that is looked for. */
  textCharsMax: 200,
  /** Names of functions in one filter. */
  filterFunctionsMax: 50,
  /** Streams of the log at once; one more is refused. */
  streamsMax: 256,
  /** Runs that a stream gets at once; of more it is told how many it missed. */
  streamRunsMax: 20,
  /** Streams that are written to in one turn; the others wait for the next, so that calls come in between. */
  streamWritesMax: 4,
  /** Time between two such turns: 40 streams get what came every 200 ms, and 200 every second. */
  streamTurnMs: 20,
  /** Characters of the events that the log process tells of at once; runs beyond are missed. */
  tailedCharsMax: 8 * MiB,
  /** Runs that a stream gets that goes on after a pause; of more it is told how many it missed. */
  backlogRunsMax: 500,
  /** Bytes that may wait for a reader; what comes while there are more it misses. */
  streamBytesMax: 256 * KiB,
  /** Time between two heartbeats of a stream. */
  heartbeatMs: 15_000,
  /** A reader that takes nothing for this long is given up. */
  streamStallMs: 120_000,
  /** How long runs are kept unless `--log-keep` says. */
  keepMsDefault: 7 * 86_400_000,
  /** Shortest and longest time that can be asked for. */
  keepMsMin: 60_000,
  keepMsMax: 3_660 * 86_400_000,
  /** Size of the log unless `--log-max-size` says. */
  bytesDefault: 1024 * MiB,
  /** Smallest size that can be asked for. */
  bytesMin: 16 * MiB,
  /** Time between two looks at what has become too old or too much. */
  tidyMs: 10_000,
  /** Questions to the log process that wait for their answers; one more is refused. */
  questionsMax: 64,
  /** A log process that leaves a question unanswered for so long is started anew. */
  answerMs: 30_000,
  /** Pause before a log process that was lost is started again; then twice as long. */
  restartMs: 1_000,
  restartMsMax: 60_000,
  /** Longest message of the log process: a page of the largest runs has fewer characters. */
  messageCharsMax: 128 * MiB,
  /** Private writable memory of the log process, above what the runtime itself reserves. */
  processDataMiB: 512,
  /** Page cache of the log's database. */
  cacheBytes: 32 * MiB,
  /** Prepared statements kept for it. */
  statementsMax: 1_000,
} as const;

/** Limits of replication. */
export const replicationLimits = {
  /** Time between a commit and its shipping when `--replicate-every` does not say, and the bounds of what it may say. */
  everyMs: 1_000,
  everyMsMin: 100,
  everyMsMax: 3_600_000,
  /** Time between two snapshots when `--snapshot-every` does not say, and the bounds of what it may say. */
  snapshotEveryMs: 86_400_000,
  snapshotEveryMsMin: 1_000,
  snapshotEveryMsMax: 30 * 86_400_000,
  /** How far back restores reach when `--replicate-keep` does not say. */
  keepMs: 7 * 86_400_000,
  /** Journal that may wait when `--replicate-max-pending` does not say. */
  maxPendingBytes: 1024 * MiB,
  /** Least that can be asked for: a few groups of large documents. */
  maxPendingBytesMin: 1 * MiB,
  /** After a snapshot that failed the next is tried so much later. */
  snapshotRetryMs: 60_000,
  /** Free bytes of the data folder's disk below which a journal that cannot be shipped is dropped. */
  diskReserveBytes: 256 * MiB,
  /** A journal with less in it is not what fills the disk. */
  pendingBytesKept: 16 * MiB,
  /** Largest object that is read into memory: a segment is far smaller. */
  objectBytesMax: 256 * MiB,
  /** What was being written to a folder when a process was killed is removed when it is this old. */
  partialKeptMs: 3_600_000,
  /** What a try of the place has left at a target is removed when it is this old, and so many of them at a time. */
  triedKeptMs: 3_600_000,
  triesRemovedMax: 100,
  /** An upload to a bucket in parts that was not ended is given up when it was begun so long ago: large ones take hours. */
  uploadKeptMs: 3 * 86_400_000,
  /** A request to a bucket that has no answer for this long has failed. */
  requestMs: 30_000,
  /** How often it is tried within that time: what a replica asks for nobody waits for who could try again. */
  requestAttempts: 6,
  /** How often an object whose bytes break off is gone on with although that brought nothing new. */
  readAttemptsMax: 2,
  /** Where a bucket knows no conditional writes: the pause after which a new owner looks whether it is the owner. */
  settleMs: 500,
  /** Pauses after a failed try to ship grow from one to the other. */
  retryMsMin: 1_000,
  retryMsMax: 30_000,
  /** How often a listing is asked for again that lacks what was confirmed, and after which time. */
  lateListings: 5,
  lateListingMs: 1_000,
  /**
   * When neighbouring segments are made into one of the next level: when they span this time, or are this many, or have
   * this many bytes.
   */
  merges: [
    { spanMs: 300_000, pieces: 300, bytes: 8 * MiB },
    { spanMs: 3_600_000, pieces: 60, bytes: 32 * MiB },
  ],
  /** Bytes of shipped segments kept in memory for the next merge; others are read from the target. */
  mergeCacheBytes: 16 * MiB,
  /** Time between two looks for what is too old, without a snapshot in between. */
  sweepMs: 3_600_000,
  /** Snapshots of a generation, with what only they need, that one such look removes. */
  snapshotsSwept: 1,
  /** While the wall clock is ahead of the time by which that is decided, the latter goes so much faster. */
  clockCatchUp: 1 / 8,
  /** From so much on it is told that the wall clock is ahead. */
  clockAheadMs: 86_400_000,
  /** What is shipped is begun so much earlier than it is due, as shipping took lately; at most half the time between two. */
  leadShareMax: 0.5,
  /** Private memory of the process that ships. */
  processDataMiB: 512,
  /** How long the server waits at its start for the target's first answer, and at its end for the last segment. */
  openMs: 10_000,
  /** How long a server that begins a generation waits for its snapshot before it serves. */
  firstSnapshotMs: 30_000,
  closeMs: 5_000,
  /** Rows that a follower applies in one group, and their characters: the last may bring more. */
  followedRows: 512,
  followedChars: 2 * MiB,
  /** Characters of a row in one line from the process that reads a replica. */
  pieceChars: 512 * KiB,
  /** Longest line between the server and that process. */
  lineCharsMax: 4 * MiB,
  /** A restarted process that ships waits so long, at first and at most. */
  restartMsMin: 1_000,
  restartMsMax: 60_000,
  /** Errors of shipping that are told in the status. */
  errorsKept: 10,
  /** Journal rows that a restore takes before it says how far it is. */
  rowsPerPause: 4_096,
  /** Segments that a restore fetches ahead, which it reads as a whole; larger ones are read some bytes at a time. */
  segmentsAhead: 4,
  segmentBytesWhole: 2 * MiB,
  /** Bytes read at once of a larger one in a folder. */
  streamChunkBytes: 256 * KiB,
  /** How often in a row it looks for what a segment that is gone was merged into. */
  mergedLooks: 3,
  /** What a listing lacks may be in the next one, so much later. */
  mergedLookMs: 300,
  /** What a restore is taken to do in a second when its time is told ahead. */
  bytesPerSecond: 20 * MiB,
  rowsPerSecond: 20_000,
  /** Least time between two requests to the address of `--heartbeat-url`, and how long one may take. */
  heartbeatMs: 60_000,
  heartbeatTimeoutMs: 10_000,
} as const;

/** Figures of a running server. */
export const statsLimits = {
  /** Functions counted one by one; the runs of more are counted together. */
  functionsMax: 500,
  /** Looks at sockets, memory and disk that are kept, one a minute. */
  gaugesKept: 61,
  /** Shortest span that is counted on its own; what is left of it at a crash is lost. */
  slotMs: 10_000,
  /** Tables are not measured again for so long: it reads every page of the database. */
  sizesKnownMs: 300_000,
  /** Memory and disk are not asked for again for so long. */
  machineKnownMs: 2_000,
  /** `/api/health/ready` says that reads, commits or pushes work when that was seen within so long. */
  readySeenMs: 10_000,
  /** A look at them that takes longer has failed. */
  readyMs: 5_000,
  /** A server that follows another is not ready while it is further behind. */
  followerLateMs: 60_000,
} as const;

/** Deploying functions to a running server, and migrations of tables. */
export const deployLimits = {
  /** Bundles that are uploaded at once, one by each caller. */
  uploadsMax: 8,
  /** Bytes of a bundle as it is sent. */
  bundleBytesMax: 256 * MiB,
  /** Bytes of its files. */
  filesBytesMax: 512 * MiB,
  /** Bytes of one of them. */
  fileBytesMax: 64 * MiB,
  /** Its files: functions, packages and front end together. */
  filesMax: 25_000,
  /** Longest path of a file in it. */
  pathCharsMax: 400,
  /** Its description, which comes first. */
  manifestBytesMax: 32 * MiB,
  /** An upload that brings nothing for this long has broken off. */
  stallMs: 30_000,
  /** Of a bundle that is refused unread so much is taken, for so long, so that its sender sees the answer. */
  drainBytesMax: 256 * MiB,
  drainMs: 5_000,
  /** Documents named for each table that does not fit; all are counted. */
  misfitsTold: 10,
  /** Functions named that waiting jobs call and a version lacks. */
  lostFunctionsTold: 100,
  /** Longest reason told of one of them. */
  misfitCharsMax: 300,
  /** How long the documents may be looked at before a deploy is given up; nobody waits meanwhile. */
  checkMs: 15 * 60_000,
  /** Deploy keys that are not revoked. */
  keysMax: 100,
  /** Longest name of a deploy key. */
  keyNameCharsMax: 100,
  /** When a key was used last is noted no more often than this. */
  keyUseNotedMs: 60_000,
  /** Variables of `ctx.env` that the server keeps. */
  variablesMax: 200,
  /** Longest value of one. */
  variableCharsMax: 16 * KiB,
  /** Documents in one step of a migration. */
  migrationStepRowsMax: 256,
  /** Steps are made so long that they take about this: nobody else writes meanwhile. */
  migrationStepMsAimed: 50,
  /** Documents that a dry run tries. */
  migrationSampleMax: 20,
  /** Migrations that the server runs at once; one more is refused. */
  migrationsAtOnce: 4,
  /** A step that came at a bad moment is taken again after this, and after twice as long each time up to the other. */
  migrationRetryMs: 1_000,
  migrationRetryMsMax: 60_000,
  /** Migrations that are remembered. */
  migrationsKept: 100,
} as const;

/** Of the doctor, which looks at a data folder. */
export const doctorLimits = {
  /** Names of files compared with the disk at once; more are done in several turns. */
  namesAtOnceAimed: 500_000,
  /** A clock further than this behind the newest document is told of. */
  clockWarnMs: 60_000,
  /** One further than this is wrong. */
  clockFailMs: 86_400_000,
} as const;
