/** Limits how often a client tries credentials and requests mail, and how often an address is tried and mailed. */
import { LRUCache } from "lru-cache";
import { RateLimitedError } from "../errors.ts";
import { entriesMax } from "../kit/bounded_lru.ts";
import { addressKey } from "../kit/client_address.ts";
import { RateLimiter } from "../kit/rate_limit.ts";
import { authLimits, type RateLimits, rateLimits } from "./limits.ts";

/** The sender of a request to the auth endpoints. */
export interface Requester {
  /** Client address, taking trusted proxies into account. */
  readonly client: string;
  /** The `User-Agent`, by which users recognise their sessions. */
  readonly userAgent: string | null;
  /** Session with which it signs in; an anonymous user's is replaced. */
  readonly priorSession?: string | null;
}

type LimitName = keyof typeof rateLimits;

/** The rate limits of accounts. Each method throws `RateLimitedError`. */
export class AttemptLimits {
  readonly #now: () => number;
  #limiters: Readonly<Record<LimitName, RateLimiter>>;
  /** Clients that signed in to an account before. Failures of unknown clients do not count against them. */
  readonly #knownClients = new LRUCache<string, true>(entriesMax(authLimits.rateLimitKeysMax));

  /** `now`: milliseconds; only differences matter. */
  constructor(now: () => number) {
    this.#now = now;
    this.#limiters = this.#limitersOf({});
  }

  /** Overrides the default limits. Resets all counters. */
  use(changed: RateLimits): void {
    this.#limiters = this.#limitersOf(changed);
  }

  #limitersOf(changed: RateLimits): Readonly<Record<LimitName, RateLimiter>> {
    const limiter = (name: LimitName) =>
      new RateLimiter({
        ...rateLimits[name],
        ...changed[name],
        keysMax: authLimits.rateLimitKeysMax,
        now: this.#now,
      });
    return {
      credentialsPerClient: limiter("credentialsPerClient"),
      failuresPerAccount: limiter("failuresPerAccount"),
      failuresPerAccountAndClient: limiter("failuresPerAccountAndClient"),
      factorFailures: limiter("factorFailures"),
      anonymousPerClient: limiter("anonymousPerClient"),
      refreshesPerClient: limiter("refreshesPerClient"),
      mailsPerClient: limiter("mailsPerClient"),
      mailsPerAddress: limiter("mailsPerAddress"),
      unknownKeysPerClient: limiter("unknownKeysPerClient"),
      deviceMailsPerAddress: limiter("deviceMailsPerAddress"),
      providerFlows: limiter("providerFlows"),
      providerFlowsPerClient: limiter("providerFlowsPerClient"),
    };
  }

  /** Counts an attempt with a password, code, link or setup token. */
  tryCredential(client: string): void {
    this.#take("credentialsPerClient", addressKey(client));
  }

  /** Counts an anonymous sign-in. */
  tryAnonymous(client: string): void {
    this.#take("anonymousPerClient", addressKey(client));
  }

  /** Counts a refresh. */
  tryRefresh(client: string): void {
    this.#take("refreshesPerClient", addressKey(client));
  }

  /** Counts the start of a provider sign-in. */
  beginFlow(client: string): void {
    this.#take("providerFlowsPerClient", addressKey(client));
    this.#take("providerFlows", "all");
  }

  /** Counts a return from a provider, or a sign-in with the returned token. */
  finishFlow(client: string): void {
    this.#take("providerFlowsPerClient", addressKey(client));
  }

  /** Counts a mail request for an address, whether or not it has an account. */
  tryMail(client: string, email: string): void {
    this.#take("mailsPerClient", addressKey(client));
    this.#take("mailsPerAddress", email);
  }

  /** Counts a mail that was not requested explicitly, such as the one after sign-up. Returns whether it may be sent. */
  mayMail(email: string): boolean {
    return this.#limiters.mailsPerAddress.take(email) === 0;
  }

  /**
   * Counts a mail about a new device, apart from other mails: requests of unknown clients cannot suppress it. Returns whether it
   * may be sent.
   */
  mayMailDevice(email: string): boolean {
    return this.#limiters.deviceMailsPerAddress.take(email) === 0;
  }

  /**
   * Runs a sign-in attempt, which counts if it fails. One client is allowed few failures, all unknown clients together more.
   * Clients that have signed in to the account before are not counted as unknown, so that an attacker cannot lock out the
   * owner. The attempt counts from its start; otherwise a thousand concurrent attempts would all be allowed.
   */
  async attempt<Result>(
    { account, client }: { readonly account: string; readonly client: string },
    run: () => Promise<Result | null>,
  ): Promise<Result | null> {
    const pair = `${addressKey(client)} ${account}`;
    const unknown = !this.#knownClients.has(pair);
    this.#take("failuresPerAccountAndClient", pair);
    if (unknown) this.#take("failuresPerAccount", account);
    return await this.#refundedUnlessFailed(run, () => {
      this.#limiters.failuresPerAccountAndClient.refund(pair);
      if (unknown) this.#limiters.failuresPerAccount.refund(account);
    }, { account, client });
  }

  /**
   * Runs an attempt with a second factor, which counts if it fails. Its codes are short and the attacker knows the password, so
   * few failures are allowed. Clients that proved it before are counted apart, so that an attacker cannot lock out the owner.
   */
  async attemptFactor<Result>(
    { account, client }: { readonly account: string; readonly client: string },
    run: () => Promise<Result | null>,
  ): Promise<Result | null> {
    const pair = `${addressKey(client)} ${account}`;
    const key = this.#knownClients.has(pair) ? pair : account;
    this.#take("factorFailures", key);
    return await this.#refundedUnlessFailed(run, () => this.#limiters.factorFailures.refund(key), {
      account,
      client,
    });
  }

  /** Looks up an API key for a client, which counts if there is none. */
  async findKey<Row>(client: string, find: () => Promise<Row | null>): Promise<Row | null> {
    this.#take("unknownKeysPerClient", client);
    return await this.#refundedUnlessFailed(find, () => this.#limiters.unknownKeysPerClient.refund(client));
  }

  /** Runs a counted attempt. `null` is a failure; an attempt that did not fail or did not run to its end does not count. */
  async #refundedUnlessFailed<Result>(
    run: () => Promise<Result | null>,
    refund: () => void,
    by?: { readonly account: string; readonly client: string },
  ): Promise<Result | null> {
    let failed = false;
    try {
      const result = await run();
      failed = result === null;
      if (!failed && by !== undefined) this.recordClient(by);
      return result;
    } finally {
      if (!failed) refund();
    }
  }

  /** Records that a client has signed in to an account or created it. */
  recordClient({ account, client }: { readonly account: string; readonly client: string }): void {
    this.#knownClients.set(`${addressKey(client)} ${account}`, true);
  }

  #take(name: LimitName, key: string): void {
    const waitMs = this.#limiters[name].take(key);
    if (waitMs > 0) throw new RateLimitedError(waitMs);
  }
}
