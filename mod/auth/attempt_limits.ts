/** How often one client may try credentials and ask for mail, and how often one address may be tried and written to. */
import { RateLimitedError } from "../errors.ts";
import { addressKey } from "../kit/client_address.ts";
import { RateLimiter } from "../kit/rate_limit.ts";
import { authLimits, type RateLimits, rateLimits } from "./limits.ts";

type LimitName = keyof typeof rateLimits;

/** The rate limits of accounts. Each method throws `RateLimitedError`. */
export class AttemptLimits {
  readonly #now: () => number;
  #limiters: Readonly<Record<LimitName, RateLimiter>>;
  /** Clients with accounts they signed in to, in order of last use: nobody else's failures are held against them. */
  readonly #welcome = new Set<string>();

  /** `now`: milliseconds; only differences count. */
  constructor(now: () => number) {
    this.#now = now;
    this.#limiters = this.#limitersOf({});
  }

  /** From now on these limits are others than by default. What was counted so far is forgotten. */
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
      refreshesPerClient: limiter("refreshesPerClient"),
      mailsPerClient: limiter("mailsPerClient"),
      mailsPerAddress: limiter("mailsPerAddress"),
      providerFlows: limiter("providerFlows"),
      providerFlowsPerClient: limiter("providerFlowsPerClient"),
    };
  }

  /** A client tries a password, a code, a link or a setup token. */
  tryCredential(client: string): void {
    this.#take("credentialsPerClient", addressKey(client));
  }

  /** A client refreshes. */
  tryRefresh(client: string): void {
    this.#take("refreshesPerClient", addressKey(client));
  }

  /** A client begins to sign in with a provider. */
  beginFlow(client: string): void {
    this.#take("providerFlowsPerClient", addressKey(client));
    this.#take("providerFlows", "all");
  }

  /** A client comes back from a provider. */
  finishFlow(client: string): void {
    this.#take("providerFlowsPerClient", addressKey(client));
  }

  /** A client asks for a mail to an address, which counts whether anybody has that address or not. */
  tryMail(client: string, email: string): void {
    this.#take("mailsPerClient", addressKey(client));
    this.#take("mailsPerAddress", email);
  }

  /** Counts a mail nobody asked for in so many words, such as that of a sign-up. Returns whether it may go. */
  mayMail(email: string): boolean {
    return this.#limiters.mailsPerAddress.take(email) === 0;
  }

  /**
   * Runs an attempt on an account, which counts when it fails: little is allowed to one client, more to all strangers
   * together. Clients that have signed in to the account before are no strangers, so that those who guess do not lock
   * the owner out. The attempt counts from its start, or a thousand at once would all be let through before the first
   * has failed.
   */
  async attempt<Result>(
    { account, client }: { readonly account: string; readonly client: string },
    run: () => Promise<Result | null>,
  ): Promise<Result | null> {
    const pair = `${addressKey(client)} ${account}`;
    const stranger = !this.#welcome.has(pair);
    this.#take("failuresPerAccountAndClient", pair);
    if (stranger) this.#take("failuresPerAccount", account);
    let failed = false;
    try {
      const result = await run();
      failed = result === null;
      if (!failed) this.welcome({ account, client });
      return result;
    } finally {
      if (!failed) {
        this.#limiters.failuresPerAccountAndClient.giveBack(pair);
        if (stranger) this.#limiters.failuresPerAccount.giveBack(account);
      }
    }
  }

  /** A client has signed in to an account, or made it. */
  welcome({ account, client }: { readonly account: string; readonly client: string }): void {
    const pair = `${addressKey(client)} ${account}`;
    this.#welcome.delete(pair);
    this.#welcome.add(pair);
    if (this.#welcome.size <= authLimits.rateLimitKeysMax) return;
    const [oldest] = this.#welcome;
    if (oldest !== undefined) this.#welcome.delete(oldest);
  }

  #take(name: LimitName, key: string): void {
    const waitMs = this.#limiters[name].take(key);
    if (waitMs > 0) throw new RateLimitedError(waitMs);
  }
}
