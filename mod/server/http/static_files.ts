/** Serves a folder of files, with `index.html` for paths of a client-side router. */
import { join, sep } from "node:path";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import { requestSearch } from "../../kit/request_path.ts";
import { CompressedCopies } from "./compressed_copies.ts";
import { type FoundFile, respondWithFile } from "./static_file_response.ts";
import { isPlainName, staticPathNames } from "./static_path.ts";

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
  readonly #keptPaths: RegExp | null;
  readonly #copies = new CompressedCopies();

  private constructor(root: string, options: StaticFilesOptions) {
    this.#root = root;
    this.#clientRoutes = options.clientRoutes;
    this.#keptPaths = options.immutable ?? null;
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

  /**
   * Answers a request for `pathname`, which is still encoded and begins with a slash: 200, 206, 304, 307 to a folder's path
   * with a trailing slash, 404, 405, 416.
   */
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
      const kept = this.#keptPaths?.test(pathname) === true;
      return await respondWithFile(request, { ...found, copies, kept });
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
