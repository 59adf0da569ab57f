/**
 * When a request to a bucket is sent again: so many times, after pauses that double and are never the same, longer ones
 * where the service asks for fewer requests, and at least as long as it says.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as wait } from "node:timers/promises";
import type { S3ServiceException } from "@aws-sdk/client-s3";
import { bucketLimits } from "../limits.ts";

export interface Patience {
  /** How often a request is sent at the most. */
  readonly attempts: number;
  /** Waits; rejects when the request is given up meanwhile. */
  readonly pause?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** A request that may have to be sent again. */
interface RetryToken {
  /** How often it was sent again. */
  getRetryCount(): number;
  getRetryDelay(): number;
}

/** What the client's library says of a failed request. */
interface RetryErrorInfo {
  readonly error?: Error & { readonly $metadata?: S3ServiceException["$metadata"] };
  readonly errorType: "TRANSIENT" | "THROTTLING" | "SERVER_ERROR" | "CLIENT_ERROR";
  /** When the service wants to be asked again. */
  readonly retryAfterHint?: Date;
}

const systemPause = (ms: number, signal: AbortSignal | undefined) => wait(ms, undefined, { signal });

/** As the client's library wants it. */
export class BucketRetries {
  readonly #attempts: number;
  readonly #pause: NonNullable<Patience["pause"]>;
  /** The library does not say which request it is that is to be sent again. */
  readonly #signals = new AsyncLocalStorage<AbortSignal>();

  constructor({ attempts, pause = systemPause }: Patience) {
    this.#attempts = attempts;
    this.#pause = pause;
  }

  /** Sends a request, whose pauses end with the signal. */
  during<Answer>(signal: AbortSignal, send: () => Promise<Answer>): Promise<Answer> {
    return this.#signals.run(signal, send);
  }

  acquireInitialRetryToken(): Promise<RetryToken> {
    return Promise.resolve(tokenOf(0));
  }

  /** Resolves when the request may be sent again. Throws when it may not. */
  async refreshRetryTokenForRetry(token: RetryToken, info: RetryErrorInfo): Promise<RetryToken> {
    const sent = token.getRetryCount() + 1;
    const passes = info.errorType === "TRANSIENT" || info.errorType === "THROTTLING";
    if (!passes || sent >= this.#attempts) throw new Error("The request is not sent again");
    await this.#pause(pauseMs(info, sent), this.#signals.getStore());
    return tokenOf(sent);
  }

  recordSuccess(): void {}
}

function tokenOf(sentAgain: number): RetryToken {
  return { getRetryCount: () => sentAgain, getRetryDelay: () => 0 };
}

/** Before the request is sent for the `sent + 1`st time. */
function pauseMs({ error, errorType, retryAfterHint }: RetryErrorInfo, sent: number): number {
  const { busyPauseMs, brokenPauseMs, pauseMsMax } = bucketLimits;
  // Services that have too much to do say 503 in several words.
  const busy = errorType === "THROTTLING" || error?.$metadata?.httpStatusCode === 503;
  const most = Math.min(pauseMsMax, (busy ? busyPauseMs : brokenPauseMs) * 2 ** (sent - 1));
  // Those who were sent away at the same moment do not come back at the same moment.
  const own = most * (0.5 + Math.random() / 2);
  const asked = retryAfterHint === undefined ? 0 : retryAfterHint.getTime() - Date.now();
  return Math.max(own, Math.min(asked, pauseMsMax));
}
