/**
 * Limits of the client. Separate from the server's `mod/limits.ts` because browsers load this file. Each is its own constant,
 * so that bundlers can inline it. Units are the last part of each name.
 */
/** A socket without any message for this time is dead (CL10). */
export const silenceMs = 30_000;
/** Timeout for opening a socket. */
export const openMs = 15_000;
/** After a wake-up, a socket silent for this time is replaced: the server pings every 15 s. */
export const wakeSilenceMs = 20_000;
/** Interval of the check for time jumps. */
export const sleepCheckMs = 5_000;
/** A timer that is late by more than this means that the machine slept. */
export const suspendedMs = 5_000;
/** Maximum delay of a reconnect after close code 1012. */
export const restartJitterMs = 250;
/** Maximum first delay of a reconnect; doubled with each failure. */
export const backoffFirstMs = 250;
/** Maximum delay of a reconnect. */
export const backoffMaxMs = 16_000;
/** A socket that lived this long resets the count of faults. */
export const faultMemoryMs = 60_000;
/** How long a mutation without a response is resent: the server recognises it for about ten minutes. */
export const resendMs = 9 * 60_000;
/** Live queries; the server refuses more on one socket. */
export const liveQueriesMax = 1024;
/** ModifyQuerySet and Authenticate messages without a Transition; further changes wait and are merged. */
export const unansweredTransitionsMax = 256;
/** Mutations and actions in flight; with more, the server would stop reading the socket. */
export const callsInFlightMax = 64;
/** Actions among them, so that slow actions cannot block all mutations. */
export const actionsInFlightMax = 48;
/** Mutations and actions without a response, in flight or queued; further calls are refused. */
export const unansweredCallsMax = 20_000;
/** Consecutive attempts without a socket before HTTP is probed. */
export const attemptsBeforePolling = 3;
/** Time without a socket after which HTTP is probed, because hanging attempts are few. */
export const waitBeforePollingMs = 10_000;
/** If HTTP works and a socket does not open within this time, sockets are blocked. */
export const doubtMs = 2_000;
/** Timeout of the `/api/health` probe. */
export const healthMs = 5_000;
/** Interval of polling rounds, up to 50 % longer at random, and longer while responses are slow. */
export const pollMs = 3_000;
/** The same for a hidden page. */
export const pollHiddenMs = 30_000;
/** Queries of a round requested concurrently. */
export const polledAtOnceMax = 6;
/** Timeout of a sign-in, and of a query or mutation over HTTP; longer than the server's timeouts. */
export const httpCallMs = 40_000;
/** The same for actions. */
export const httpActionMs = 620_000;
/** Concurrent actions over HTTP; browsers limit connections to one server. */
export const actionsOverHttpMax = 4;
/** Writes over HTTP that an open socket has not shown after this time count as visible. */
export const writesVisibleMs = 2_000;
/** Maximum size of a call's arguments as JSON, in characters. */
export const argsCharsMax = 16 * 1024 * 1024;
/** Maximum nesting of arguments. */
export const argsDepthMax = 64;
/** Depth to which a new result is compared with the old one to keep unchanged parts. */
export const shareDepthMax = 64;
/** Depth to which results are frozen. */
export const freezeDepthMax = 1_000;
/** Lead time of a token refresh before expiry. */
export const tokenRefreshLeadMs = 30_000;
/** Minimum interval between token refreshes. */
export const tokenRefreshMinMs = 1_000;
/** A refresh without a response is repeated after this time; within 10 s the server returns the same tokens. */
export const refreshAgainMs = 4_000;
/** Timeout of a token refresh. */
export const refreshMs = 12_000;
/** Timeout of a token getter; a late result is still used. */
export const tokenFetchMs = 15_000;
/** Maximum delay before a failed token getter is called again. */
export const tokenRetryMaxMs = 60_000;
/** Maximum duration of a timer; longer waits are split. */
export const timerMaxMs = 24 * 60 * 60 * 1000;

/** How long a sign-in that left the page or was mailed counts as started by this browser. */
export const flowMs = 60 * 60 * 1000;
/** Started sign-ins remembered; the oldest is dropped first. */
export const flowsMax = 16;

/** Interval of the check whether the popup window was closed. */
export const popupPollMs = 500;

/** How long to wait for the popup's last message after it was closed. */
export const popupResultMs = 1_000;
