/**
 * Answers the plainest reads at once: a small file that is in memory, asked for by its plain URL, whole and without a
 * condition. The way through the router and all checks costs more than the answer itself.
 */
import { storageLimits } from "../limits.ts";
import type { FileFacts } from "../file_facts.ts";
import { describe } from "./file_headers.ts";
import type { FileTraffic } from "../file_traffic.ts";
import type { SmallBlobs } from "../blobs/small_blobs.ts";
import type { StoredFile } from "../stored_file.ts";

export interface QuickReadsOptions {
  readonly facts: FileFacts;
  readonly small: SmallBlobs;
  readonly traffic: FileTraffic;
  /** Sent with every answer. */
  readonly extraHeaders: Readonly<Record<string, string>>;
}

const PREFIX = "/api/storage/";
/** Where the path of a URL can begin at the earliest. */
const ORIGIN_CHARS_MIN = "http://".length + 1;

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
    const { url } = request;
    const pathAt = url.indexOf("/", ORIGIN_CHARS_MIN);
    if (!url.startsWith(PREFIX, pathAt)) return null;
    const { facts, small } = this.#options;
    // With anything behind the id it is none that is known.
    const file = facts.known(url.slice(pathAt + PREFIX.length));
    const bytes = file === undefined ? null : small.kept(file);
    if (file === undefined || bytes === null) return null;
    const { headers } = request;
    if (headers.get("range") !== null || headers.get("if-none-match") !== null) return null;
    this.#options.traffic.read(bytes.length);
    return this.#answerOf(file, bytes).clone();
  }

  #answerOf(file: StoredFile, bytes: Uint8Array<ArrayBuffer>): Response {
    const known = this.#answers.get(bytes);
    if (known !== undefined) return known;
    const { headers, contentType } = describe(file, {
      etag: `"${file.sha256}"`,
      maxAge: storageLimits.cacheSeconds,
      download: false,
      extraHeaders: this.#options.extraHeaders,
    });
    headers.set("Content-Type", contentType);
    headers.set("Content-Length", String(file.size));
    const answer = new Response(bytes, { headers });
    this.#answers.set(bytes, answer);
    return answer;
  }
}
