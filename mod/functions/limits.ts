/** The bounds of functions, their isolates and what they may ask of the service. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of the npm packages of an app: more is a mistake, such as a whole toolchain in one import. */
export const packageLimits = {
  /** Files that the app's modules lead to, the app's own included. */
  filesMax: 20_000,
  /** Bytes of those files. */
  bytesMax: 256 * MiB,
  /** Links in one folder of packages. */
  linksMax: 10_000,
} as const;

/** Limits of the versions of an app that lie in the data folder. */
export const versionLimits = {
  /** Versions that are kept, beside those that run. */
  kept: 10,
  /** A version that was never loaded is removed after so long. */
  unusedMs: 60 * 60_000,
  /** Bytes of a file in the functions folder that is not source code: larger ones are no part of a version. */
  assetBytesMax: 4 * MiB,
  /** Folders inside one another in the functions folder. */
  depthMax: 32,
  /** A version is begun anew so often when files change while it is made. */
  triesMax: 5,
  /** Time between two of these tries. */
  retryMs: 100,
} as const;

/** Limits of the isolates and of the queues in front of them. */
export const isolateLimits = {
  /** Files and folders of a version up to which isolates stand by for an edit (`--dev`): beyond, they start with the edit. */
  linkedFilesMax: 2_000,
  /** Old generation of the V8 heap of an isolate. New objects come on top: up to three semi-spaces. */
  heapMiB: 512,
  /**
   * A semi-space of a writer's V8, at most; it grows to this under load and shrinks when idle. What hundreds of calls of a
   * batch are made of lives until their commit: in V8's own 32 MiB it is copied more often.
   */
  writerSemiSpaceMiB: 64,
  /** Private writable memory of an isolate, heap included, above what the runtime itself reserves. */
  dataMiB: 1536,
  /** How often the memory of isolates is looked at where the kernel does not bound it. */
  memoryPollMs: 1_000,
  /** Time an isolate has to start, load the app and answer. */
  startMs: 30_000,
  /** The log tells of a new writer that takes longer than this to make tables and indexes fit; `startMs` does not count it. */
  fittingToldMs: 5_000,
  /** Mutations waiting for the writer; one more is refused with a clear error. */
  queuedMutationsMax: 20_000,
  /** Characters of arguments waiting for the writer. */
  queuedMutationCharsMax: 256 * MiB,
  /** Waits of main and the writer for one another that are spent awake while one lone mutation follows the other. */
  awakeMs: 1,
  /** Mutations handed to the writer at once. */
  batchCallsMax: 1024,
  /** Characters of arguments handed to the writer at once. */
  batchCharsMax: 4 * MiB,
  /** A batch that has run this long commits what it has done and goes on in a new transaction. */
  batchSliceMs: 40,
  /** Mutations that take less cost next to nothing. */
  costToldMs: 5,
  /** A group whose answers have this many characters is committed, and its batch goes on in a new one. */
  groupCharsMax: 16 * MiB,
  /** How often main looks whether a running call is over its time. */
  watchIntervalMs: 100,
  /** Readers running at once. The first starts with the server, the others when work waits. */
  readersMax: 4,
  /** A reader beyond the first that had nothing to do for this long ends. */
  readerIdleMs: 60_000,
  /** A query that has not answered after this long is slow: what waits behind it is run by another reader. */
  slowQueryMs: 50,
  /** While a query has been running for this long, the next one of its caller and function counts as slow. */
  suspectQueryMs: 25,
  /** How far others go before runners, as `nice` counts it: several may start at once, each of which takes a processor for a while. */
  runnerNiceness: 5,
  /** A second reader is started so long after a query, if there is none, and stands by. */
  spareReaderMs: 5_000,
  /** Action runners running at once. */
  runnersMax: 8,
  /** The same of those that have what is scheduled to themselves, on the leader of a cluster: enough for all that runs at once. */
  runnersApartMax: 4,
  /** Runners that are being started at once: each start takes a processor for half a second. */
  runnersStartingMax: 2,
  /** Actions one runner holds when all runners are busy. */
  actionsPerRunnerMax: 32,
  /** Actions waiting for a runner; one more is refused. */
  queuedActionsMax: 1_000,
  /** Longest frame between main and an isolate. */
  frameBytesMax: 256 * MiB,
  /** Restarts of one isolate within a minute after which the server says that the app cannot run, and stops trying so fast. */
  restartsPerMinuteMax: 60,
} as const;

/** Limits of scheduled functions and crons. */
export const schedulerLimits = {
  /** Arguments of a scheduled function, as JSON text: they stand in its document, beside what became of it. */
  argsCharsMax: 1 * MiB - 16 * KiB,
  /** How far ahead a function may be scheduled. */
  aheadMsMax: 5 * 366 * 86_400_000,
  /** What became of a scheduled function is kept for this long after its end. */
  resultKeptMs: 7 * 86_400_000,
  /** Error of a failed function that is kept; the rest is cut. */
  errorCharsMax: 2 * KiB,
  /** Waiting functions of one kind that main remembers, those due first; the others are looked up when it is their turn. */
  jobsKnownMax: 10_000,
  /** Waiting functions that are looked up at once. */
  jobsLoadedMax: 1_000,
  /** Characters of their arguments: the look-up reads whole documents. */
  jobsLoadedCharsMax: 4 * MiB,
  /** Waiting functions that a deploy counts, and characters of their arguments. */
  jobsCountedMax: 20_000,
  jobsCountedCharsMax: 32 * MiB,
  /** Scheduled mutations that are with the writer at once. */
  mutationsAtOnceMax: 32,
  /** Fewer are when they take longer than this together, so that calls of clients never wait long behind them. */
  mutationsAimedMs: 10,
  /** Scheduled actions running at once. */
  actionsAtOnceMax: 64,
  /** Pause before something is tried again that the server could not do, such as writing to a full disk; then twice as long. */
  retryMs: 500,
  /** Longest such pause. */
  retryMsMax: 60_000,
  /** Longest wait without a look at the clock, which may have been set. */
  clockLookMs: 30_000,
  /** Interrupted actions that are marked as failed in one step after a start. */
  interruptedAtOnce: 100,
  /** Rows of old results that one step deletes. */
  rowsCleanedMax: 250,
  /** Time running functions get to end when the server stops. */
  closeMs: 5_000,
  /** Time to write down what became of those that were ended then, before another server leads. */
  endLateMs: 2_000,
  /**
   * Functions that wait and go back to one that was scheduled, by way of another one that was: more are put off, by this
   * much after one another, and by as many times more as there are more.
   */
  chainWaitingMax: 5_000,
  chainStepMs: 50,
  /** Of so many such chains the writer remembers how many wait. */
  chainsKnownMax: 1_000,
  /** How often the log tells of one function that is put off, and of how many functions within that time. */
  chainToldMs: 60_000,
  chainsToldMax: 100,
  /** Crons of one app. */
  cronsMax: 1_000,
  /** Longest name of a cron. */
  cronNameCharsMax: 200,
  /** Shortest interval of a cron. */
  cronIntervalMsMin: 1_000,
} as const;

/** Limits of the app's own HTTP routes. */
export const routeLimits = {
  /** Routes of one app. */
  routesMax: 1_000,
  /** Longest path or path prefix of a route. */
  pathCharsMax: 1_024,
  /** Requests being answered by app code at once; actions find room beside them. */
  requestsMax: 128,
  /** Requests that wait for their turn; one more is refused. */
  requestsWaitingMax: 1_000,
  /** Bytes of a body in one frame. */
  chunkBytesMax: 64 * KiB,
  /** Bytes of a body that may be on their way to a side that has not taken them yet. */
  windowBytes: 256 * KiB,
  /** Headers of a request or response, names and values together. */
  headerCharsMax: 64 * KiB,
} as const;

/** How much of what fails in app code stands in the server's log. */
export const failureLogLimits = {
  /** Failures of one function that are told. */
  ofFunction: { burst: 5, perMinute: 6 },
  /** Failures of all functions together that are told. */
  ofAll: { burst: 30, perMinute: 60 },
  /** Functions whose failures are counted on their own; the one that failed longest ago gives way. */
  functionsMax: 1_000,
  /** What was left out is counted and told after this time. */
  leftOutMs: 60_000,
  /** Functions named then. */
  leftOutNamesMax: 10,
} as const;

/** Limits of `ctx.storage`. */
export const fileApiLimits = {
  /** Longest lifetime of a signed URL. */
  signedUrlSecondsMax: 10 * 365 * 86_400,
  /** Bytes of a file in one message between main and an action. */
  actionChunkBytes: 512 * KiB,
  /** Largest file an action reads whole. */
  actionReadBytesMax: 512 * MiB,
} as const;

/** How callers are kept from taking the server from one another. */
export const fairnessLimits = {
  /** A caller whose calls of one function ran out of time so often within `lateWindowMs` is refused it. */
  lateCallsMax: 3,
  lateWindowMs: 60_000,
  /** For so long. */
  refusedMs: 60_000,
  /** Callers and functions remembered for this; the one noted longest ago gives way. */
  refusalsKeptMax: 10_000,
  /** Actions under way that one call from outside may have set off, those below them included; one more fails. */
  descendantsAtOnceMax: 256,
  /** Such actions in all. */
  descendantsMax: 10_000,
  /** Share of the places for actions that one caller may have while others wait. */
  actionShareMax: 0.5,
} as const;
