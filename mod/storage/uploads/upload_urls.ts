/** Validation, rate limit and exclusive use of upload URLs, for all kinds of uploads. */
import { RateLimitedError, ServiceError } from "../../errors.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { addressKey } from "../../kit/client_address.ts";
import { RateLimiter } from "../../kit/rate_limit.ts";
import { storageLimits } from "../limits.ts";
import { system } from "../system_calls.ts";
import type { UploadToken, UrlSigner } from "../url_signer.ts";

export interface UploadUrlsOptions {
  readonly signer: UrlSigner;
  readonly calls: SystemCalls;
  readonly now: () => number;
}

export class UploadUrls {
  readonly #options: UploadUrlsOptions;
  readonly #perClient: RateLimiter;
  /** URLs with an upload in progress. */
  readonly #reserved = new Set<string>();

  constructor(options: UploadUrlsOptions) {
    this.#options = options;
    const { uploadsPerClient, rateLimitKeysMax } = storageLimits;
    this.#perClient = new RateLimiter({ ...uploadsPerClient, keysMax: rateLimitKeysMax, now: options.now });
  }

  /** Counts an upload against the client's rate limit. Throws `rate_limited`. */
  count(client: string): void {
    const waitMs = this.#perClient.take(addressKey(client));
    if (waitMs > 0) throw new RateLimitedError(waitMs);
  }

  /** Throws `invalid_upload_url`. */
  read(text: string | null): UploadToken {
    const token = text === null ? null : this.#options.signer.readUploadToken(text);
    if (token === null) throw new ServiceError("invalid_upload_url");
    return token;
  }

  /** Reserves the URL until disposed. Throws `upload_in_progress`. */
  reserve({ token }: Pick<UploadToken, "token">): Disposable {
    if (this.#reserved.has(token)) throw new ServiceError("upload_in_progress");
    this.#reserved.add(token);
    return { [Symbol.dispose]: () => void this.#reserved.delete(token) };
  }

  /** Throws `upload_url_used` or `upload_url_expired`. */
  async checkUsable({ token, createdAt }: UploadToken): Promise<void> {
    const { calls, now } = this.#options;
    if (await calls.query(system.isUploadUsed, { token })) throw new ServiceError("upload_url_used");
    if (now() - createdAt > storageLimits.uploadUrlMs) throw new ServiceError("upload_url_expired");
  }
}
