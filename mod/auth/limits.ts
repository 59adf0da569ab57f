/** Limits of accounts. Units are the last part of each name, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of accounts. Thresholds that the contract leaves open are chosen here. */
export const authLimits = {
  /** Maximum body size of a request to an auth endpoint. */
  bodyBytesMax: 16 * KiB,
  /** Default lifetime of access tokens. */
  accessTokenMs: 15 * 60_000,
  /** A session expires after this time without a refresh. */
  sessionMs: 30 * 86_400_000,
  /** How long the row of an expired session is kept, so that a late refresh gets the specific error. */
  expiredSessionKeptMs: 30 * 86_400_000,
  /** Grace time in which a rotated refresh token counts as a lost race instead of reuse. */
  refreshGraceMs: 10_000,
  /** Rotations remembered for each session within the grace time. */
  recentRotationsMax: 32,
  /** Minimum password length in code points. */
  passwordCharsMin: 8,
  /** Maximum password length in code points. */
  passwordCharsMax: 256,
  /** Maximum length of an email address. */
  emailCharsMax: 254,
  /** Maximum length of a display name. */
  nameCharsMax: 200,
  /** Maximum length of the `attemptId` of a refresh. */
  attemptIdCharsMax: 128,
  /** Minimum length of the `attemptId` of a refresh, so that it cannot be guessed. */
  attemptIdCharsMin: 16,
  /** Maximum length of `redirectTo`. */
  redirectCharsMax: 2048,
  /** Maximum length of an access token. */
  accessTokenCharsMax: 8 * KiB,
  /** Lifetime of an address verification. */
  verifyCodeMs: 24 * 3_600_000,
  /** Lifetime of a password reset. */
  resetCodeMs: 30 * 60_000,
  /** Lifetime of a magic link. */
  magicCodeMs: 15 * 60_000,
  /** Wrong attempts that burn a code. */
  codeAttemptsMax: 5,
  /** Time to prove the second factor of a sign-in. */
  challengeMs: 5 * 60_000,
  /** Wrong proofs that end such a sign-in. */
  challengeAttemptsMax: 5,
  /** Sign-ins of one account that wait for a second factor; a new one replaces the oldest. */
  challengesPerOwnerMax: 100,
  /** Maximum length of a challenge, code or recovery code in a request. */
  proofCharsMax: 100,
  /** Time to confirm an authenticator app. */
  enrolmentMs: 10 * 60_000,
  /** Length of a time step of authenticator apps. */
  totpStepMs: 30_000,
  /** Accepted steps before and after the current one, for clocks that are up to 60 seconds off. */
  totpDriftSteps: 2,
  /** Recovery codes of an account. */
  recoveryCodes: 10,
  /** Factors can be changed for this time after one was proved. */
  factorFreshMs: 10 * 60_000,
  /** Accounts without a factor can make such changes for this time after a sign-in or a confirmed password. */
  confirmationFreshMs: 10 * 60_000,
  /** Time to use the challenge of a passkey. */
  passkeyChallengeMs: 5 * 60_000,
  /** Passkeys of one user. */
  passkeysPerUserMax: 20,
  /** Maximum length of the name of a passkey. */
  passkeyNameCharsMax: 60,
  /** Maximum length of a credential's id: 1,023 bytes, as in WebAuthn. */
  credentialIdCharsMax: 1_364,
  /** Maximum length of the client data of a passkey. */
  clientDataCharsMax: 2 * KiB,
  /** Maximum length of an attestation, of authenticator data or of a signature. */
  attestationCharsMax: 8 * KiB,
  /** API keys of one user, or without a user. */
  keysPerOwnerMax: 100,
  /** API keys listed at once. */
  keysShownMax: 1_000,
  /** Maximum length of the name of an API key. */
  keyNameCharsMax: 60,
  /** Patterns in the scope of an API key. */
  keyPatternsMax: 50,
  /** Maximum length of a pattern. */
  keyPatternCharsMax: 200,
  /** API keys cached to verify calls without a look-up. */
  cachedKeysMax: 10_000,
  /** Minimum time between two records of the use of an API key. */
  keyUseNotedMs: 60_000,
  /** Valid links for each kind and address; a new one replaces the oldest. */
  liveLinksMax: 3,
  /** Concurrent password hashes; each takes 19 MiB and one core. */
  hashesAtOnceMax: 2,
  /** Queued password hashes; further requests are refused. */
  hashesQueuedMax: 100,
  /** Mails queued in memory; further mails are dropped and logged. */
  mailsQueuedMax: 1_000,
  /** Mails sent to the mail server concurrently. */
  mailsAtOnceMax: 4,
  /** Timeout of each step of the SMTP dialog. */
  mailTimeoutMs: 20_000,
  /** Delay before a failed mail is retried; doubled for each further retry. */
  mailRetryMs: 2_000,
  /** Maximum delay before a retry. */
  mailRetryMsMax: 300_000,
  /** Minimum interval between log lines about mails requested without a mail server. */
  noMailLogMs: 600_000,
  /** Answered mail requests that are still processed in the background. */
  mailRequestsMax: 1_000,
  /** Sessions cached to check access tokens without a look-up. */
  cachedSessionsMax: 100_000,
  /** Access tokens whose signature need not be verified again. */
  cachedTokensMax: 10_000,
  /** Keys tracked by each rate limit; the least recently used is evicted. */
  rateLimitKeysMax: 50_000,
  /** Expired rows deleted by one sweep transaction. */
  sweepRowsMax: 500,
  /** Interval of sweeps of expired rows. */
  sweepIntervalMs: 600_000,
  /** Concurrent commands on the local socket. */
  adminConnectionsMax: 8,
  /** Timeout of a command on the local socket. */
  adminCommandMs: 30_000,
  /** Maximum size of such a command or response. */
  adminLineCharsMax: 1 * MiB,
  /** Sessions of one account; a new one ends the oldest. */
  sessionsPerOwnerMax: 1_000,
  /** Devices remembered for each account; a new one replaces the least recently used one. */
  devicesPerOwnerMax: 20,
  /** Time in which the mail about a new device is retried. */
  deviceMailMs: 24 * 3_600_000,
  /** Stored length of a device description from the `User-Agent`. */
  userAgentCharsMax: 200,
  /** Stored length of an administrator's client address. */
  addressCharsMax: 64,
  /** Default time for which anonymous users without a session are kept. */
  anonymousUserMs: 30 * 86_400_000,
  /** Maximum number of users found by a search. */
  usersFoundMax: 100,
  /** Documents deleted with a user in one transaction. */
  cascadeRowsMax: 500,
  /** Administrators listed at once. */
  adminsShownMax: 1_000,
} as const;

/** Rate limits: a burst of `burst` calls, then `perMinute`. */
export const rateLimits = {
  /** Attempts with passwords, codes and setup tokens, by client address. */
  credentialsPerClient: { burst: 60, perMinute: 60 },
  /** Failed attempts with passwords and codes, by account and client address. */
  failuresPerAccountAndClient: { burst: 10, perMinute: 2 },
  /** Failed attempts with passwords and codes, by account. */
  failuresPerAccount: { burst: 100, perMinute: 10 },
  /** Wrong second factors by account; clients that proved it before are counted apart. */
  factorFailures: { burst: 10, perMinute: 0.2 },
  /** Look-ups of API keys that do not exist, by client address. */
  unknownKeysPerClient: { burst: 60, perMinute: 60 },
  /** Anonymous sign-ins by client address, which a whole office may share; each creates a user. */
  anonymousPerClient: { burst: 60, perMinute: 6 },
  /** Refreshes by client address, which a whole office may share. */
  refreshesPerClient: { burst: 600, perMinute: 1_200 },
  /** Mail requests by client address. */
  mailsPerClient: { burst: 30, perMinute: 10 },
  /** Provider sign-ins started or finished, by client address, which a whole office may share. */
  providerFlowsPerClient: { burst: 120, perMinute: 60 },
  /** Provider sign-ins started on this server; each keeps a row for ten minutes. */
  providerFlows: { burst: 5_000, perMinute: 5_000 },
  /** Mail requests by email address. */
  mailsPerAddress: { burst: 5, perMinute: 0.5 },
  /** Mails about sign-ins from new devices, by email address. */
  deviceMailsPerAddress: { burst: 5, perMinute: 0.1 },
} as const;

/** Limits of provider sign-ins and external tokens. */
export const externalLimits = {
  /** Timeout of a response from a provider or issuer, body included. */
  requestMs: 10_000,
  /** Maximum size of such a response. */
  answerBytesMax: 512 * KiB,
  /** Concurrent requests to one provider or issuer; further ones are refused. */
  requestsAtOnceMax: 32,
  /** Age after which a key set is fetched again. */
  keysFreshMs: 10 * 60_000,
  /** Maximum age of a key set while its issuer is unreachable. */
  keysStaleMsMax: 24 * 3_600_000,
  /** Rate limit of fetches caused by unknown keys. */
  missedKeyFetches: { burst: 5, perMinute: 2 },
  /** Maximum number of keys in a set. */
  keysMax: 100,
  /** Maximum length of a key id. */
  keyIdCharsMax: 256,
  /** How long a request with old keys waits for a running fetch. */
  renewalPatienceMs: 500,
  /** Delay after a failed fetch of a key set or discovery document; doubled for each further failure. */
  retryMs: 1_000,
  /** Maximum delay after failed fetches. */
  retryMsMax: 60_000,
  /** Age after which a discovery document is fetched again. */
  discoveryFreshMs: 3_600_000,
  /** Allowed clock skew for the start of a token's validity. */
  notBeforeLeewayMs: 60_000,
  /** Maximum length of an ID token. */
  idTokenCharsMax: 32 * KiB,
  /** Maximum length of an identity's subject. */
  subjectCharsMax: 255,
  /** Latest accepted `exp` in seconds since the epoch: the end of the year 9999. */
  expiryMax: 253_402_300_799,
  /** External identities cached with their users. */
  cachedIdentitiesMax: 100_000,
  /** How long a refused subject is refused without another look-up. */
  refusalKeptMs: 10_000,
  /** Refused subjects remembered; the oldest is evicted. */
  refusalsKeptMax: 10_000,
  /** Provider claims passed to the app; further claims are dropped. */
  claimsCharsMax: 32 * KiB,
  /** Identities of one user. */
  identitiesPerUserMax: 20,
  /** Time to finish a provider sign-in (contract: Limits). */
  flowMs: 10 * 60_000,
  /** Time to link an identity or to sign in with it, after the return from the provider. */
  linkMs: 5 * 60_000,
  /** Expired sign-ins deleted whenever a new one starts. */
  flowsDroppedMax: 20,
  /** Maximum size of a form posted by a provider. */
  formBytesMax: 64 * KiB,
  /** Maximum length of a parameter sent by a provider. */
  parameterCharsMax: 8 * KiB,
  /** Maximum size of the `--auth-config` file and of secret files it names. */
  configBytesMax: 256 * KiB,
  /** Poll interval of the `--auth-config` file. */
  configPollMs: 2_000,
  /** Lifetime of a client secret signed by the server. */
  clientSecretMs: 24 * 3_600_000,
} as const;

/** A rate limit: a burst of `burst` calls, then `perMinute`. */
export interface RateLimit {
  readonly burst: number;
  readonly perMinute: number;
}

/** Overrides of {@linkcode rateLimits}. */
export type RateLimits = { readonly [Name in keyof typeof rateLimits]?: RateLimit };
