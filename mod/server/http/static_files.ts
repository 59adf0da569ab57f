/** Serves the app's static files and the dashboard. */
import { getMimeType } from "hono/mime";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import { type ByteRange, parseByteRange, requestSearch } from "../../kit/http_request.ts";
import { acceptedCodings, type Coding, CompressedCopies, isCompressible } from "./compressed_copies.ts";

/**
 * Returns the decoded names of the folders and the file in a URL path, or `null` if it cannot name a servable file: `..`,
 * hidden files (except `/.well-known/`), encoded slashes, control characters, bad encoding, empty names. A trailing slash
 * yields an empty last name.
 */
function staticPathNames(pathname: string): readonly string[] | null {
  if (!pathname.startsWith("/")) return null;
  const names: string[] = [];
  const parts = pathname.slice(1).split("/");
  for (const [position, part] of parts.entries()) {
    let name: string;
    try {
      name = decodeURIComponent(part);
    } catch {
      return null;
    }
    const last = position === parts.length - 1;
    if (name === "" ? !last : !isPlainName(name, position)) return null;
    names.push(name);
  }
  return names;
}

/** Whether a name at this depth of the folder may be served. */
function isPlainName(name: string, position: number): boolean {
  // deno-lint-ignore no-control-regex -- rejects control characters
  if (/[\x00-\x1f\x7f/\\:]/.test(name) || name.length > 255) return false;
  return !name.startsWith(".") || (position === 0 && name === ".well-known");
}

interface FoundFile {
  readonly path: string;
  readonly info: Deno.FileInfo;
}

interface PreparedResponse extends FoundFile {
  readonly request: Request;
  readonly copies: CompressedCopies;
  /** Of the uncompressed file. */
  readonly etag: string;
  readonly headers: Headers;
}

/** Responds with 200, 206, 304 or 416. `kept`: the contents at this path never change. */
async function respondWithFile(
  request: Request,
  { path, info, copies, kept: immutable }: FoundFile & {
    readonly copies: CompressedCopies;
    readonly kept: boolean;
  },
): Promise<Response> {
  const modifiedMs = Math.floor((info.mtime?.getTime() ?? 0) / 1000) * 1000;
  const etag = `"${info.size.toString(16)}-${(info.mtime?.getTime() ?? 0).toString(16)}"`;
  const type = getMimeType(path) ?? "application/octet-stream";
  const codings = isCompressible(type) ? acceptedCodings(request.headers.get("accept-encoding")) : [];
  const headers = new Headers({
    "Accept-Ranges": "bytes",
    "Cache-Control": immutable ? "public, max-age=31536000, immutable" : "no-cache",
    "Content-Type": type,
    "ETag": etag,
    "Last-Modified": new Date(modifiedMs).toUTCString(),
    ...isCompressible(type) && { "Vary": "Accept-Encoding" },
  });
  const fresh = freshCopy(request, {
    etags: [...codings.map((coding) => etagOf(etag, coding)), etag],
    modifiedMs,
  });
  if (fresh !== null) {
    headers.delete("Content-Type");
    headers.set("ETag", fresh);
    return new Response(null, { status: 304, headers });
  }
  const range = rangeMayApply(request, { etag, modifiedMs })
    ? parseByteRange(request.headers.get("range"), info.size)
    : null;
  const headed = { request, path, info, copies, etag, headers };
  return range === null && codings[0] !== undefined && await compressed(headed, codings[0]) ||
    await plain(headed, range);
}

/** Responds with the compressed file; `null` if it should be sent uncompressed. */
async function compressed(
  { request, path, info, copies, etag, headers }: PreparedResponse,
  coding: Coding,
): Promise<Response | null> {
  const original = {
    key: `${etag} ${path}`,
    size: info.size,
    read: async () => (await Deno.open(path)).readable,
  };
  const copy = await copies.get(original, coding);
  if (copy === null) return null;
  headers.set("ETag", etagOf(etag, coding));
  headers.set("Content-Encoding", coding);
  headers.set("Content-Length", String(copy.length));
  return new Response(request.method === "HEAD" ? null : copy, { headers });
}

async function plain(
  { request, path, info, headers }: PreparedResponse,
  range: ByteRange | "unsatisfiable" | null,
): Promise<Response> {
  if (range === "unsatisfiable") {
    headers.set("Content-Range", `bytes */${info.size}`);
    return new Response(null, { status: 416, headers });
  }
  const { start, end } = range ?? { start: 0, end: info.size - 1 };
  headers.set("Content-Length", String(end - start + 1));
  if (range !== null) headers.set("Content-Range", `bytes ${start}-${end}/${info.size}`);
  const status = range === null ? 200 : 206;
  if (request.method === "HEAD" || info.size === 0) return new Response(null, { status, headers });
  return new Response(await readPart(path, { start, end }), { status, headers });
}

/** A compressed representation has its own ETag. */
function etagOf(etag: string, coding: Coding): string {
  return `${etag.slice(0, -1)}-${coding}"`;
}

interface Validators {
  readonly etag: string;
  readonly modifiedMs: number;
}

/** ETag of the client's copy if it is still valid in any coding that could be sent. */
function freshCopy(
  request: Request,
  { etags, modifiedMs }: { readonly etags: readonly string[]; readonly modifiedMs: number },
): string | null {
  const noneMatch = request.headers.get("if-none-match");
  if (noneMatch !== null) {
    const given = noneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
    return etags.find((etag) => given.includes(etag) || given.includes("*")) ?? null;
  }
  const since = Date.parse(request.headers.get("if-modified-since") ?? "");
  return since >= modifiedMs ? etags[0] ?? null : null;
}

/** With `If-Range`, a range is sent only if the client's copy is current. */
function rangeMayApply(request: Request, { etag, modifiedMs }: Validators): boolean {
  if (request.method !== "GET") return false;
  const ifRange = request.headers.get("if-range");
  return ifRange === null || ifRange === etag || Date.parse(ifRange) === modifiedMs;
}

/** Streams bytes `start` to `end`. The file is closed at the end or when the stream is canceled. */
async function readPart(
  path: string,
  { start, end }: { start: number; end: number },
): Promise<ReadableStream> {
  const file = await Deno.open(path);
  try {
    if (start > 0) await file.seek(start, Deno.SeekMode.Start);
  } catch (error) {
    file.close();
    throw error;
  }
  let left = end - start + 1;
  return file.readable.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const part = chunk.subarray(0, left);
        left -= part.length;
        if (part.length > 0) controller.enqueue(part);
        if (left === 0) controller.terminate();
      },
    }),
  );
}

export interface StaticFilesOptions {
  /** Whether navigations to paths without a file get the folder's `index.html`. */
  readonly clientRoutes: boolean;
  /** Paths whose contents never change: browsers cache them without revalidation. */
  readonly immutable?: RegExp;
}

export class StaticFiles {
  /** Real path of the folder. Served files must be below it after symbolic links are resolved. */
  readonly #root: string;
  readonly #clientRoutes: boolean;
  readonly #immutablePaths: RegExp | null;
  readonly #copies = new CompressedCopies();

  private constructor(root: string, options: StaticFilesOptions) {
    this.#root = root;
    this.#clientRoutes = options.clientRoutes;
    this.#immutablePaths = options.immutable ?? null;
  }

  /** Throws a `StartError` if the folder does not exist. */
  static async open(folder: string, options: StaticFilesOptions): Promise<StaticFiles> {
    let root: string;
    try {
      root = await Deno.realPath(folder);
      if (!(await Deno.stat(root)).isDirectory) throw new TypeError("it is not a folder");
    } catch (error) {
      throw new StartError(`Cannot serve the static folder "${folder}": ${fileErrorReason(error)}`, {
        cause: error,
      });
    }
    return new StaticFiles(root, options);
  }

  /** Answers a request for an encoded `pathname`: 200, 206, 304, 307 to a folder's path with a slash, 404, 405, 416. */
  async respond(request: Request, pathname: string): Promise<Response> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      return new Response("Method not allowed\n", { status: 405, headers: { Allow: "GET, HEAD" } });
    }
    const names = staticPathNames(pathname);
    if (names === null) return notFound();
    const found = await this.#find(names);
    if (found === "folder") {
      // `names` contains no empty name, so the target cannot begin with two slashes, which would name another host.
      return new Response(null, {
        status: 307,
        headers: { Location: `${pathname}/${requestSearch(request)}` },
      });
    }
    const copies = this.#copies;
    if (found !== null) {
      const immutable = this.#immutablePaths?.test(pathname) === true;
      return await respondWithFile(request, { ...found, copies, kept: immutable });
    }
    if (!this.#clientRoutes || !isNavigation(request, names)) return notFound();
    const index = await this.#find([""]);
    return index === null || index === "folder"
      ? notFound()
      : await respondWithFile(request, { ...index, copies, kept: false });
  }

  async #find(names: readonly string[]): Promise<FoundFile | "folder" | null> {
    const asksForFolder = names.at(-1) === "";
    const relative = asksForFolder ? [...names.slice(0, -1), "index.html"] : names;
    try {
      const path = await Deno.realPath(join(this.#root, ...relative));
      if (!this.#mayServe(path)) return null;
      const info = await Deno.stat(path);
      if (info.isFile) return { path, info };
      if (!info.isDirectory || asksForFolder) return null;
      return await this.#find([...names, ""]) === null ? null : "folder";
    } catch (error) {
      // Unreadable files are reported as missing.
      if (error instanceof Error) return null;
      throw error;
    }
  }

  /** A symbolic link may lead neither out of the folder nor to a hidden file. */
  #mayServe(realPath: string): boolean {
    const root = this.#root.endsWith(sep) ? this.#root : this.#root + sep;
    return realPath.startsWith(root) && realPath.slice(root.length).split(sep).every(isPlainName);
  }
}

/** Whether a browser seems to navigate to a page, rather than load a missing script or image. */
function isNavigation(request: Request, names: readonly string[]): boolean {
  return !(names.at(-1) ?? "").includes(".") || (request.headers.get("accept") ?? "").includes("text/html");
}

function notFound(): Response {
  return new Response("Not found\n", { status: 404, headers: { "Cache-Control": "no-cache" } });
}

const FOLDER = fileURLToPath(new URL("../../../dashboard/public", import.meta.url));

/** Placeholder of the nonce in the page. */
const PLACE = 'nonce=""';

/** Path of the page below the folder. */
const PAGE = "/built/index.html";

/** Serves the dashboard. Its page gets a fresh nonce for each request, which allows styles added by scripts. */
export async function openDashboard(): Promise<StaticFiles> {
  return await StaticFiles.open(FOLDER, { clientRoutes: false, immutable: /^\/(?:built\/chunks\/|inter-)/ });
}

/** Answers a request for a file of the dashboard. `nonce` is the one in the Content-Security-Policy. */
export async function dashboardFile(
  dashboard: StaticFiles,
  { request, pathname, nonce }: {
    readonly request: Request;
    readonly pathname: string;
    readonly nonce: string;
  },
): Promise<Response> {
  if (pathname !== "/" && pathname !== "/index.html") return await dashboard.respond(request, pathname);
  // Without Range and conditional headers: each response differs.
  const whole = new Request(request.url, { method: request.method });
  const page = await dashboard.respond(whole, PAGE);
  if (page.status !== 200 || page.body === null) return page;
  const headers = new Headers({ "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
  return new Response((await page.text()).replace(PLACE, `nonce="${nonce}"`), { headers });
}

/** Answers requests that neither the service nor the app's routes answer. */
export interface Frontend {
  /** `pathname` is still encoded and begins with a slash. */
  respond(request: Request, pathname: string): Promise<Response>;
}
