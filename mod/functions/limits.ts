/** Limits of functions, isolates and service APIs. Names end with the unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of an app's npm packages. More indicates a mistake, such as importing a whole toolchain. */
export const packageLimits = {
  /** Files that the app's modules depend on, including its own. */
  filesMax: 20_000,
  /** Bytes of those files. */
  bytesMax: 256 * MiB,
  /** Size of the bundle with its source map. */
  bundleBytesMax: 128 * MiB,
  /** Bytes of the app's own sources in the source map, for administrators. Further ones are left out. */
  sourcesBytesMax: 8 * MiB,
  /** Links in one package folder. */
  linksMax: 10_000,
} as const;

/** Limits of the app versions in the data folder. */
export const versionLimits = {
  /** Versions kept in addition to running ones. */
  kept: 10,
  /** Age at which a version that was never loaded is removed. */
  unusedMs: 60 * 60_000,
  /** Attempts to make a version while files keep changing. */
  triesMax: 5,
  /** Time between two attempts. */
  retryMs: 100,
} as const;

/** Limits of isolates and their queues. */
export const isolateLimits = {
  /** Old generation of an isolate's V8 heap. New objects add up to three semi-spaces. */
  heapMiB: 512,
  /** Maximum V8 semi-space of a writer. Data of a batch lives until its commit. */
  writerSemiSpaceMiB: 16,
  /** Private writable memory of an isolate, including the heap, above the runtime's own. */
  dataMiB: 1536,
  /** How often memory is checked where the kernel does not limit it. */
  memoryPollMs: 1_000,
  /** Time for an isolate to start, load the app and answer. */
  startMs: 30_000,
  /** Schema migrations longer than this are logged. `startMs` does not include them. */
  migrationLogMs: 5_000,
  /** Mutations queued for the writer. Further ones are rejected. */
  queuedMutationsMax: 20_000,
  /** Characters of queued arguments. */
  queuedMutationCharsMax: 256 * MiB,
  /** Busy-wait of main and the writer between consecutive single mutations. */
  spinMs: 1,
  /** Mutations per batch. */
  batchCallsMax: 1024,
  /** Characters of arguments per batch. */
  batchCharsMax: 4 * MiB,
  /** A batch that runs this long commits and continues in a new transaction. */
  batchSliceMs: 40,
  /** Mutations faster than this count as free. */
  costMinMs: 5,
  /** Characters of answers at which a group is committed. */
  groupCharsMax: 16 * MiB,
  /** How often running calls are checked for timeouts. */
  watchIntervalMs: 100,
  /** Maximum readers. All start on demand. */
  readersMax: 4,
  /** Ad hoc queries at once. Each starts a reader of its own. */
  adHocQueriesMax: 1,
  /** Longest source of an ad hoc query. */
  adHocCharsMax: 100_000,
  /** Idle time after which an additional reader stops. The last one is kept for longer. */
  readerIdleMs: 60_000,
  /** A query that runs this long is slow: another reader runs the queries behind it. */
  slowQueryMs: 50,
  /** While a query has been running this long, the next one of its caller and function counts as slow. */
  suspectQueryMs: 25,
  /** Delay after a query until a spare reader is started. */
  spareReaderMs: 5_000,
  /** Maximum action runners. */
  runnersMax: 8,
  /** Maximum runners reserved for scheduled functions on the leader of a cluster. */
  dedicatedRunnersMax: 4,
  /** Runners starting at once. Each start takes half a second of processor time. */
  runnersStartingMax: 2,
  /** Actions per runner when all runners are busy. */
  actionsPerRunnerMax: 32,
  /** Actions queued for a runner. Further ones are rejected. */
  queuedActionsMax: 1_000,
  /** Longest frame between main and an isolate. */
  frameBytesMax: 256 * MiB,
  /** Restarts of one isolate per minute after which the app counts as broken and restarts slow down. */
  restartsPerMinuteMax: 60,
} as const;

/** Limits of scheduled functions and crons. */
export const schedulerLimits = {
  /** Arguments of a scheduled function as JSON. They are stored in its document, with its result. */
  argsCharsMax: 1 * MiB - 16 * KiB,
  /** How far ahead a function may be scheduled. */
  aheadMsMax: 5 * 366 * 86_400_000,
  /** Retention of results. */
  resultKeptMs: 7 * 86_400_000,
  /** Stored error length. Longer errors are truncated. */
  errorCharsMax: 2 * KiB,
  /** Pending functions of one kind cached in main, by due time. Others are fetched later. */
  jobsKnownMax: 10_000,
  /** Pending functions fetched at once. */
  jobsLoadedMax: 1_000,
  /** Characters of their arguments: fetching reads whole documents. */
  jobsLoadedCharsMax: 4 * MiB,
  /** Pending functions checked by a deploy, and characters of their arguments. */
  jobsCountedMax: 20_000,
  jobsCountedCharsMax: 32 * MiB,
  /** Failed scheduled functions of each kind that a check for issues reads. */
  failuresReadMax: 50,
  /** Scheduled mutations submitted to the writer at once. */
  mutationsAtOnceMax: 32,
  /** Fewer are submitted if they take longer than this together, so that client calls are not delayed. */
  mutationsAimedMs: 10,
  /** Scheduled actions running at once. */
  actionsAtOnceMax: 64,
  /** Initial retry delay after errors of the server, such as a full disk. Doubles each time. */
  retryMs: 500,
  /** Maximum retry delay. */
  retryMsMax: 60_000,
  /** Longest timer: the clock may be changed. */
  clockLookMs: 30_000,
  /** Interrupted actions marked as failed per step after a start. */
  interruptedAtOnce: 100,
  /** Expired results deleted per step. */
  rowsCleanedMax: 250,
  /** Time for running functions to finish at shutdown. */
  closeMs: 5_000,
  /** Time to record the results of those aborted then, before another server takes the lead. */
  endLateMs: 2_000,
  /**
   * Pending functions scheduled, directly or indirectly, by one scheduled function. Beyond this, each is delayed by this much
   * more than the one before, times the excess.
   */
  chainWaitingMax: 5_000,
  chainStepMs: 50,
  /** Chains whose pending functions the writer counts. */
  chainsKnownMax: 1_000,
  /** How often delays of a function are logged, and functions logged within that time. */
  chainLoggedMs: 60_000,
  chainsLoggedMax: 100,
  /** Crons of one app. */
  cronsMax: 1_000,
  /** Longest name of a cron. */
  cronNameCharsMax: 200,
  /** Shortest interval of a cron. */
  cronIntervalMsMin: 1_000,
} as const;

/** Limits of `ctx.rateLimit`. */
export const appRateLimits = {
  /** Longest name of a limit and longest key. */
  nameCharsMax: 64,
  keyCharsMax: 256,
  /** Longest time to refill an empty bucket, and so the longest retention of its document. */
  refillMsMax: 31 * 86_400_000,
  /** Documents of full buckets that an allowed call removes; it adds at most one. */
  removedPerCall: 2,
  /** Limits that the dashboard shows, and buckets of each that it reads. */
  shownLimitsMax: 50,
  keysReadMax: 400,
} as const;

/** Limits of the app's HTTP routes. */
export const routeLimits = {
  /** Routes of one app. */
  routesMax: 1_000,
  /** Longest path or path prefix of a route. */
  pathCharsMax: 1_024,
  /** Requests handled at once. They leave capacity for actions. */
  requestsMax: 128,
  /** Queued requests. Further ones are rejected. */
  requestsWaitingMax: 1_000,
  /** Bytes of a body per frame. */
  chunkBytesMax: 64 * KiB,
  /** Receive window of a body. */
  windowBytes: 256 * KiB,
  /** Headers of a request or response, names and values together. */
  headerCharsMax: 64 * KiB,
} as const;

/** Rate limits for logging failures of app code. */
export const failureLogLimits = {
  /** Logged failures of one function. */
  ofFunction: { burst: 5, perMinute: 6 },
  /** Logged failures of all functions. */
  ofAll: { burst: 30, perMinute: 60 },
  /** Functions tracked individually. The one that failed least recently is evicted. */
  functionsMax: 1_000,
  /** Interval for logging the number of suppressed failures. */
  suppressedReportMs: 60_000,
  /** Functions named in that log message. */
  suppressedNamesMax: 10,
} as const;

/** Limits of `ctx.storage`. */
export const fileApiLimits = {
  /** Longest lifetime of a signed URL. */
  signedUrlSecondsMax: 10 * 365 * 86_400,
  /** Bytes of a file per message between main and an action. */
  actionChunkBytes: 512 * KiB,
  /** Largest file that an action reads as a whole. */
  actionReadBytesMax: 512 * MiB,
} as const;

/** Limits that keep callers from starving one another. */
export const fairnessLimits = {
  /** Timeouts of one function within `lateWindowMs` after which the caller is blocked from it. */
  lateCallsMax: 3,
  lateWindowMs: 60_000,
  /** Duration of the block. */
  refusedMs: 60_000,
  /** Caller and function pairs tracked. The oldest is evicted. */
  refusalsKeptMax: 10_000,
  /** Running actions caused by one call from outside, nested ones included. Further ones fail. */
  descendantsAtOnceMax: 256,
  /** Such actions in total. */
  descendantsMax: 10_000,
  /** Share of the action slots that one caller may use while others wait. */
  actionShareMax: 0.5,
} as const;
