/** Limits of the server. Names end with the unit, as in `mod/limits.ts`. */

export const stopLimits = {
  /** A repeated signal within this time counts as one: it reached the process in two ways. */
  sameSignalMs: 500,
} as const;

export const dataLockLimits = {
  /** How long a starting server waits for the lock: commands that may run beside a server hold it briefly. */
  serveWaitMs: 1_000,
  /** Time between two attempts. */
  retryMs: 25,
} as const;

/** Connections of the server's port. WebSockets have their own limits. */
export const connectionLimits = {
  /** Open files reserved for the database, isolates and uploads; at most a quarter of the limit. */
  filesReservedMax: 1_024,
  /** Share of the connections that may be WebSockets. */
  socketsShare: 0.8,
  /** Interval of the connection checks. */
  checkMs: 2_000,
  /** Number of file descriptors to check at first; doubles when connections are found near the end. */
  filesCheckedMin: 256,
  /** Time for the first request on a new connection. */
  firstRequestMs: 20_000,
  /** Keep-alive time of an idle connection. */
  keepAliveMs: 65_000,
  /** A request body that makes no progress for this long fails. */
  bodyStallMs: 20_000,
  /** Minimum number of connections closed when there are too many. */
  relievedAtOnce: 32,
  /** Receive buffer of a socket that sends more than can be processed, and of one that did so before. */
  receiveWindowBytes: { small: 4 * 1024, normal: 1024 * 1024 },
  /** Pause after a connection could not be accepted. */
  acceptPauseMs: 50,
  /** The process ends if the port cannot be reopened for this long. */
  reopenMs: 10_000,
  /** Minimum time between two log messages about it. */
  acceptLogMs: 60_000,
  /** Number of reopened listeners whose requests are awaited at the end. */
  serversKept: 256,
} as const;

/** Requests that arrive during a takeover or a change of role. */
export const gateLimits = {
  /** Time that a request waits for the next backend; then it gets 503. */
  waitMs: 10_000,
  /** Maximum number of requests that wait; more get 503. */
  requestsWaitingMax: 10_000,
} as const;

export const takeoverLimits = {
  /** Longest message between the two processes. */
  lineCharsMax: 10_000,
  /** Time for the old process to answer a message that needs no work. */
  answerMs: 10_000,
  /** Time for the old process to finish running calls and release the data folder. */
  stepDownMs: 60_000,
  /** Time to wait for the lock of the data folder after the old process has released it or died. */
  lockMs: 20_000,
  /** Time from releasing the data folder until the new process leads. Then the lock of the folder decides which process continues. */
  leadMs: 60_000,
  /** Time to check the documents against the schema of the new code before the old process steps down. */
  checkMs: 900_000,
  /** Polling interval for a port that cannot be shared. */
  portPollMs: 25,
  /** Time to wait for that port. Then the takeover has failed. */
  portWaitMs: 10_000,
} as const;

/** Limits of `--dev`. */
export const devLimits = {
  /** Log lines of functions that the terminal shows in a second. */
  linesPerSecondMax: 500,
  /** Running actions whose printed lines are remembered: an action's lines include those of nested calls. */
  callersMax: 256,
  /** Delay before idle isolates are started for the next edit, so that first page loads are not slowed down. */
  standByAfterMs: 2_000,
} as const;

/** Static files of frontends and the dashboard. */
export const staticLimits = {
  /** Smallest file to compress: smaller ones fit into one packet. */
  compressedBytesMin: 1_024,
  /** Largest file to compress. */
  compressedBytesMax: 8_388_608,
  /** A copy larger than this share of the file is not used. */
  compressedShareMax: 0.9,
  /** Compressions at a time per folder. Other files are sent uncompressed in the meantime. */
  compressionsMax: 8,
  /** Total size of the cached copies of a folder; the least recently used are evicted. */
  copiesBytesMax: 33_554_432,
  /** Maximum number of cached copies, including entries for files that are not worth compressing. */
  copiesMax: 4_096,
} as const;

/** Limits of worker processes. */
export const workerLimits = {
  /** Maximum length of a worker's boot message. */
  bootCharsMax: 1_048_576,
  /** Private memory of a worker, in addition to what the runtime reserves. */
  dataMiB: 8_192,
  /** Time for a worker to start; then it is killed and started again. */
  startMs: 60_000,
  /** Restart delay, doubled after each failure up to the maximum; reset after a minute of service. */
  restartMsMin: 250,
  restartMsMax: 30_000,
  steadyMs: 60_000,
  /** Time for workers to exit after their requests have been drained; then they are killed. */
  stopMs: 5_000,
  /** Interval of a worker's run reports, and the maximum number of runs, of spans and of log lines in each. */
  reportMs: 250,
  reportRunsMax: 10_000,
  /** Maximum characters of runs, spans and log lines in a report. */
  reportCharsMax: 8_388_608,
  /** No reports are sent while more than this is unsent. */
  reportBytesBehind: 8_388_608,
  /** Forwarded requests with bodies up to this length are buffered, longer ones are streamed. */
  bodyReadBytesMax: 1_048_576,
  /** Delay before a request is repeated that a server which does not lead has refused. */
  askAgainMs: 50,
  /** Interval of a worker's load reports. */
  figuresMs: 1_000,
} as const;
