/**
 * Answers the plainest reads at once: a small file or a thumbnail that is in memory, asked for by its plain URL, whole and
 * without a condition. The way through the router and all checks costs more than the answer itself.
 */
import { requestPath, requestSearch } from "../../kit/request_path.ts";
import { storageLimits } from "../limits.ts";
import type { FileFacts } from "../file_facts.ts";
import { describe, describeThumbnail, thumbnailEtag } from "./file_headers.ts";
import type { FileTraffic } from "../file_traffic.ts";
import type { SmallBlobs } from "../blobs/small_blobs.ts";
import { imageTypeOf } from "../thumbnails/image_type.ts";
import { parseSize, variantOf } from "../thumbnails/spec.ts";

export interface QuickReadsOptions {
  readonly facts: FileFacts;
  readonly small: SmallBlobs;
  readonly traffic: FileTraffic;
  /** Sizes that thumbnails may have, as `WxH`; `null` for any. */
  readonly thumbnailSizes: readonly string[] | null;
  /** Sent with every answer. */
  readonly extraHeaders: Readonly<Record<string, string>>;
}

const PREFIX = "/api/storage/";
/** What is behind an id that asks for a thumbnail as pages do. */
const THUMBNAIL = /^\?thumb=(\d{1,4}(?:x\d{1,4})?)(?:&fit=(contain|cover))?$/;

/** What is sent, and the answer that says of it what there is to say. */
interface Quick {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly answer: () => Response;
}

export class QuickReads {
  readonly #options: QuickReadsOptions;
  /** By contents, with which they go: to clone an answer costs a quarter of making one. */
  readonly #answers = new WeakMap<Uint8Array<ArrayBuffer>, Response>();

  constructor(options: QuickReadsOptions) {
    this.#options = options;
  }

  /** The same answer that {@linkcode Reads} gives; `null` for every request that is not of this kind. */
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

  #file(id: string): Quick | null {
    const { facts, small, extraHeaders } = this.#options;
    const file = facts.known(id);
    const bytes = file === undefined ? null : small.kept(file);
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

  /** One that may not be asked for was never kept, unless the sizes that are allowed have changed since. */
  #thumbnail(id: string, query: string): Quick | null {
    const { facts, small, thumbnailSizes, extraHeaders } = this.#options;
    const [, sizeText = "", fit = "contain"] = THUMBNAIL.exec(query) ?? [];
    const size = parseSize(sizeText);
    const file = facts.known(id);
    if (size === null || file === undefined) return null;
    if (thumbnailSizes !== null && !thumbnailSizes.includes(`${size.width}x${size.height}`)) return null;
    const variant = variantOf({ ...size, fit: fit === "cover" ? "cover" : "contain" });
    const bytes = small.keptVariant(file, variant);
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
