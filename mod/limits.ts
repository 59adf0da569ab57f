/**
 * The limits of sockets, functions, documents and HTTP, each with its sentence; those of one feature stand in `limits.ts` of
 * its folder. A bound that an operator or another room may ask for stands in one of these files, once; one that only its file knows, at its top.
 * Units stand last in the names: `Ms` milliseconds, `Bytes` bytes, `Chars` UTF-16 code units; no unit means a count.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of one WebSocket (WL). */
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
  /** A socket of which more waits is let send little ahead of what is served, until less than a quarter of both does. */
  heldFramesSlowed: 1_024,
  heldCharsSlowed: 1 * MiB,
  /** Characters of frames that may wait behind a held call. */
  heldCharsMax: 32 * MiB,
  /** Queries of one socket, those included whose Add or Remove awaits its Transition; past it frames are held. */
  queriesKeptMax: 4096,
  /** ModifyQuerySet and Authenticate messages that still await their Transition; one more is a FatalError. */
  unansweredTransitionsMax: 1024,
  /** A client that has said nothing for this long is closed at the next ping tick. */
  silenceMs: 45_000,
  /**
   * A client that has seen a newer ts elsewhere than this server has reached is shown nothing until it has, or for this
   * long (SG12).
   */
  observedTsWaitMs: 10_000,
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
  /** What all sockets together were sent and have not taken: this share of the memory, within the two bounds. */
  unsentShare: 1 / 16,
  unsentBytesMin: 32 * MiB,
  unsentBytesMax: 1024 * MiB,
  /** Frames up to this size need no room: what a socket can hold of them is bounded by `bufferedBytesMax`. */
  roomlessCharsMax: 64 * KiB,
  /** After a Transition that is larger than this no other such one is sent for so many milliseconds for each MiB of it. */
  largeChars: 1 * MiB,
  largePauseMsPerMiB: 8,
  /** Time between two looks at what has left, when much waits. */
  unsentLookMs: 100,
  /** Who takes less than this in so long, while much waits for him, stands still. */
  standingMs: 1_000,
  standingBytesPerSecond: 64 * KiB,
  /** What all sockets together have sent and wait for, in characters: this share of the memory, within the two bounds. */
  heldShare: 1 / 32,
  heldCharsOfAllMin: 24 * MiB,
  heldCharsOfAllMax: 512 * MiB,
  /** A socket that holds less than its share of that, but at least and at most so much, is not ended for it. */
  heldSparedCharsMin: 1 * KiB,
  heldSparedCharsMax: 256 * KiB,
  /** Frames of one socket: more are a FatalError. At once as many as may wait behind a held call. */
  frames: { burst: 80_000, perSecond: 10_000 },
  /** Frames that ask for nothing. One is due in 15 s. */
  idleFrames: { burst: 500, perSecond: 200 },
  /**
   * A socket on which the outcome of a mutation is unknown is closed once it is this old: clients come back at once, and the
   * answer may be unknown again.
   */
  unsettledCloseMs: 3_000,
  /** A socket that was ended is cut off when its close frame is not answered for so long. */
  closeMs: 5_000,
  /** The same when it sends without end, or does not read: what is said to it then does not arrive anyway. */
  closeHostileMs: 200,
  /** Frames that a socket may still send after it was ended, before it is cut off. */
  framesAfterEndMax: 64,
  /** How often the log tells of sockets that were cut off. */
  cutToldMs: 60_000,
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
