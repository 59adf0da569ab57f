/** Limits of operations. Units are at the end of the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of backups, restores, exports, imports, admin endpoints and metrics. */
export const opsLimits = {
  /** Documents counted live per table in administrators' views; larger counts are requested. */
  adminCountMax: 10_000,
  /** Documents read for one page with conditions. */
  adminRowsReadMax: 4_000,
  /** Characters of documents after which a page, or a step of a bulk deletion, ends. */
  adminPageCharsMax: 2 * MiB,
  /** Scheduled backups listed for administrators, newest first. */
  scheduledBackupsMax: 200,
  /** Maximum position administrators can jump to in an index, whose keys before it are read. */
  adminPositionMax: 10_000_000,
  /** Documents inserted or deleted by one call of an administrator. */
  adminDocumentsMax: 1_000,
  /** Conditions of one query. */
  adminConditionsMax: 20,
  /** Maximum length of a search text. */
  adminSearchCharsMax: 1_000,
  /** Documents whose labels are requested at once. */
  labelsMax: 500,
  labelCharsMax: 80,
  /** Documents offered for a reference. */
  choicesMax: 20,
  /** Views of tables stored for one administrator. */
  viewsMax: 200,
  /** Longest name of a view, a table or a column in it. */
  viewNameCharsMax: 200,
  viewFiltersCharsMax: 4 * KiB,
  viewColumnsMax: 100,
  /** Longest saved query. All views of an administrator fit into one read. */
  viewQueryCharsMax: 20_000,
  /** Views of a removed administrator deleted by one mutation. */
  viewsDeletedAtOnce: 50,
  /** Documents deleted in one step of a bulk deletion. */
  adminDeletedAtOnce: 500,
  /** Maximum number of running background tasks. */
  adminWorksMax: 4,
  /** Finished background tasks kept for display. */
  adminWorksKept: 100,
  /** Cache lifetime of table sizes. */
  tableSizesKnownMs: 10_000,
  /** Maximum length of an argument in the audit log; longer ones are truncated. */
  auditTextCharsMax: 200,
  /** Arguments of one call recorded in the audit log. */
  auditArgsMax: 20,
  /** Retention of the audit log, at least 90 days. */
  auditKeptMs: 400 * 86_400_000,
  /** Rows of the audit log deleted in one step. */
  auditRowsCleanedMax: 500,
  /** Interval of event loop lag measurements; only with metrics. */
  loopLagSampleMs: 200,
  /** Cache lifetime of the isolates' memory usage, however often metrics are scraped. */
  memoryKnownMs: 1_000,
  /** Maximum line length of imported JSONL, enough for the largest document with all characters escaped. */
  importLineBytesMax: 8 * MiB,
  /** Rows written in one commit of an import. */
  importBatchRowsMax: 256,
  /** Characters of rows written in one commit; a longer row is written alone. */
  importBatchCharsMax: 512 * KiB,
  /** Maximum number of rows in an imported file. */
  importRowsMax: 10_000_000,
  /** Maximum number of documents in a Convex export, whose IDs are kept in memory. */
  snapshotIdsMax: 5_000_000,
  /** Maximum number of files in a Convex export. */
  snapshotFilesMax: 1_000_000,
  /** Invalid rows reported before an import is aborted. */
  importFaultsMax: 20,
  /** Maximum length of an error message for a row. */
  importFaultCharsMax: 500,
  /** Documents deleted in one commit when an import empties a table. */
  importDeletedRowsMax: 512,
  /** Characters of documents deleted in one commit. */
  importDeletedCharsMax: 4 * MiB,
  /** Maximum body of an import over HTTP, which is spooled to a temporary file. */
  importBodyBytesMax: 1024 * MiB,
  /** Time without bytes after which the body of an import fails. */
  importStallMs: 60_000,
  /**
   * Maximum number of concurrent exports over HTTP. Each holds a snapshot, which prevents reuse of the
   * write-ahead log, or builds its database.
   */
  exportsAtOnceMax: 4,
  /** Time without reads after which an export over HTTP is aborted. */
  exportStallMs: 60_000,
  /** Maximum duration of an export over HTTP. */
  exportMsMax: 6 * 3_600_000,
  /**
   * Size of the write-ahead log above which exports over HTTP are aborted if it grew during the export. A slow client prevents its
   * reuse, and a busy server could fill the disk.
   */
  exportLogBytesMax: 1024 * MiB,
  /** Interval of these checks. */
  exportLogCheckMs: 1_000,
  /** Maximum length of an export filter as JSON. */
  exportWhereCharsMax: 16 * KiB,
  /** Characters of an export produced at a time, between other work. */
  exportPieceChars: 64 * KiB,
  /** Maximum JSON body of an admin endpoint. */
  bodyBytesMax: 64 * KiB,
  /** Default lifetime of an impersonation session. */
  impersonationSecondsDefault: 900,
  /** Maximum lifetime of an impersonation session. */
  impersonationSecondsMax: 86_400,
  /** Maximum size of an uploaded archive; free disk space may set a lower limit. */
  uploadedArchiveBytesMax: 1024 * 1024 * MiB,
  /** Time without bytes after which an archive upload fails. */
  uploadedArchiveStallMs: 60_000,
  /** Bytes received between checks of free disk space; less than `diskReserveBytes`. */
  uploadedArchiveCheckBytes: 16 * MiB,
  /**
   * Read buffer for spooled bodies. No larger than a client's chunk: with chunked encoding, reads into larger buffers that stay
   * half empty take milliseconds each.
   */
  receivedChunkBytes: 64 * KiB,
  /** Window in which at least `receivedWindowBytesMin` bytes must arrive, counting only time spent waiting. */
  receivedWindowMs: 60_000,
  /** About 17 KB/s. A slower client would block others. */
  receivedWindowBytesMin: 1 * MiB,
  /** Maximum length of an uploaded archive's display name. */
  archiveSourceCharsMax: 255,
  /** Uncompressed bytes per frame of a backup archive. */
  archiveFrameBytes: 1 * MiB,
  /** Maximum number of files in a backup archive. */
  archiveEntriesMax: 1_000_000,
  /** Maximum length of a file name in a backup archive. */
  archiveNameCharsMax: 250,
  /** Maximum size of an archive's manifest. */
  archiveManifestBytesMax: 64 * KiB,
  /** Maximum number of padding bytes at the end of an archive. */
  archiveSlackBytes: 16 * MiB,
  /** Interval of attempts to acquire the lock of a backup or a staging. */
  lockPollMs: 100,
  /** How long canceling a restore waits for another one that is being staged. */
  stagingWaitMs: 10_000,
  /** How long staging a restore waits for another staging or cancellation. */
  stagingHeldMs: 2_000,
  /** Number of snapshots tried for a backup, in case referenced files are deleted at that moment. */
  snapshotAttemptsMax: 3,
  /** Bytes of a backup written between checks of free disk space; less than `diskReserveBytes`. */
  roomCheckBytes: 16 * MiB,
  /** Files above this size are streamed into a backup. */
  wholeFileBytesMax: 256 * KiB,
  /** Missing files recorded individually during a backup. */
  missingFilesMax: 10_000,
  /** Minimum interval of scheduled backups. A backup that takes longer delays the next one. */
  backupEveryMsMin: 1_000,
  /** Maximum interval of scheduled backups. */
  backupEveryMsMax: 366 * 86_400_000,
  /** Default number of scheduled backups kept (`--backup-keep`). */
  backupsKeptDefault: 7,
  /** Maximum number of scheduled backups kept. */
  backupsKeptMax: 10_000,
  /** Initial delay before a failed scheduled backup is retried; doubles each time. */
  backupRetryMs: 60_000,
  /** Maximum delay; the regular schedule applies in any case. */
  backupRetryMsMax: 3_600_000,
  /** Age up to which the last scheduled backup is considered current when the next is due. */
  backupFreshMs: 60_000,
  /** Maximum wait for an overdue backup between checks of the clock, which may be set. */
  backupCheckMs: 3_600_000,
  /** Timeout of a step of a location test. */
  placeStepMs: 20_000,
  /** Part size of archive uploads, held in memory; archives above 80 GiB have larger parts. */
  bucketPartBytes: 8 * MiB,
  /** Age at which temporary files of killed processes in a folder of backups are removed. */
  partialKeptMs: 3_600_000,
  /** Archives in a bucket listed if none was specified. */
  archivesNamedMax: 10,
  /** Maximum number of running and queued maintenance jobs. */
  maintenanceJobsMax: 16,
  /** Idle time after which the maintenance process exits. */
  maintenanceIdleMs: 30_000,
  /** Private writable memory of the maintenance process, in addition to the runtime's reservation. */
  maintenanceDataMiB: 1_024,
  /** Maximum length of a message between it and the server. */
  maintenanceLineCharsMax: 1 * MiB,
  /** Disk space kept free when unpacking archives, for a server on the same disk. */
  diskReserveBytes: 64 * MiB,
} as const;

/** Limits of issues and alerts. */
export const alertLimits = {
  /** Interval of checks. */
  checkMs: 60_000,
  /** How long the issues shown to administrators are reused. */
  issuesKnownMs: 1_000,
  /** Timeout of a webhook. */
  webhookMs: 10_000,
  /** Attempts to deliver an alert to one recipient. */
  attemptsMax: 6,
  /** Delay before the second attempt; doubled for each further one. */
  retryMs: 60_000,
  /** Deliveries waiting for another attempt; further failed ones are dropped and logged. */
  retriesMax: 100,
  /** Maximum length of an issue's key and text. */
  keyCharsMax: 400,
  textCharsMax: 500,
  /** Maximum length of a mail's subject. */
  subjectCharsMax: 150,
  /** Maximum length of a message that Discord accepts. */
  discordCharsMax: 2_000,
  /** Issues that are reported, acknowledged or muted. */
  rowsMax: 1_000,
  /** Maximum duration for which an issue is muted. */
  mutedMsMax: 366 * 86_400_000,
} as const;

/** Limits of the execution log. */
export const logLimits = {
  /** Runs queued for the log worker; newer ones are dropped and counted. */
  queuedRunsMax: 50_000,
  /** Characters of log lines and errors of queued runs. */
  queuedCharsMax: 32 * MiB,
  /** Runs stored in one transaction. */
  batchRunsMax: 1_000,
  /** Characters stored in one transaction, because the text index takes up to a second for a megabyte. */
  batchCharsMax: MiB,
  /** Time to store queued runs at shutdown; the rest is dropped. */
  closeMs: 3_000,
  /** Delay before queued runs are sent; longer delays make larger transactions. */
  flushMs: 200,
  /** Characters of log lines kept per run; the rest is truncated and marked. */
  linesCharsMax: 64 * KiB,
  /** Characters of logged arguments per run. */
  argsCharsMax: 2 * KiB,
  /** Maximum length of a function path, which may be made up by a client. */
  pathCharsMax: 256,
  /** Runs deleted in one transaction. */
  deletedRunsMax: 2_000,
  /** Newest runs copied from a log of the previous format. */
  convertedRunsMax: 200_000,
  /** Characters of their errors and log lines. */
  convertedCharsMax: 8 * MiB,
  /** Timeout of a search, which then returns what it has found and how far it searched. */
  searchMs: 100,
  /** Timeout of a histogram. */
  histogramMs: 60,
  /** Part of these timeouts that a search has at least, when many wait for the log worker. */
  searchShareMin: 0.1,
  /** Time that a search waits until queued runs are stored. */
  searchFlushMs: 5_000,
  /** Maximum number of histogram bars. */
  histogramBarsMax: 240,
  /** Default number of runs per page. */
  pageRunsDefault: 50,
  /** Maximum number of runs per page. */
  pageRunsMax: 500,
  /** Maximum length of a search text. */
  textCharsMax: 200,
  /** Maximum number of function names in a filter. */
  filterFunctionsMax: 50,
  /** Maximum number of concurrent log streams. */
  streamsMax: 256,
  /** Runs buffered per stream; further ones are skipped and counted. */
  streamRunsMax: 20,
  /** Streams written to per tick, so that other calls run in between. */
  streamWritesMax: 4,
  /** Pause between these ticks: 40 streams are updated every 200 ms, 200 streams every second. */
  streamTurnMs: 20,
  /** Bytes of events sent by the log worker at once; further runs are skipped. */
  tailedBytesMax: 8 * MiB,
  /** Runs sent to a stream that resumes after a pause; further ones are counted. */
  backlogRunsMax: 500,
  /** Buffer quota of a reader in bytes; events beyond it are skipped. */
  streamBytesMax: 256 * KiB,
  /** Interval of heartbeats on a stream. */
  heartbeatMs: 15_000,
  /** Time without reads after which a stream is closed. */
  streamStallMs: 120_000,
  /** Default retention of runs (`--log-keep`). */
  keepMsDefault: 7 * 86_400_000,
  /** Minimum and maximum retention. */
  keepMsMin: 60_000,
  keepMsMax: 3_660 * 86_400_000,
  /** Default maximum size of the log (`--log-max-size`). */
  bytesDefault: 1024 * MiB,
  /** Minimum of that option. */
  bytesMin: 16 * MiB,
  /** Interval of checks for old and excess runs. */
  cleanUpMs: 10_000,
  /** Pause between two deletions while there are more. */
  cleanUpPauseMs: 20,
  /** Maximum number of pending requests to the log worker. */
  questionsMax: 64,
  /** Timeout of a request after which the log worker is replaced. */
  answerMs: 30_000,
  /** Initial delay before a failed log worker is replaced; doubles each time. */
  restartMs: 1_000,
  restartMsMax: 60_000,
  /** Page cache of the log's database. A larger one fills up in hours, in main, and makes nothing faster. */
  cacheBytes: 4 * MiB,
  /** Cached prepared statements. */
  statementsMax: 100,
} as const;

/** Limits of replication. */
export const replicationLimits = {
  /** Default interval of replication (`--replicate-every`), and its bounds. */
  everyMs: 1_000,
  everyMsMin: 100,
  everyMsMax: 3_600_000,
  /** Default interval of snapshots (`--snapshot-every`), and its bounds. */
  snapshotEveryMs: 86_400_000,
  snapshotEveryMsMin: 1_000,
  snapshotEveryMsMax: 30 * 86_400_000,
  /** Default retention of the replica (`--replicate-keep`). */
  keepMs: 7 * 86_400_000,
  /** Default limit of unshipped journal (`--replicate-max-pending`). */
  maxPendingBytes: 1024 * MiB,
  /** Minimum of that option: a few groups of large documents. */
  maxPendingBytesMin: 1 * MiB,
  /** Delay before a failed snapshot is retried. */
  snapshotRetryMs: 60_000,
  /** Free disk space below which an unshippable journal is dropped. */
  diskReserveBytes: 256 * MiB,
  /** A smaller journal is not dropped, because it is not what fills the disk. */
  pendingBytesKept: 16 * MiB,
  /** Maximum object read into memory, far above the size of a segment. */
  objectBytesMax: 256 * MiB,
  /** Age at which temporary files of killed processes in a folder are removed. */
  partialKeptMs: 3_600_000,
  /** Age at which leftovers of location tests are removed from a target, and how many at a time. */
  probeKeptMs: 3_600_000,
  probesRemovedMax: 100,
  /** Age at which unfinished multipart uploads are aborted; large ones take hours. */
  uploadKeptMs: 3 * 86_400_000,
  /** Timeout of a request to a bucket. */
  requestMs: 30_000,
  /** Attempts within that time, because no caller would retry replication requests. */
  requestAttempts: 6,
  /** Minimum and maximum delay after a failed attempt to ship. */
  retryMsMin: 1_000,
  retryMsMax: 30_000,
  /** Number and delay of repeated listings if a confirmed object is missing. */
  lateListings: 5,
  lateListingMs: 1_000,
  /**
   * Neighbouring segments are merged into one of the next level once they span this time, number or size.
   */
  merges: [
    { spanMs: 300_000, pieces: 300, bytes: 8 * MiB },
    { spanMs: 3_600_000, pieces: 60, bytes: 32 * MiB },
  ],
  /** Shipped segments cached for the next merge, in bytes; others are read from the target. */
  mergeCacheBytes: 16 * MiB,
  /** Interval of retention checks without a snapshot in between. */
  retentionRunMs: 3_600_000,
  /** Snapshots of a generation, with their segments, removed per check. */
  snapshotsExpired: 1,
  /** Speed-up of the retention clock while the wall clock is ahead of it. */
  clockCatchUp: 1 / 8,
  /** Difference from which it is logged that the wall clock is ahead. */
  clockAheadMs: 86_400_000,
  /** Head start for shipping, by its recent duration; at most half the interval. */
  leadShareMax: 0.5,
  /** Private memory of the replication process. */
  processDataMiB: 512,
  /** How long startup waits for the target's first response, and shutdown for the last segment. */
  openMs: 10_000,
  /** How long a server with a new generation waits for its snapshot before it serves. */
  firstSnapshotMs: 30_000,
  closeMs: 5_000,
  /** Rows applied by a follower in one group, and their characters; the last row may exceed it. */
  followedRows: 512,
  followedChars: 2 * MiB,
  /** Characters of a row in one line from the process that reads a replica. */
  pieceChars: 512 * KiB,
  /** Maximum line between the server and that process. */
  lineCharsMax: 4 * MiB,
  /** Initial and maximum delay before the replication process is restarted. */
  restartMsMin: 1_000,
  restartMsMax: 60_000,
  /** Replication errors kept in the status. */
  errorsKept: 10,
  /** Journal rows between progress reports of a restore. */
  rowsPerPause: 4_096,
  /** Segments prefetched by a restore, if small enough to be read in full. */
  segmentsAhead: 4,
  segmentBytesWhole: 2 * MiB,
  /** Attempts to find the merged segment that replaced a missing one. */
  mergedSearches: 3,
  /** Delay before a listing that lacks an object is repeated. */
  mergedSearchMs: 300,
  /** Assumed throughput for estimates of the duration of a restore. */
  bytesPerSecond: 20 * MiB,
  rowsPerSecond: 20_000,
  /** Ends of a search for the earlier states of a document: states, characters, downloaded bytes, and time. */
  historyStatesMax: 50,
  historyCharsMax: 2 * MiB,
  historyBytesMax: 128 * MiB,
  historyMs: 10_000,
  /** Timeout for downloading and unpacking the snapshot before the oldest state. */
  historySnapshotMs: 30_000,
  /** Minimum interval of requests to `--heartbeat-url`, and their timeout. */
  heartbeatMs: 60_000,
  heartbeatTimeoutMs: 10_000,
} as const;

/** Limits of statistics. */
export const statsLimits = {
  /** Functions counted individually; others are counted together. */
  functionsMax: 500,
  /** Rate limits whose refusals are counted individually. */
  refusedLimitsMax: 100,
  /** Gauge samples kept, one per minute. */
  gaugesKept: 61,
  /** Length of a point of the trend, and number of points kept: a week. */
  trendMs: 900_000,
  trendKept: 672,
  /** Length of the shortest span; at most this is lost in a crash. */
  slotMs: 10_000,
  /** Cache lifetime of table sizes, which require reading every page of the database. */
  sizesKnownMs: 300_000,
  /** Cache lifetime of memory and disk usage. */
  machineKnownMs: 2_000,
  /** Age up to which `/api/health/ready` accepts earlier results for reads, commits and pushes. */
  readySeenMs: 10_000,
  /** Timeout of a readiness check. */
  readyMs: 5_000,
  /** Maximum lag of a ready follower. */
  followerLateMs: 60_000,
} as const;

/** Limits of deploys and data migrations. */
export const deployLimits = {
  /** Maximum number of concurrent bundle uploads, one per caller. */
  uploadsMax: 8,
  /** Maximum compressed size of a bundle. */
  bundleBytesMax: 256 * MiB,
  /** Maximum total size of its files. */
  filesBytesMax: 512 * MiB,
  /** Maximum size of a file. */
  fileBytesMax: 64 * MiB,
  /** Maximum number of files: functions, packages and frontend. */
  filesMax: 25_000,
  /** Maximum path length. */
  pathCharsMax: 400,
  /** Maximum size of the manifest. */
  manifestBytesMax: 32 * MiB,
  /** Time without bytes after which an upload fails. */
  stallMs: 30_000,
  /** How much, and for how long, the body of a rejected bundle is drained, so that the client reads the response. */
  drainBytesMax: 256 * MiB,
  drainMs: 5_000,
  /** Invalid documents listed per table; all are counted. */
  misfitsMax: 10,
  /** Functions listed that pending jobs call and a version lacks. */
  lostFunctionsMax: 100,
  /** Maximum length of an error message for one. */
  misfitCharsMax: 300,
  /** Timeout of checking documents for a deploy, which blocks no one. */
  checkMs: 15 * 60_000,
  /** Maximum length of the message of a deploy. */
  messageCharsMax: 500,
  /** Deploys and rollbacks listed with the time in which their version was served. */
  historyMax: 200,
  /** Maximum number of environment variables. */
  variablesMax: 200,
  /** Maximum length of a value. */
  variableCharsMax: 16 * KiB,
  /** Maximum number of documents in a migration step. */
  migrationStepRowsMax: 256,
  /** Target duration of a step, during which no other write runs. */
  migrationStepMsAimed: 50,
  /** Documents of a dry run. */
  migrationSampleMax: 20,
  /** Maximum number of migrations run by the server concurrently. */
  migrationsAtOnce: 4,
  /** Initial and maximum delay before a step is retried; doubles each time. */
  migrationRetryMs: 1_000,
  migrationRetryMsMax: 60_000,
  /** Number of migrations kept. */
  migrationsKept: 100,
} as const;

/** Kinds of telemetry that `--otlp-endpoint` exports. */
export const telemetrySignals = ["traces", "metrics", "logs"] as const;
export type TelemetrySignal = typeof telemetrySignals[number];

/** Limits of `--otlp-endpoint`. */
export const telemetryLimits = {
  /** Spans queued or being exported, and as many log records; further ones are dropped and counted. */
  queuedMax: 8_192,
  /** Spans or log records of one request. */
  batchMax: 512,
  /** Interval between exports of spans and log records, unless a batch is full. */
  flushMs: 1_000,
  /** Interval between exports of metrics. */
  metricsMs: 15_000,
  /** Timeout of an export, including its retries. */
  exportMs: 10_000,
  /** Time for the last exports when the server stops. */
  closeMs: 1_000,
  /** Maximum length of an error message in a span; longer ones are truncated. */
  errorCharsMax: 500,
  /** Maximum length of a string in a log record; longer ones are truncated. */
  logCharsMax: 4_096,
  /** Maximum characters of queued log records. */
  queuedLogCharsMax: 8_388_608,
  /** Running actions whose nested log lines are remembered: an action's lines include those of nested calls. */
  logCallersMax: 4_096,
} as const;

/** Limits of the doctor. */
export const doctorLimits = {
  /** File names compared with the disk at once. */
  namesAtOnceAimed: 500_000,
  /** Difference from which a clock behind the newest document is reported. */
  clockWarnMs: 60_000,
  /** Difference from which it is an error. */
  clockFailMs: 86_400_000,
} as const;
