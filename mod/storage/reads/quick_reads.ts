/** Fast path for cached small files by plain URL: router and checks would cost more than the response. */
import { requestPath, requestSearch } from "../../kit/http_request.ts";
import { storageLimits } from "../limits.ts";
import type { FileMetadataCache } from "../file_metadata_cache.ts";
import { describe, describeThumbnail, thumbnailEtag } from "./file_headers.ts";
import type { FileTraffic } from "../stored_file.ts";
import type { SmallBlobCache } from "../blobs/small_blob_cache.ts";
import { imageTypeOf, parseSize, variantOf } from "../thumbnails/spec.ts";

export interface QuickReadsOptions {
  readonly facts: FileMetadataCache;
  readonly small: SmallBlobCache;
  readonly traffic: FileTraffic;
  /** Allowed thumbnail sizes, as `WxH`; `null` allows any. */
  readonly thumbnailSizes: readonly string[] | null;
  /** Sent with every response. */
  readonly extraHeaders: Readonly<Record<string, string>>;
}

const PREFIX = "/api/storage/";
/** Query string of a thumbnail as pages request it. */
const THUMBNAIL = /^\?thumb=(\d{1,4}(?:x\d{1,4})?)(?:&fit=(contain|cover))?$/;

/** Contents and the response to send. */
interface QuickResponse {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly answer: () => Response;
}

export class QuickReads {
  readonly #options: QuickReadsOptions;
  /** Responses by contents, so that they are collected together. Cloning one costs a quarter of creating it. */
  readonly #answers = new WeakMap<Uint8Array<ArrayBuffer>, Response>();

  constructor(options: QuickReadsOptions) {
    this.#options = options;
  }

  /** Returns the same response as {@linkcode Reads}, or `null` if the request does not qualify. */
  respond(request: Request): Response | null {
    if (request.method !== "GET") return null;
    const path = requestPath(request);
    if (!path.startsWith(PREFIX)) return null;
    const id = path.slice(PREFIX.length);
    const search = requestSearch(request);
    const quick = search === "" ? this.#file(id) : this.#thumbnail(id, search);
    if (quick === null) return null;
    const { headers } = request;
    if (headers.get("range") !== null || headers.get("if-none-match") !== null) return null;
    const { bytes } = quick;
    this.#options.traffic.read(bytes.length);
    let answer = this.#answers.get(bytes);
    if (answer === undefined) this.#answers.set(bytes, answer = quick.answer());
    return answer.clone();
  }

  #file(id: string): QuickResponse | null {
    const { facts, small, extraHeaders } = this.#options;
    const file = facts.cached(id);
    const bytes = file === undefined ? null : small.cached(file);
    if (file === undefined || bytes === null) return null;
    const answer = () => {
      const { headers, contentType } = describe(file, {
        etag: `"${file.sha256}"`,
        ...{ maxAge: storageLimits.cacheSeconds, download: false, extraHeaders },
      });
      return whole(bytes, { headers, contentType });
    };
    return { bytes, answer };
  }

  /** Disallowed sizes are never cached, unless the allowed sizes have changed. */
  #thumbnail(id: string, query: string): QuickResponse | null {
    const { facts, small, thumbnailSizes, extraHeaders } = this.#options;
    const [, sizeText = "", fit = "contain"] = THUMBNAIL.exec(query) ?? [];
    const size = parseSize(sizeText);
    const file = facts.cached(id);
    if (size === null || file === undefined) return null;
    if (thumbnailSizes !== null && !thumbnailSizes.includes(`${size.width}x${size.height}`)) return null;
    const variant = variantOf({ ...size, fit: fit === "cover" ? "cover" : "contain" });
    const bytes = small.cachedVariant(file, variant);
    const contentType = bytes === null ? null : imageTypeOf(bytes);
    if (bytes === null || contentType === null) return null;
    const answer = () => {
      const headers = describeThumbnail({
        etag: thumbnailEtag(file, variant),
        ...{ maxAge: storageLimits.cacheSeconds, download: false, extraHeaders },
      });
      return whole(bytes, { headers, contentType });
    };
    return { bytes, answer };
  }
}

function whole(
  bytes: Uint8Array<ArrayBuffer>,
  { headers, contentType }: { readonly headers: Headers; readonly contentType: string },
): Response {
  headers.set("Content-Type", contentType);
  headers.set("Content-Length", String(bytes.length));
  return new Response(bytes, { headers });
}
