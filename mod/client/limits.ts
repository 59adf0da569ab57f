/**
 * Every bound of the client, each with its sentence. They stand apart from the server's `mod/limits.ts` because
 * browsers load this file. Units stand last in the names.
 */
export const clientLimits = {
  /** A socket that has brought nothing for this long is dead (contract: Client reconnect sequence). */
  silenceMs: 30_000,
  /** A socket that has not opened after this long is given up. */
  openMs: 15_000,
  /** After a wake-up of the page a socket silent for this long is not trusted: the server pings every 15 s. */
  wakeSilenceMs: 20_000,
  /** Reconnection after close code 1012 happens within this long. */
  restartJitterMs: 250,
  /** Longest first wait before a reconnection; it doubles with each failure. */
  backoffFirstMs: 250,
  /** Longest wait before a reconnection. */
  backoffMaxMs: 16_000,
  /** A socket that lived this long clears the memory of earlier faults. */
  faultMemoryMs: 60_000,
  /** Live queries; the server refuses more on one socket. */
  liveQueriesMax: 1024,
  /** ModifyQuerySet and Authenticate messages that await their Transition; further changes wait and are merged. */
  unansweredTransitionsMax: 256,
  /** Mutations and actions on the wire; more would make the server stop reading the socket. */
  callsInFlightMax: 64,
  /** Actions among them, so that slow actions cannot hold back every mutation. */
  actionsInFlightMax: 48,
  /** Mutations and actions that have no answer yet, on the wire or waiting; one more is refused. */
  unansweredCallsMax: 20_000,
  /** Attempts in a row that opened no socket before the client looks whether HTTP works. */
  attemptsBeforePolling: 3,
  /** Time without a socket after which it looks as well: where attempts hang, there are few. */
  waitBeforePollingMs: 10_000,
  /** HTTP works; a socket that does not open in this time either is blocked. */
  doubtMs: 2_000,
  /** `/api/health` has not answered after this long: HTTP does not work. */
  healthMs: 5_000,
  /** Time between two rounds of polling, longer by up to half of it and while answers are slow. */
  pollMs: 3_000,
  /** The same on a page that is hidden. */
  pollHiddenMs: 30_000,
  /** Queries of a round that are asked at once. */
  polledAtOnceMax: 6,
  /** A query, or a mutation, without an answer over HTTP for this long; longer than the server lets them run. */
  httpCallMs: 40_000,
  /** The same for actions. */
  httpActionMs: 620_000,
  /** Actions under way over HTTP; browsers keep few connections to one server. */
  actionsOverHttpMax: 4,
  /** After polling, Transitions older than a mutation whose writes are shown wait this long for a newer one. */
  catchUpMs: 2_000,
  /** Transitions that wait for it. */
  catchUpMax: 64,
  /** Arguments of one call, as JSON text. */
  argsCharsMax: 16 * 1024 * 1024,
  /** Levels of nesting of arguments. */
  argsDepthMax: 64,
  /** Levels down to which a new result is compared with the old one to keep unchanged parts. */
  shareDepthMax: 64,
  /** Levels down to which results are frozen. */
  freezeDepthMax: 1_000,
  /** A token is refreshed this long before it expires. */
  tokenRefreshLeadMs: 30_000,
  /** Shortest time between two refreshes of a token. */
  tokenRefreshMinMs: 1_000,
  /** A refresh without an answer for this long is asked again: within 10 s the server gives the same answer twice. */
  refreshAgainMs: 4_000,
  /** A refresh without an answer for this long has failed. */
  refreshMs: 12_000,
  /** A token getter that has not answered after this long is passed over; its late answer still counts. */
  tokenFetchMs: 15_000,
  /** Longest wait before a token getter that failed is asked again. */
  tokenRetryMaxMs: 60_000,
  /** Longest single timer; longer waits are cut into pieces. */
  timerMaxMs: 24 * 60 * 60 * 1000,
} as const;
