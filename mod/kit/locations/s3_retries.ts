/** Retries bucket requests with exponential backoff and jitter, and at least the pause that a busy service asks for. */
import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as wait } from "node:timers/promises";
import type { S3ServiceException } from "@aws-sdk/client-s3";
import { objectLimits } from "../limits.ts";

export interface RetryPolicy {
  readonly attempts: number;
  /** Waits; rejects when the request is aborted. */
  readonly pause?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** State of one request, in the client library's format. */
interface RetryToken {
  getRetryCount(): number;
  getRetryDelay(): number;
}

/** The client library's description of a failed request. */
interface RetryErrorInfo {
  readonly error?: Error & { readonly $metadata?: S3ServiceException["$metadata"] };
  readonly errorType: "TRANSIENT" | "THROTTLING" | "SERVER_ERROR" | "CLIENT_ERROR";
  /** The `Retry-After` header. */
  readonly retryAfterHint?: Date;
}

const systemPause = (ms: number, signal: AbortSignal | undefined) => wait(ms, undefined, { signal });

export class S3RetryStrategy {
  readonly #attempts: number;
  readonly #pause: NonNullable<RetryPolicy["pause"]>;
  /** Signals by request: the library does not pass the request to the strategy. */
  readonly #signals = new AsyncLocalStorage<AbortSignal>();

  constructor({ attempts, pause = systemPause }: RetryPolicy) {
    this.#attempts = attempts;
    this.#pause = pause;
  }

  /** Sends a request; the signal ends its pauses. */
  runWithSignal<Answer>(signal: AbortSignal, send: () => Promise<Answer>): Promise<Answer> {
    return this.#signals.run(signal, send);
  }

  acquireInitialRetryToken(): Promise<RetryToken> {
    return Promise.resolve(tokenOf(0));
  }

  /** Resolves when the request may be sent again. Throws if it may not. */
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

/** Returns the pause before attempt `sent + 1`. */
function pauseMs({ error, errorType, retryAfterHint }: RetryErrorInfo, sent: number): number {
  const { busyPauseMs, brokenPauseMs, pauseMsMax } = objectLimits;
  // Busy services answer 503 with different error codes.
  const busy = errorType === "THROTTLING" || error?.$metadata?.httpStatusCode === 503;
  const most = Math.min(pauseMsMax, (busy ? busyPauseMs : brokenPauseMs) * 2 ** (sent - 1));
  // Jitter keeps clients from retrying at the same moment.
  const own = most * (0.5 + Math.random() / 2);
  const asked = retryAfterHint === undefined ? 0 : retryAfterHint.getTime() - Date.now();
  return Math.max(own, Math.min(asked, pauseMsMax));
}
