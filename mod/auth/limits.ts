/** The bounds of accounts. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of accounts; thresholds that the contract leaves open are chosen here. */
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
  /** Address of an administrator's client that is kept with the session. */
  addressCharsMax: 64,
  /** Users an administrator's search finds. */
  usersFoundMax: 100,
  /** Documents deleted with a user in one transaction. */
  cascadeRowsMax: 500,
  /** Administrators shown at once. */
  adminsShownMax: 1_000,
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
  /** Sign-ins with a provider begun or finished from one client address, behind which a whole office may sit. */
  providerFlowsPerClient: { burst: 120, perMinute: 60 },
  /** Sign-ins with a provider begun on this server: each keeps a row for ten minutes. */
  providerFlows: { burst: 5_000, perMinute: 5_000 },
  /** Mails asked for to one email address. */
  mailsPerAddress: { burst: 5, perMinute: 0.5 },
} as const;

/** Signing in with others, and the tokens of other issuers. */
export const othersLimits = {
  /** Time a provider or issuer has for one answer, body included. */
  requestMs: 10_000,
  /** Longest answer that is read. */
  answerBytesMax: 512 * KiB,
  /** Requests to one provider or issuer at once; one more is refused. */
  requestsAtOnceMax: 32,
  /** A key set is fetched again when it is older than this. */
  keysFreshMs: 10 * 60_000,
  /** While its issuer cannot be reached a key set is used up to this age. */
  keysStaleMsMax: 24 * 3_600_000,
  /** Fetches of a key set because of keys it does not have. */
  missedKeyFetches: { burst: 5, perMinute: 2 },
  /** Keys in a set; larger ones are refused. */
  keysMax: 100,
  /** Longest key id that is looked for. */
  keyIdCharsMax: 256,
  /** How long whoever has old keys waits for new ones that are on their way. */
  renewalPatienceMs: 500,
  /** First pause after a failed fetch of a key set or a discovery document; each further one is twice as long. */
  retryMs: 1_000,
  /** Longest such pause. */
  retryMsMax: 60_000,
  /** A discovery document is fetched again when it is older than this. */
  discoveryFreshMs: 3_600_000,
  /** A token may begin this much later than now by the server's clock. */
  notBeforeLeewayMs: 60_000,
  /** Longest ID token that is read. */
  idTokenCharsMax: 32 * KiB,
  /** Longest subject of an identity. */
  subjectCharsMax: 255,
  /** Latest `exp` that is believed, seconds since the epoch: the end of the year 9999. */
  expiryMax: 253_402_300_799,
  /** External identities whose users are kept in memory. */
  cachedIdentitiesMax: 100_000,
  /** A subject that was refused is refused without another look for this long. */
  refusalKeptMs: 10_000,
  /** Subjects whose refusal is remembered; the oldest gives way. */
  refusalsKeptMax: 10_000,
  /** Claims of a provider that are passed on to the app; what comes behind is left out. */
  claimsCharsMax: 32 * KiB,
  /** Identities one user has at once. */
  identitiesPerUserMax: 20,
  /** Time to finish a sign-in at a provider (contract: Limits). */
  flowMs: 10 * 60_000,
  /** Time a signed-in user has to confirm the identity they bring back. */
  linkMs: 5 * 60_000,
  /** Expired sign-ins deleted whenever one begins. */
  flowsDroppedMax: 20,
  /** Longest form a provider posts. */
  formBytesMax: 64 * KiB,
  /** Longest value of a parameter that a provider sends. */
  parameterCharsMax: 8 * KiB,
  /** Largest file of `--auth-config`, and of a secret it names. */
  configBytesMax: 256 * KiB,
  /** How often the file of `--auth-config` is looked at. */
  configPollMs: 2_000,
  /** Lifetime of a client secret that the server signs itself. */
  clientSecretMs: 24 * 3_600_000,
} as const;

/** A rate limit: `burst` at once, then `perMinute`. */
export interface RateLimit {
  readonly burst: number;
  readonly perMinute: number;
}

/** Rate limits that are others than {@linkcode rateLimits} says. */
export type RateLimits = { readonly [Name in keyof typeof rateLimits]?: RateLimit };
