/** A folder of files served over HTTP, with `index.html` for the paths that a client-side router handles itself. */
import { getMimeType } from "hono/mime";
import { join, sep } from "node:path";
import { parseByteRange } from "../../kit/byte_range.ts";
import { reasonOf, StartError } from "../../config/start_error.ts";
import { isPlainName, staticPathNames } from "./static_path.ts";

export interface StaticFilesOptions {
  /** Whether paths that name no file are answered with the folder's `index.html` when a browser navigates to them. */
  readonly clientRoutes: boolean;
}

interface FoundFile {
  readonly path: string;
  readonly info: Deno.FileInfo;
}

export class StaticFiles {
  /** Real path of the folder: what is served has to lie below it after symbolic links are followed. */
  readonly #root: string;
  readonly #clientRoutes: boolean;

  private constructor(root: string, options: StaticFilesOptions) {
    this.#root = root;
    this.#clientRoutes = options.clientRoutes;
  }

  /** Throws a `StartError` when the folder is not there. */
  static async open(folder: string, options: StaticFilesOptions): Promise<StaticFiles> {
    let root: string;
    try {
      root = await Deno.realPath(folder);
      if (!(await Deno.stat(root)).isDirectory) throw new TypeError("it is not a folder");
    } catch (error) {
      throw new StartError(`Cannot serve the static folder "${folder}": ${reasonOf(error)}`, {
        cause: error,
      });
    }
    return new StaticFiles(root, options);
  }

  /**
   * Answers a request for `pathname` (still encoded, beginning with a slash): 200, 206, 304, 307 to a folder's path with
   * a slash, 404, 405 for methods that would write, 416.
   */
  async respond(request: Request, pathname: string): Promise<Response> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      return new Response("Method not allowed\n", { status: 405, headers: { Allow: "GET, HEAD" } });
    }
    const names = staticPathNames(pathname);
    if (names === null) return notFound();
    const found = await this.#find(names);
    if (found === "folder") {
      // `names` has no empty name here, so the target cannot begin with two slashes, which would name another host.
      return new Response(null, {
        status: 307,
        headers: { Location: `${pathname}/${new URL(request.url).search}` },
      });
    }
    if (found !== null) return await respondWithFile(request, found);
    if (!this.#clientRoutes || !isNavigation(request, names)) return notFound();
    const index = await this.#find([""]);
    return index === null || index === "folder" ? notFound() : await respondWithFile(request, index);
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
      // Whatever keeps a file from being read, to the client it is not there.
      if (error instanceof Error) return null;
      throw error;
    }
  }

  /** A symbolic link may lead neither out of the folder nor to a hidden file inside it. */
  #mayServe(realPath: string): boolean {
    const root = this.#root.endsWith(sep) ? this.#root : this.#root + sep;
    return realPath.startsWith(root) && realPath.slice(root.length).split(sep).every(isPlainName);
  }
}

/** Whether a browser seems to go to a page, rather than to ask for a script or an image that is missing. */
function isNavigation(request: Request, names: readonly string[]): boolean {
  return !(names.at(-1) ?? "").includes(".") || (request.headers.get("accept") ?? "").includes("text/html");
}

function notFound(): Response {
  return new Response("Not found\n", { status: 404, headers: { "Cache-Control": "no-cache" } });
}

async function respondWithFile(request: Request, { path, info }: FoundFile): Promise<Response> {
  const modifiedMs = Math.floor((info.mtime?.getTime() ?? 0) / 1000) * 1000;
  const etag = `"${info.size.toString(16)}-${(info.mtime?.getTime() ?? 0).toString(16)}"`;
  const headers = new Headers({
    "Accept-Ranges": "bytes",
    // Kept, but asked for again each time: what is served changes with the next deployment.
    "Cache-Control": "no-cache",
    "Content-Type": getMimeType(path) ?? "application/octet-stream",
    "ETag": etag,
    "Last-Modified": new Date(modifiedMs).toUTCString(),
  });
  if (isFresh(request, { etag, modifiedMs })) {
    headers.delete("Content-Type");
    return new Response(null, { status: 304, headers });
  }
  const range = rangeMayApply(request, { etag, modifiedMs })
    ? parseByteRange(request.headers.get("range"), info.size)
    : null;
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

interface Validators {
  readonly etag: string;
  readonly modifiedMs: number;
}

function isFresh(request: Request, { etag, modifiedMs }: Validators): boolean {
  const noneMatch = request.headers.get("if-none-match");
  if (noneMatch !== null) {
    return noneMatch.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
  }
  const since = Date.parse(request.headers.get("if-modified-since") ?? "");
  return since >= modifiedMs;
}

/** With `If-Range` a part is sent only when the client's copy is still the current one. */
function rangeMayApply(request: Request, { etag, modifiedMs }: Validators): boolean {
  if (request.method !== "GET") return false;
  const ifRange = request.headers.get("if-range");
  return ifRange === null || ifRange === etag || Date.parse(ifRange) === modifiedMs;
}

/** Streams the bytes from `start` to `end`. The file closes when they have been read or nobody wants them any more. */
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
