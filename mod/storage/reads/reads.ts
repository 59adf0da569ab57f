/** Serves stored files and thumbnails (FR): headers, the fast path for small files, and all other reads. */
import type { Context } from "hono";
import { randomBytes } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { type ByteRange, requestPath, requestSearch } from "../../kit/http_request.ts";
import type { BlobStore } from "../blobs/blob_store.ts";
import type { SmallBlobCache } from "../blobs/small_blob_cache.ts";
import type { FileMetadataCache } from "../file_metadata_cache.ts";
import { storageLimits } from "../limits.ts";
import {
  contentDisposition,
  defaultContentType,
  essenceOf,
  type FileTraffic,
  isShownInline,
  type StoredFile,
} from "../stored_file.ts";
import { imageTypeOf, parseSize, parseThumbnail, type ThumbnailSpec, variantOf } from "../thumbnails/spec.ts";
import type { Thumbnails } from "../thumbnails/thumbnails.ts";
import type { UrlSigner } from "../url_signer.ts";
import { multipart, multipartStream, parseRanges } from "./ranges.ts";

/** Policy of storage responses: may be displayed, cannot run scripts. */
export const contentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** Headers that do not depend on the requested range. */
interface DescribedFile {
  /** All headers except type, length and range. */
  readonly headers: Headers;
  readonly contentType: string;
}

interface DescribeOptions {
  readonly etag: string;
  /** Cache lifetime in seconds. */
  readonly maxAge: number;
  readonly download: boolean;
  readonly extraHeaders: Readonly<Record<string, string>>;
}

/** Headers of responses about files (FR1, FR8). */
function describe(
  { contentType, name }: StoredFile,
  { etag, maxAge, download, extraHeaders }: DescribeOptions,
): DescribedFile {
  const inline = !download && isShownInline(contentType);
  const headers = new Headers({
    ...extraHeaders,
    ...commonHeaders({ etag, maxAge }),
    "Accept-Ranges": "bytes",
    "Content-Disposition": contentDisposition(inline ? "inline" : "attachment", name),
  });
  // Browsers show PDF in a built-in viewer, which the policy would break.
  if (!inline || essenceOf(contentType) !== "application/pdf") {
    headers.set("Content-Security-Policy", contentSecurityPolicy);
  }
  return { headers, contentType: contentType ?? defaultContentType };
}

/** Headers of thumbnail responses, including 304. */
function describeThumbnail({ etag, maxAge, download, extraHeaders }: DescribeOptions): Headers {
  return new Headers({
    ...extraHeaders,
    ...commonHeaders({ etag, maxAge }),
    "Accept-Ranges": "none",
    "Content-Disposition": download ? "attachment" : "inline",
    "Content-Security-Policy": contentSecurityPolicy,
  });
}

/** Entity tag of a thumbnail. */
function thumbnailEtag({ sha256 }: StoredFile, variant: string): string {
  return `"${sha256}.t1.${variant}"`;
}

/** Headers shared by files and thumbnails. */
function commonHeaders({ etag, maxAge }: { readonly etag: string; readonly maxAge: number }) {
  return {
    "ETag": etag,
    "Cache-Control": `private, max-age=${maxAge}, immutable`,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
  };
}

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

/** Fast path for cached small files by plain URL: router and checks would cost more than the response. */
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

export interface ReadRequest {
  readonly id: string;
  readonly head: boolean;
  readonly exp: string | undefined;
  readonly sig: string | undefined;
  readonly thumb: string | undefined;
  readonly fit: string | undefined;
  readonly download: boolean;
  readonly range: string | null;
  readonly ifRange: string | null;
  readonly ifNoneMatch: string | null;
}

export interface ReadsOptions {
  readonly signer: UrlSigner;
  readonly facts: FileMetadataCache;
  readonly store: BlobStore;
  readonly small: SmallBlobCache;
  /** Whether files can be read through signed URLs only. */
  readonly private: boolean;
  readonly thumbnails: Thumbnails;
  /** Allowed thumbnail sizes, as `WxH`; `null` allows any. */
  readonly thumbnailSizes: readonly string[] | null;
  /** Sent with every response. */
  readonly extraHeaders: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export function readRequest(c: Context): ReadRequest {
  const header = (name: string) => c.req.header(name) ?? null;
  // Parameters may be appended with `?` or `&`, whichever the URL has already.
  const [id = "", ...rest] = (c.req.param("id") ?? "").split("&");
  const parameters = new URLSearchParams([...rest, requestSearch(c.req.raw).replaceAll("?", "&")].join("&"));
  const parameter = (name: string) => parameters.get(name) ?? undefined;
  return {
    id,
    head: c.req.method === "HEAD",
    exp: parameter("exp"),
    sig: parameter("sig"),
    thumb: parameter("thumb"),
    fit: parameter("fit"),
    download: parameter("download") === "1",
    range: header("range"),
    ifRange: header("if-range"),
    ifNoneMatch: header("if-none-match"),
  };
}

export class Reads {
  readonly #options: ReadsOptions;

  constructor(options: ReadsOptions) {
    this.#options = options;
  }

  /** Responds to a request. Throws the errors of the contract's table, in its order. */
  async respond(request: ReadRequest): Promise<Response> {
    const maxAge = this.#maxAge(request);
    const found = this.#options.facts.find(request.id);
    const file = found instanceof Promise ? await found : found;
    if (file === null) throw new ServiceError("not_found");
    const { thumb, fit } = request;
    if (thumb === undefined) return await this.#respondWithFile(file, request, { maxAge });
    const spec = parseThumbnail({ thumb, fit }, this.#options.thumbnailSizes);
    return await this.#respondWithThumbnail(file, request, { maxAge, spec });
  }

  /** Checks the signature and returns the cache lifetime in seconds. */
  #maxAge({ id, exp, sig }: ReadRequest): number {
    const { signer, now } = this.#options;
    if (exp === undefined && sig === undefined) {
      if (this.#options.private) throw new ServiceError("signature_required");
      return storageLimits.cacheSeconds;
    }
    const expiry = signer.readExpiry(id, { exp, sig });
    if (expiry === null) throw new ServiceError("invalid_signature");
    const left = expiry - now() / 1000;
    if (left <= 0) throw new ServiceError("url_expired");
    return Math.min(storageLimits.cacheSeconds, Math.floor(left));
  }

  async #respondWithFile(
    file: StoredFile,
    request: ReadRequest,
    { maxAge }: { readonly maxAge: number },
  ): Promise<Response> {
    const etag = `"${file.sha256}"`;
    const { extraHeaders } = this.#options;
    const described = describe(file, { etag, maxAge, download: request.download, extraHeaders });
    const { headers, contentType } = described;
    if (matches(request.ifNoneMatch, etag)) return notModified(headers);
    const parts = request.head || (request.ifRange !== null && request.ifRange !== etag)
      ? null
      : parseRanges(request.range, file.size);
    headers.set("Content-Type", contentType);
    if (parts === null) return await this.#whole(file, { headers, head: request.head });
    const [first, ...others] = parts;
    if (first === undefined) return notSatisfiable(file.size, extraHeaders);
    if (others.length === 0) return await this.#single(file, { headers, part: first });
    return await this.#several(file, { ...described, parts: [first, ...others] });
  }

  /** Ignores ranges, because thumbnails are small. */
  async #respondWithThumbnail(
    file: StoredFile,
    request: ReadRequest,
    { maxAge, spec }: { readonly maxAge: number; readonly spec: ThumbnailSpec },
  ): Promise<Response> {
    const { thumbnails } = this.#options;
    thumbnails.check(file);
    const etag = thumbnailEtag(file, variantOf(spec));
    const { extraHeaders } = this.#options;
    const headers = describeThumbnail({ etag, maxAge, download: request.download, extraHeaders });
    if (matches(request.ifNoneMatch, etag)) return notModified(headers);
    const { contentType, bytes } = await thumbnails.get(file, spec);
    headers.set("Content-Type", contentType);
    headers.set("Content-Length", String(bytes.length));
    return new Response(request.head ? null : bytes, { headers });
  }

  async #whole(
    file: StoredFile,
    { headers, head }: { readonly headers: Headers; readonly head: boolean },
  ): Promise<Response> {
    headers.set("Content-Length", String(file.size));
    if (head) return new Response(null, { headers });
    const { small } = this.#options;
    const contents = small.cached(file) ?? await small.open(file);
    if (contents === null) throw new ServiceError("not_found");
    return new Response(contents, { headers });
  }

  async #single(
    file: StoredFile,
    { headers, part }: { readonly headers: Headers; readonly part: ByteRange },
  ): Promise<Response> {
    headers.set("Content-Length", String(part.end - part.start + 1));
    headers.set("Content-Range", `bytes ${part.start}-${part.end}/${file.size}`);
    return new Response(await this.#open(file, part), { status: 206, headers });
  }

  async #several(
    file: StoredFile,
    { headers, contentType, parts }: DescribedFile & { readonly parts: readonly [ByteRange, ...ByteRange[]] },
  ): Promise<Response> {
    const boundary = randomBytes(16).toString("hex");
    const { pieces, length } = multipart(parts, { boundary, contentType, size: file.size });
    headers.set("Content-Type", `multipart/byteranges; boundary=${boundary}`);
    headers.set("Content-Length", String(length));
    // Opened before the response starts, when a missing file can still be reported.
    const first = await this.#open(file, parts[0]);
    const body = multipartStream(pieces, {
      first,
      open: (part) => this.#options.store.read(file.blob, part),
    });
    return new Response(body, { status: 206, headers });
  }

  async #open(file: StoredFile, part: ByteRange | null): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const stream = await this.#options.store.read(file.blob, part);
    // The blob is missing, for example after the database was restored without its files.
    if (stream === null) throw new ServiceError("not_found");
    return stream;
  }
}

/** Whether an `If-None-Match` header contains the tag, using weak comparison (RFC 9110, section 13.1.2). */
function matches(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return ifNoneMatch.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

function notModified(headers: Headers): Response {
  return new Response(null, { status: 304, headers });
}

function notSatisfiable(size: number, extraHeaders: Readonly<Record<string, string>>): Response {
  return errorResponse(new ServiceError("range_not_satisfiable"), {
    ...extraHeaders,
    "Content-Range": `bytes */${size}`,
    "Accept-Ranges": "bytes",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": contentSecurityPolicy,
  });
}
