/** The bounds of starting and stopping. Units stand last in the names, as in `mod/limits.ts`. */

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

/** Connections of the server's port. Those that became sockets have limits of their own. */
export const connectionLimits = {
  /** Files that no connection may take: of the database, the isolates, uploads. Of few files it is a quarter. */
  filesReservedMax: 1_024,
  /** Of the connections there may be, so many may be sockets. */
  socketsShare: 0.8,
  /** How often the connections are looked at, where the system allows it. */
  lookMs: 2_000,
  /** Open files that are looked at first; where there are connections near the end, twice as many. */
  filesLookedMin: 256,
  /** A new connection has so long for its first request. */
  firstRequestMs: 20_000,
  /** A connection on which nothing is sent and no request is under way is kept so long for the next one. */
  keepAliveMs: 65_000,
  /** A body of which nothing comes for this long has broken off. */
  bodyStallMs: 20_000,
  /** Connections ended at least when there are too many: then the next ones find room. */
  relievedAtOnce: 32,
  /** What the system keeps of a socket that sends more than can be served, and of one that did so before. */
  receiveWindowBytes: { small: 4 * 1024, normal: 1024 * 1024 },
  /** When no connection could be taken, the next are taken after this. */
  acceptPauseMs: 50,
  /** A port that could not be opened again for so long ends its process. */
  reopenMs: 10_000,
  /** How often the log says so. */
  acceptToldMs: 60_000,
  /** Times that the port was opened again whose connections are waited for at the end. */
  serversKept: 256,
} as const;

/** Limits of a takeover. */
export const takeoverLimits = {
  /** Longest line on the socket between the two servers. */
  lineCharsMax: 10_000,
  /** From letting go of the database to the other one's word that it serves; then the old server goes on. */
  switchMs: 60_000,
  /** The old server looks for so long whether a successor that failed is gone, before it says so and goes on looking. */
  lostMs: 5_000,
  /** A server that takes over waits so long for the folder of one that dies during the switch. */
  inheritMs: 20_000,
  /** A server that was taken over and has not ended after so long is told of in the log, and what waited for it begins. */
  endMs: 120_000,
  /** Requests that wait for the end of the switch; more are answered with 503. */
  requestsHeldMax: 10_000,
  /** A server that gave way goes when for so long no request has come, and no connection waits to be taken. */
  quietMs: 500,
  /** It looks this often. */
  quietPollMs: 25,
  /** Requests passed on with bodies up to this length are read first, those with longer ones stream. */
  bodyReadBytesMax: 1_048_576,
  /** After so long it is told that a port that cannot be shared is still not free; it is tried without end. */
  portWaitMs: 10_000,
} as const;

/** What `--dev` adds. */
export const devLimits = {
  /** Log lines of functions that the terminal shows in a second. */
  linesPerSecondMax: 500,
  /** Requests whose shown lines are remembered, for an action's lines hold those of what it called. */
  requestsMax: 256,
  /** Behind a start the first pages are loaded first; then isolates begin to stand by for an edit. */
  standByAfterMs: 2_000,
} as const;

/** Limits of the static files of a front end and of the dashboard. */
export const staticLimits = {
  /** Files from this length on are sent compressed where the client takes that: shorter ones fit into one packet. */
  compressedBytesMin: 1_024,
  /** Longer ones are sent as they are. */
  compressedBytesMax: 8_388_608,
  /** A copy longer than this share of the file is not worth it, and the file is sent as it is. */
  compressedShareMax: 0.9,
  /** Copies made at once, for each folder; meanwhile other files that have none are sent as they are. */
  compressionsMax: 8,
  /** Length of all copies kept for a folder; those not asked for longest are forgotten first. */
  copiesBytesMax: 33_554_432,
  /** Copies kept, files that are not worth one included. */
  copiesMax: 4_096,
} as const;

/** Limits of the processes that take connections beside the server's own. */
export const workerLimits = {
  /** Longest text that a worker is told at its start. */
  bootCharsMax: 1_048_576,
  /** Private memory of a worker, above what the runtime itself reserves. */
  dataMiB: 8_192,
  /** A worker has so long to serve; then it is ended and started again. */
  startMs: 60_000,
  /** One that ended is started again after this, then after twice as long, up to the second; one that served for a minute begins anew. */
  restartMsMin: 250,
  restartMsMax: 30_000,
  steadyMs: 60_000,
  /** When the server stops, its workers have so long beyond the time of their requests; then they are killed. */
  stopMs: 5_000,
  /** How often a worker tells what ran in it, and how many runs it tells at most. */
  reportMs: 250,
  reportRunsMax: 10_000,
  /** Characters of the log lines in it. */
  reportCharsMax: 8_388_608,
  /** While so much waits to be read by the leader nothing is told of runs. */
  reportBytesBehind: 8_388_608,
  /** A request that came to a server which does not lead is asked again after this. */
  askAgainMs: 50,
  /** How often a worker tells how many sockets it has. */
  figuresMs: 1_000,
} as const;
