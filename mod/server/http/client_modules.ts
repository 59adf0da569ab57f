/**
 * The browser's copy of the client: the TypeScript of `mod/client` and `mod/protocol` with its types stripped, so that a
 * page imports `/_/client.js` without a build step. Lines keep their numbers, so no source maps are needed.
 */
import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";

/** Folders below `mod/` whose modules may be served. Nothing in them is secret. */
const SERVED_FOLDERS = ["client", "protocol"];

/** `<folder>/<module>.ts` in lower case: no dots, no encoding, nothing that could lead out of the folder. */
const MODULE_PATH = /^([a-z]+)(?:\/[a-z0-9_]+)*\/[a-z0-9_]+\.ts$/;

/** What apps import, by name. The hooks import `react` by that name: the page's import map says which one that is. */
const ENTRIES = { client: "client/mod.ts", react: "client/react/mod.ts" } as const;

interface CachedModule {
  readonly text: string;
  readonly etag: string;
}

export class ClientModules {
  readonly #root: URL;
  /** Modules already stripped, by path; as many as there are files. They do not change while the server runs. */
  readonly #cache = new Map<string, CachedModule>();

  /** `root` is the address of the folder that holds the served folders, with a slash at its end. */
  constructor(root: URL = new URL("../../", import.meta.url)) {
    this.#root = root;
  }

  /** Answers `/_/client.js` and `/_/react.js`, the modules that apps import. */
  respondWithEntry(request: Request, entry: keyof typeof ENTRIES): Response {
    let module = this.#cache.get(entry);
    if (module === undefined) {
      module = cached(`export * from "./modules/${ENTRIES[entry]}";\n`);
      this.#cache.set(entry, module);
    }
    return respondWith(request, module);
  }

  /** Answers `/_/modules/<path>`; `path` as in the URL, without a leading slash. 404 for what may not be served. */
  async respond(request: Request, path: string): Promise<Response> {
    const folder = MODULE_PATH.exec(path)?.[1];
    if (folder === undefined || !SERVED_FOLDERS.includes(folder)) return respondWith(request, undefined);
    let module = this.#cache.get(path);
    if (module === undefined) {
      const source = await this.#read(path);
      if (source === null) return respondWith(request, undefined);
      module = cached(stripTypeScriptTypes(source));
      this.#cache.set(path, module);
    }
    return respondWith(request, module);
  }

  async #read(path: string): Promise<string | null> {
    try {
      return await Deno.readTextFile(new URL(path, this.#root));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
      throw error;
    }
  }
}

function cached(text: string): CachedModule {
  return { text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
}

function respondWith(request: Request, module: CachedModule | undefined): Response {
  if (module === undefined) return new Response("Not found\n", { status: 404 });
  const headers = {
    // Pages on other origins import the client too.
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-cache",
    "Content-Type": "text/javascript; charset=utf-8",
    "ETag": module.etag,
  };
  if (request.headers.get("if-none-match")?.includes(module.etag)) {
    return new Response(null, { status: 304, headers });
  }
  return new Response(module.text, { headers });
}
