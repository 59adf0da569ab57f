/**
 * Every limit of the product, once, each with its sentence. Queues, caches, bodies and loops take their bound from here.
 * Units stand last in the names: `Ms` milliseconds, `Bytes` bytes, `Chars` UTF-16 code units; no unit means a count.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of one WebSocket (contract: Limits). */
export const socketLimits = {
  /** Live queries one socket may hold; one more is a FatalError. */
  liveQueriesMax: 1024,
  /** Mutations and actions running for one socket; the next one waits, and later frames wait behind it in order. */
  callsInFlightMax: 64,
  /**
   * Frames that may wait behind a held call; one more is a FatalError. The contract stops reading instead, which this
   * platform's sockets cannot do: so there is room for what a client may well send without waiting for answers.
   */
  heldFramesMax: 65_536,
  /** Characters of frames that may wait behind a held call. */
  heldCharsMax: 32 * MiB,
  /** Queries of one socket, those included whose Add or Remove awaits its Transition; past it frames are held. */
  queriesKeptMax: 4096,
  /** ModifyQuerySet and Authenticate messages that still await their Transition; one more is a FatalError. */
  unansweredTransitionsMax: 1024,
  /** A client that has said nothing for this long is closed at the next ping tick. */
  silenceMs: 45_000,
  /** The connection of a peer that has sent nothing for this long, not even the pong of its own network code, is cut. */
  deadPeerMs: 40_000,
  /** Time between two Pings. */
  pingIntervalMs: 15_000,
  /** A frame that takes longer than this to leave closes the socket. */
  frameSendMs: 30_000,
  /** Longest accepted frame: the largest arguments and room for the envelope around them. */
  frameCharsMax: 17 * MiB,
  /** Bytes waiting in the socket's send buffer above which it counts as slow and its updates are merged. */
  bufferedBytesMax: 256 * KiB,
  /** How often the send buffers of slow sockets are looked at. */
  drainPollMs: 20,
  /** Steps in which pings, silence, token expiry and send times are watched. */
  tickMs: 100,
  /**
   * Bytes waiting in the send buffer behind the last Transition above which the socket is closed. The Transition itself does
   * not count: a slow socket is sent none, and what is in it was asked for.
   */
  bufferedBytesFatal: 64 * MiB,
  /** Characters of the results in one Transition, errors and log lines included; more is a FatalError. */
  transitionCharsMax: 128 * MiB,
  /** Sockets open at once. */
  socketsMax: 100_000,
} as const;

/** Limits of function calls. */
export const functionLimits = {
  /** A query that runs longer fails. */
  queryTimeoutMs: 30_000,
  /** A mutation that runs longer is rolled back and fails. */
  mutationTimeoutMs: 5_000,
  /** An action that runs longer fails. */
  actionTimeoutMs: 600_000,
  /** Arguments of one call, as JSON text. */
  argsCharsMax: 16 * MiB,
  /** Levels of objects and arrays in the arguments of one call. */
  argsDepthMax: 64,
  /** Result of one call, as JSON text. */
  resultCharsMax: 16 * MiB,
  /** Log lines kept of one call; the rest are counted and dropped with a closing line that says so. */
  logLinesMax: 256,
  /** Longest log line; the rest is cut. */
  logLineCharsMax: 4 * KiB,
  /** Longest message of an error and longest stack trace; the rest is cut. */
  errorCharsMax: 16 * KiB,
  /** Rows of one page that a client may ask for with `paginationOpts`. */
  pageItemsMax: 4_096,
  /** Documents one call may read. */
  documentsReadMax: 32_000,
  /** Characters of documents one call may read. */
  charsReadMax: 16 * MiB,
  /** Documents one mutation may write. */
  documentsWrittenMax: 16_000,
  /** Characters of documents one mutation may write. */
  charsWrittenMax: 16 * MiB,
  /** Characters of index entries one mutation may write: they stand in its commit entry. */
  indexCharsWrittenMax: 64 * MiB,
  /** Calls of runQuery, runMutation and runAction nested in one another. */
  nestingMax: 16,
  /** Longest function path. */
  udfPathCharsMax: 512,
  /** Intervals a read set keeps before neighbours are joined. */
  readSetIntervalsMax: 4096,
} as const;

/** Limits of documents and the database. */
export const documentLimits = {
  /** One document, as JSON text. */
  documentCharsMax: 1 * MiB,
  /** Fields of one object. */
  objectFieldsMax: 1024,
  /** Elements of one array. */
  arrayElementsMax: 8192,
  /** Levels of nesting of one value. */
  valueDepthMax: 64,
  /** Longest field name. */
  fieldNameCharsMax: 1024,
  /** Fields of one index. */
  indexFieldsMax: 16,
  /** Indexes of one table. */
  indexesPerTableMax: 64,
  /** Tables of one schema. */
  tablesMax: 10_000,
  /** Longest key of one index entry: longer values are refused where an index holds them. */
  indexKeyCharsMax: 16 * KiB,
} as const;

/** Limits of the engine's connections, caches and loops. */
export const engineLimits = {
  /** Prepared statements a connection keeps, about 4 KB each. */
  statementsMax: 1024,
  /** Pages the writer keeps in memory. */
  writerCacheBytes: 64 * MiB,
  /** Pages a reader keeps in memory. */
  readerCacheBytes: 16 * MiB,
  /** Pages in the write-ahead log after which a commit copies them into the database file. */
  checkpointPages: 16_000,
  /** The same while groups are small, where it delays no answer; looked at when so many have come in a row. */
  earlyCheckpointPages: 1000,
  groupsBetweenLooks: 16,
  /** Calls of a small group. */
  smallGroupCallsMax: 8,
  /** The write-ahead log is cut to this when it has been copied. */
  walBytesKept: 64 * MiB,
  /** A connection waits this long for a lock that another process holds. */
  lockWaitMs: 5_000,
  /** Rows a scan reads at first when it does not know how many are wanted. */
  scanRowsFirst: 16,
  /** Rows a scan reads at first however many are wanted: documents may be large. */
  scanRowsFirstMax: 64,
  /** Rows a scan reads at once. What comes next may be the largest documents there are, and all must fit in memory. */
  scanRowsMax: 64,
  /** Characters of documents a scan aims to read at once. */
  scanCharsAimed: 1 * MiB,
  /** Documents an export reads at once. */
  exportRowsMax: 256,
  /** Bytes of the documents an export reads at once; a larger document is read alone. */
  exportBytesAimed: 64 * KiB,
  /** Documents a schema change holds in memory at once. */
  migrationRows: 64,
  /** Words of a search that count; the rest is left out. */
  searchWordsMax: 32,
  /** Characters of a word that count. */
  searchWordCharsMax: 128,
  /** Documents a search looks up at first; it goes on when more are asked for. */
  searchRowsFirst: 64,
  /** Changes to search indexes that wait for the end of the group, as characters of text. */
  searchCharsPending: 4 * MiB,
  /** Numbers in a vector. */
  vectorDimensionsMax: 4_096,
  /** Documents one vector search may give back. */
  vectorResultsMax: 256,
  /** Vectors kept in memory by one connection; larger indexes are read from disk at each search. */
  vectorBytesMax: 384 * MiB,
  /** Changes of a vector index kept for connections to catch up with; older ones load the index again. */
  vectorChangesKept: 16_384,
} as const;

/** Limits of the npm packages of an app: more is a mistake, such as a whole toolchain in one import. */
export const packageLimits = {
  /** Files that the app's modules lead to, the app's own included. */
  filesMax: 20_000,
  /** Bytes of those files. */
  bytesMax: 256 * MiB,
  /** Links in one folder of packages. */
  linksMax: 10_000,
} as const;

/** Limits of the isolates and of the queues in front of them. */
export const isolateLimits = {
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
  /** Action runners running at once. */
  runnersMax: 8,
  /** Actions one runner holds when all runners are busy. */
  actionsPerRunnerMax: 32,
  /** Actions waiting for a runner; one more is refused. */
  queuedActionsMax: 1_000,
  /** Longest frame between main and an isolate. */
  frameBytesMax: 256 * MiB,
  /** Restarts of one isolate within a minute after which the server says that the app cannot run, and stops trying so fast. */
  restartsPerMinuteMax: 60,
} as const;

/** Limits of the shared queries in main. */
export const sharedQueryLimits = {
  /** Queries nobody subscribes to that are kept to answer one-shot calls. */
  cachedQueriesMax: 10_000,
  /** Characters of results kept for them. */
  cachedCharsMax: 64 * MiB,
  /** One-shot queries waiting for a reader; one more is refused. */
  queuedQueriesMax: 20_000,
  /** Changed keys remembered while queries run, to see what a late answer missed; past it such answers run again. */
  commitKeysMax: 262_144,
  /** Results longer than this are sent whole, never as a diff: comparing them would hold up everything else. */
  diffedCharsMax: 1 * MiB,
  /** A diff is sent only when its length is at most this share of the value's. */
  diffShareMax: 0.7,
  /** A socket that had to wait this long, with no run under way that can help it, gets a wave of its own queries. */
  stuckSocketMs: 250,
} as const;

/** Limits of replay records (contract: guarantee 7). */
export const replayLimits = {
  /** A recorded response is kept at least this long. */
  recordMs: 600_000,
  /** Sessions whose highest request id the writer remembers, to skip the look-up for new requests. */
  sessionsRememberedMax: 50_000,
  /** Records that share a row, and the characters from which on a row takes no more of them. */
  runRecordsMax: 64,
  runCharsMax: 16 * KiB,
  /** Rows removed from the oldest table with each group, and for each row the group saves. */
  runsRemovedPerGroup: 64,
  runsRemovedPerRun: 4,
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

/** Limits of the way a server ends. */
export const stopLimits = {
  /** The same signal again within this time is the first one, sent along two ways. */
  sameSignalMs: 500,
} as const;

/** Limits of taking a data folder. */
export const dataLockLimits = {
  /** For so long a server that starts waits for a data folder: commands that run beside servers hold it for an instant. */
  serveWaitMs: 1_000,
  /** Time between two attempts. */
  retryMs: 25,
} as const;

/** Limits of HTTP requests outside storage. */
export const httpLimits = {
  /** Body of a function call. */
  callBodyBytesMax: 17 * MiB,
  /**
   * Longer bodies are read in pieces: the runtime keeps a buffer of the longest read for all connections, and whoever reads
   * less at once pays for it with each read.
   */
  bodyReadWholeBytesMax: 64 * KiB,
  /** Time open requests and close frames get at shutdown. */
  drainMs: 5_000,
  /** When no close frame was answered for this long at shutdown, those who have not answered are gone or do not read. */
  closeQuietMs: 500,
} as const;

/** Limits of accounts (contract: Limits; thresholds the contract leaves open are chosen here). */
export const authLimits = {
  /** Body of a request to an auth endpoint. */
  bodyBytesMax: 16 * KiB,
  /** Access token lifetime unless the operator sets another. */
  accessTokenMs: 15 * 60_000,
  /** A session ends after this long without a refresh. */
  sessionMs: 30 * 86_400_000,
  /** An expired session's row is kept this long, so that a late refresh is told why it failed. */
  expiredSessionKeptMs: 30 * 86_400_000,
  /** A rotated refresh token presented within this time is a lost race, not a theft. */
  refreshGraceMs: 10_000,
  /** Rotations of one session whose times are remembered within the grace time. */
  recentRotationsMax: 32,
  /** Shortest password, in code points. */
  passwordCharsMin: 8,
  /** Longest password, in code points. */
  passwordCharsMax: 256,
  /** Longest email address. */
  emailCharsMax: 254,
  /** Longest display name; the rest is refused. */
  nameCharsMax: 200,
  /** Longest `attemptId` of a refresh. */
  attemptIdCharsMax: 128,
  /** Shortest `attemptId` of a refresh: it has to be a guess nobody makes. */
  attemptIdCharsMin: 16,
  /** Longest `redirectTo`. */
  redirectCharsMax: 2048,
  /** Longest access token that is looked at. */
  accessTokenCharsMax: 8 * KiB,
  /** Lifetime of an email verification. */
  verifyCodeMs: 24 * 3_600_000,
  /** Lifetime of a password reset. */
  resetCodeMs: 30 * 60_000,
  /** Lifetime of a sign-in by mail. */
  magicCodeMs: 15 * 60_000,
  /** Wrong attempts after which a code is burned. */
  codeAttemptsMax: 5,
  /** Links of one kind and address that are valid at once; the oldest gives way. */
  liveLinksMax: 3,
  /** Password hashes computed at once; each takes 19 MiB and one core. */
  hashesAtOnceMax: 2,
  /** Password hashes waiting; one more is refused. */
  hashesQueuedMax: 100,
  /** Mails waiting in memory; one more is refused and logged. */
  mailsQueuedMax: 1_000,
  /** Mails being handed to the mail server at once. */
  mailsAtOnceMax: 4,
  /** Time the mail server has to connect, greet and answer each command. */
  mailTimeoutMs: 20_000,
  /** First pause before a failed mail is tried again; each further pause is twice as long. */
  mailRetryMs: 2_000,
  /** Longest pause before a failed mail is tried again. */
  mailRetryMsMax: 300_000,
  /** Without a mail server the log says no more often than this that one was asked for. */
  noMailToldMs: 600_000,
  /** Requests for mail that were answered and are still being worked on. */
  mailRequestsMax: 1_000,
  /** Sessions kept in memory to check access tokens without a look-up. */
  cachedSessionsMax: 100_000,
  /** Keys one rate limit remembers; the one unused for longest gives way. */
  rateLimitKeysMax: 50_000,
  /** Expired rows deleted by one run of the sweep. */
  sweepRowsMax: 500,
  /** Time between two sweeps of expired rows. */
  sweepIntervalMs: 600_000,
  /** Commands for administrators that come in at once over the local socket. */
  adminConnectionsMax: 8,
  /** Time one such command has. */
  adminCommandMs: 30_000,
  /** Longest such command or answer. */
  adminLineCharsMax: 1 * MiB,
  /** Sessions one account has at once; one more ends the oldest. */
  sessionsPerOwnerMax: 1_000,
  /** Description of a session's device that is kept, cut from its `User-Agent`. */
  userAgentCharsMax: 200,
} as const;

/** Limits of stored files (contract: Limits; bounds the contract leaves open are chosen here). */
export const storageLimits = {
  /** Largest upload unless the operator sets another. */
  uploadBytesMax: 100 * MiB,
  /** An upload URL can be used this long after it was made. */
  uploadUrlMs: 3_600_000,
  /** A used upload URL is remembered this long, to be told from one that has expired. */
  usedUploadKeptMs: 86_400_000,
  /** An upload that sends nothing for this long has failed. */
  uploadStallMs: 60_000,
  /** Uploads under way at once; one more is refused. */
  uploadsAtOnceMax: 1_000,
  /** Memory for the bodies being read, as long as that leaves each three times `uploadBufferBytesMin`. */
  uploadBuffersBytes: 64 * MiB,
  /** Bytes of a body read at once; twice as many are being written. */
  uploadBufferBytesMax: 256 * KiB,
  /** The same when many bodies are read at once. */
  uploadBufferBytesMin: 64 * KiB,
  /** Bytes of a new file after which the disk is told to begin writing, so that little is left to do at its end. */
  earlySyncBytes: 8 * MiB,
  /** Uploads from one client address: `burst` at once, then `perMinute`. */
  uploadsPerClient: { burst: 60, perMinute: 120 },
  /** Clients whose uploads are counted; the one unused for longest gives way. */
  rateLimitKeysMax: 50_000,
  /** Longest file name; the rest is cut off. */
  nameCharsMax: 255,
  /** Longest content type; a longer one is refused. */
  contentTypeCharsMax: 255,
  /** Ranges in one request; with more the header is ignored. */
  rangesMax: 16,
  /** How long a browser may keep a file. */
  cacheSeconds: 2_592_000,
  /** Bytes of a file sent to a bucket at once; S3 takes no smaller parts. */
  s3PartBytes: 5 * MiB,
  /** Files up to this size are kept in memory once they were read. */
  smallFileBytesMax: 32 * KiB,
  /** Bytes of such files kept, and at most as many again in answers made of them. */
  smallFilesKeptBytes: 16 * MiB,
  /** Bytes of a file read from disk at once. */
  readChunkBytes: 256 * KiB,
  /** Files whose facts are kept in memory to answer reads without a look-up. */
  cachedFilesMax: 20_000,
  /** Longest lifetime of a signed URL. */
  signedUrlSecondsMax: 10 * 365 * 86_400,
  /** Files whose contents are removed between two commits that forget them. */
  removedAtOnceMax: 100,
  /** Blobs looked up in one query of the orphan sweep. */
  sweptAtOnceMax: 500,
  /** A blob without a document is an orphan once it is this old. */
  orphanAgeMs: 3_600_000,
  /** Time between two sweeps of orphans. */
  sweepIntervalMs: 6 * 3_600_000,
  /** Bytes of a file in one message between main and an action. */
  actionChunkBytes: 512 * KiB,
  /** Files that actions are storing at once; one more is refused. */
  actionUploadsMax: 256,
  /** Largest file an action reads whole. */
  actionReadBytesMax: 512 * MiB,
  /** Longest edge of a thumbnail, in pixels. */
  thumbnailEdgeMax: 1_024,
  /** Largest image a thumbnail is made of, in bytes. */
  thumbnailSourceBytesMax: 32 * MiB,
  /** Largest image a thumbnail is made of, in pixels. */
  thumbnailSourcePixelsMax: 40_000_000,
  /** Thumbnails being made at once: each may hold a decoded image. */
  thumbnailsAtOnceMax: 2,
  /** Thumbnails waiting to be made; one more is refused. */
  thumbnailsQueuedMax: 256,
  /** Images of which no thumbnail can be made that are remembered, so that they are not tried again and again. */
  hopelessImagesMax: 10_000,
  /** A thumbnail that takes longer ends the process that makes it. */
  thumbnailMs: 30_000,
  /** The process that makes thumbnails ends when it had nothing to do for this long. */
  thumbnailIdleMs: 60_000,
  /** Private writable memory of that process, above what the runtime itself reserves. */
  thumbnailDataMiB: 1_024,
} as const;

/** Uploads in pieces (tus). */
export const resumableLimits = {
  /** An upload that was begun can be gone on with for this long, also after its URL has expired. */
  keptMs: 86_400_000,
  /** Unfinished uploads at once; one more is refused. */
  uploadsMax: 10_000,
  /** Bytes of all unfinished uploads on disk, in files of the largest size. */
  spaceInLargestFiles: 100,
  /** Bytes received between two notes on disk of how far an upload has come: at most these are lost with the server. */
  checkpointBytes: 16 * MiB,
  /** Requests for one upload that wait for the one before them to end; one more is refused. */
  waitingMax: 8,
  /** Longest `Upload-Metadata` header. */
  metadataCharsMax: 4_096,
  /** Requests that go on with uploads, from one client address. */
  requestsPerClient: { burst: 600, perMinute: 1_200 },
} as const;

/** Backups, restores, exports, imports, the admin endpoints and the metrics. */
export const opsLimits = {
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
  /** Characters of an export made at once; the server does its other work in between. */
  exportPieceChars: 64 * KiB,
  /** Columns of a CSV file; tables whose documents have more fields are exported as JSONL. */
  csvColumnsMax: 2_048,
  /** Bytes of one row of a CSV file: the largest document has fewer, with every quote in it doubled. */
  csvRowBytesMax: 8 * MiB,
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
  /** Times a state of the database is taken for one backup, as files that it names may go at that moment. */
  snapshotAttemptsMax: 3,
  /** Bytes of a backup written between two looks at the room on the disk; less than `diskReserveBytes`. */
  roomCheckBytes: 16 * MiB,
  /** Larger files are put into a backup piece by piece. */
  wholeFileBytesMax: 256 * KiB,
  /** Files without contents that are told apart when a backup is made; of more it is not asked why. */
  missingFilesMax: 10_000,
  /** Shortest time between two scheduled backups: each is a whole one. */
  backupEveryMsMin: 15 * 60_000,
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

/** Rate limits: `burst` calls at once, then `perMinute`. */
export const rateLimits = {
  /** Passwords, codes and setup tokens tried from one client address. */
  credentialsPerClient: { burst: 60, perMinute: 60 },
  /** Wrong passwords and codes for one account from one client address. */
  failuresPerAccountAndClient: { burst: 10, perMinute: 2 },
  /** Wrong passwords and codes for one account, from wherever. */
  failuresPerAccount: { burst: 100, perMinute: 10 },
  /** Refreshes from one client address, behind which a whole office may sit. */
  refreshesPerClient: { burst: 600, perMinute: 1_200 },
  /** Mails asked for from one client address. */
  mailsPerClient: { burst: 30, perMinute: 10 },
  /** Mails asked for to one email address. */
  mailsPerAddress: { burst: 5, perMinute: 0.5 },
} as const;
