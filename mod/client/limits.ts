/**
 * Every bound of the client, each with its sentence. They stand apart from the server's `mod/limits.ts` because
 * browsers load this file, and each is a constant of its own, which builders put in its place. Units stand last in the
 * names.
 */
/** A socket that has brought nothing for this long is dead (CL10). */
export const silenceMs = 30_000;
/** A socket that has not opened after this long is given up. */
export const openMs = 15_000;
/** After a wake-up of the page a socket silent for this long is not trusted: the server pings every 15 s. */
export const wakeSilenceMs = 20_000;
/** A page looks this often whether time has jumped. */
export const sleepCheckMs = 5_000;
/** A timer that is late by more than this says that the machine slept. */
export const sleptMs = 5_000;
/** Reconnection after close code 1012 happens within this long. */
export const restartJitterMs = 250;
/** Longest first wait before a reconnection; it doubles with each failure. */
export const backoffFirstMs = 250;
/** Longest wait before a reconnection. */
export const backoffMaxMs = 16_000;
/** A socket that lived this long clears the memory of earlier faults. */
export const faultMemoryMs = 60_000;
/** A mutation without an answer is sent again for this long: the server recognises it for about ten minutes. */
export const resendMs = 9 * 60_000;
/** Live queries; the server refuses more on one socket. */
export const liveQueriesMax = 1024;
/** ModifyQuerySet and Authenticate messages that await their Transition; further changes wait and are merged. */
export const unansweredTransitionsMax = 256;
/** Mutations and actions on the wire; more would make the server stop reading the socket. */
export const callsInFlightMax = 64;
/** Actions among them, so that slow actions cannot hold back every mutation. */
export const actionsInFlightMax = 48;
/** Mutations and actions that have no answer yet, on the wire or waiting; one more is refused. */
export const unansweredCallsMax = 20_000;
/** Attempts in a row that opened no socket before the client looks whether HTTP works. */
export const attemptsBeforePolling = 3;
/** Time without a socket after which it looks as well: where attempts hang, there are few. */
export const waitBeforePollingMs = 10_000;
/** HTTP works; a socket that does not open in this time either is blocked. */
export const doubtMs = 2_000;
/** `/api/health` has not answered after this long: HTTP does not work. */
export const healthMs = 5_000;
/** Time between two rounds of polling, longer by up to half of it and while answers are slow. */
export const pollMs = 3_000;
/** The same on a page that is hidden. */
export const pollHiddenMs = 30_000;
/** Queries of a round that are asked at once. */
export const polledAtOnceMax = 6;
/** A query, or a mutation, without an answer over HTTP for this long; longer than the server lets them run. */
export const httpCallMs = 40_000;
/** The same for actions. */
export const httpActionMs = 620_000;
/** Actions under way over HTTP; browsers keep few connections to one server. */
export const actionsOverHttpMax = 4;
/** Writes of a mutation over HTTP that an open socket has not shown after this long count as visible. */
export const writesVisibleMs = 2_000;
/** Arguments of one call, as JSON text. */
export const argsCharsMax = 16 * 1024 * 1024;
/** Levels of nesting of arguments. */
export const argsDepthMax = 64;
/** Levels down to which a new result is compared with the old one to keep unchanged parts. */
export const shareDepthMax = 64;
/** Levels down to which results are frozen. */
export const freezeDepthMax = 1_000;
/** A token is refreshed this long before it expires. */
export const tokenRefreshLeadMs = 30_000;
/** Shortest time between two refreshes of a token. */
export const tokenRefreshMinMs = 1_000;
/** A refresh without an answer for this long is asked again: within 10 s the server gives the same answer twice. */
export const refreshAgainMs = 4_000;
/** A refresh without an answer for this long has failed. */
export const refreshMs = 12_000;
/** A token getter that has not answered after this long is passed over; its late answer still counts. */
export const tokenFetchMs = 15_000;
/** Longest wait before a token getter that failed is asked again. */
export const tokenRetryMaxMs = 60_000;
/** Longest single timer; longer waits are cut into pieces. */
export const timerMaxMs = 24 * 60 * 60 * 1000;

/** A sign-in that left the page, or was mailed, counts as begun by this browser for this long. */
export const flowMs = 60 * 60 * 1000;
/** Sign-ins that are remembered as begun; the oldest is forgotten first. */
export const flowsMax = 16;

/** How often a page looks whether the window it opened for a sign-in was closed. */
export const popupLookMs = 500;

/** How long it waits for that window's last word after it was closed. */
export const popupLastWordMs = 1_000;
