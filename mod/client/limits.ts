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
