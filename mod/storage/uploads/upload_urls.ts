/** What every way to upload asks of an upload URL: whose it is, whether it still works, and who may use it now. */
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
  /** URLs with an upload that has begun and not ended. */
  readonly #held = new Set<string>();

  constructor(options: UploadUrlsOptions) {
    this.#options = options;
    const { uploadsPerClient, rateLimitKeysMax } = storageLimits;
    this.#perClient = new RateLimiter({ ...uploadsPerClient, keysMax: rateLimitKeysMax, now: options.now });
  }

  /** Counts an upload of a client, by its address. Throws `rate_limited`. */
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

  /** Keeps other uploads from this URL until it is given back. Throws `upload_in_progress`. */
  hold({ token }: Pick<UploadToken, "token">): Disposable {
    if (this.#held.has(token)) throw new ServiceError("upload_in_progress");
    this.#held.add(token);
    return { [Symbol.dispose]: () => void this.#held.delete(token) };
  }

  /** Throws `upload_url_used` or `upload_url_expired`. */
  async checkUsable({ token, createdAt }: UploadToken): Promise<void> {
    const { calls, now } = this.#options;
    if (await calls.query(system.isUploadUsed, { token })) throw new ServiceError("upload_url_used");
    if (now() - createdAt > storageLimits.uploadUrlMs) throw new ServiceError("upload_url_expired");
  }
}
