/**
 * Limits of sockets, functions, documents and HTTP. Limits of one feature are in `limits.ts` of its folder; a limit that only
 * one file uses is declared in that file. Units come last in the names: `Ms` milliseconds, `Bytes` bytes, `Chars` UTF-16 code
 * units. Names without a unit are counts.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of one WebSocket (WL). */
export const socketLimits = {
  /** Live queries one socket may hold; one more is a FatalError. */
  liveQueriesMax: 1024,
  /** Mutations and actions in progress for one socket. Further ones are queued, with all later frames behind them. */
  callsInFlightMax: 64,
  /**
   * Frames queued behind a waiting call; one more is a FatalError. Sockets of this runtime cannot stop reading, so the queue has
   * room for what a client may send without waiting for responses.
   */
  queuedFramesMax: 65_536,
  /** A socket with more queued frames or characters gets a small receive window until less than a quarter of both remains. */
  slowedFramesMin: 1_024,
  slowedCharsMin: 1 * MiB,
  /** Characters of the frames queued behind a waiting call. */
  queuedCharsMax: 32 * MiB,
  /** Queries of one socket, including those whose Add or Remove awaits its Transition. At the limit, frames are queued. */
  queriesTrackedMax: 4096,
  /** ModifyQuerySet and Authenticate messages that still await their Transition; one more is a FatalError. */
  unansweredTransitionsMax: 1024,
  /** A client that has been silent for this long is closed at the next ping tick. */
  silenceMs: 45_000,
  /** A client that has seen a newer ts on another server gets no results until this server reaches it, or for this long (SG12). */
  observedTsWaitMs: 10_000,
  /** A connection on which not even a pong of the network stack arrived for this long is closed. */
  deadPeerMs: 40_000,
  /** Time between two Pings. */
  pingIntervalMs: 15_000,
  /** A frame that takes longer than this to send closes the socket. */
  frameSendMs: 30_000,
  /** Longest accepted frame: the largest arguments and their envelope. */
  frameCharsMax: 17 * MiB,
  /** Bytes waiting in the socket's send buffer above which it counts as slow and its updates are merged. */
  bufferedBytesMax: 256 * KiB,
  /** Interval at which the send buffers of slow sockets are polled. */
  drainPollMs: 20,
  /** Interval of the checks of pings, silence, token expiry and send times. */
  tickMs: 100,
  /**
   * Bytes waiting in the send buffer behind the last Transition above which the socket is closed. The Transition itself does
   * not count: a slow socket gets no further one, and its client requested the contents.
   */
  bufferedBytesFatal: 64 * MiB,
  /** Outbound buffer quota of all sockets: this share of the memory, within the two bounds. */
  outboundQuotaShare: 1 / 16,
  outboundQuotaBytesMin: 32 * MiB,
  outboundQuotaBytesMax: 1024 * MiB,
  /** Frames up to this size need no reservation of that quota: `bufferedBytesMax` bounds how many a socket buffers. */
  unreservedFrameCharsMax: 64 * KiB,
  /** After a Transition larger than this, no other such one is sent for `largePauseMsPerMiB` milliseconds for each MiB of it. */
  largeChars: 1 * MiB,
  largePauseMsPerMiB: 8,
  /** Interval at which sent bytes are polled while much is buffered. */
  outboundPollMs: 100,
  /** A socket is stalled if it takes fewer bytes in each interval while data is buffered. */
  stallCheckMs: 1_000,
  stallBytesPerSecond: 64 * KiB,
  /** Inbound buffer quota of all sockets, in characters: this share of the memory, within the two bounds. */
  inboundQuotaShare: 1 / 32,
  inboundQuotaCharsMin: 24 * MiB,
  inboundQuotaCharsMax: 512 * MiB,
  /** A socket with less than its share of that quota, within these bounds, is not closed because of it. */
  inboundExemptCharsMin: 1 * KiB,
  inboundExemptCharsMax: 256 * KiB,
  /** Frames of one socket; more are a FatalError. The burst is larger than the queue behind a waiting call. */
  frames: { burst: 80_000, perSecond: 10_000 },
  /** Frames without a request. A client sends one every 15 s. */
  idleFrames: { burst: 500, perSecond: 200 },
  /**
   * A socket on which the outcome of a mutation is unknown is closed once it is this old: clients come back at once, and the
   * answer may be unknown again.
   */
  unsettledCloseMs: 3_000,
  /** A closed socket is aborted if its close frame is not answered within this time. */
  closeMs: 5_000,
  /** The same for a socket that floods the server or does not read. */
  closeHostileMs: 200,
  /** Frames that a closed socket may still send before it is aborted. */
  framesAfterEndMax: 64,
  /** Minimum interval between log messages about aborted sockets. */
  terminationLogMs: 60_000,
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
  /** Shortest such times that may be asked for. */
  timeoutMsMin: 1_000,
  /** Longest. */
  timeoutMsMax: 600_000,
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
  /** Index entries one call may count. */
  entriesCountedMax: 10_000_000,
  /** Documents one mutation may write. */
  documentsWrittenMax: 16_000,
  /** Characters of documents one mutation may write. */
  charsWrittenMax: 16 * MiB,
  /** Characters of index entries one mutation may write: its commit entry contains them. */
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

/** Limits of HTTP requests outside storage. */
export const httpLimits = {
  /** Body of a function call. */
  callBodyBytesMax: 17 * MiB,
  /**
   * Longer bodies are read in pieces: the runtime keeps a buffer of the longest read for all connections, which makes each
   * shorter read slower.
   */
  bodyReadWholeBytesMax: 64 * KiB,
  /** Time open requests and close frames get at shutdown. */
  drainMs: 5_000,
  /** When no close frame was answered for this long at shutdown, those who have not answered are gone or do not read. */
  closeQuietMs: 500,
} as const;
