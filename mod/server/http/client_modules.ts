/** Serves the client to browsers without a build: `mod/client` and `mod/protocol` with types stripped, lines kept. */
import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";
import { acceptedCodings, CompressedCopies } from "./compressed_copies.ts";

/** Folders of `mod/` whose modules may be served. They contain no secrets. */
const SERVED_FOLDERS = ["client", "protocol"];

/** `<folder>/<module>.ts` in lower case: no dots or encoding that could lead out of the folder. */
const MODULE_PATH = /^([a-z]+)(?:\/[a-z0-9_]+)*\/[a-z0-9_]+\.ts$/;

/** Entry modules by name. Those for a framework import it by name, which the page's import map resolves. */
const ENTRIES = {
  client: "client/mod.ts",
  react: "client/react/mod.ts",
  accounts: "client/account_features/mod.ts",
  react_accounts: "client/react/accounts/mod.ts",
  react_account_forms: "client/react/account_forms/mod.ts",
  presence: "client/presence/mod.ts",
  react_presence: "client/react/presence/mod.ts",
  streams: "client/streams/mod.ts",
  react_streams: "client/react/streams/mod.ts",
  vue: "client/vue/mod.ts",
  svelte: "client/svelte/mod.ts",
  solid: "client/solid/mod.ts",
  tanstack: "client/tanstack/mod.ts",
  token_cookie: "client/token_cookie/mod.ts",
} as const;

interface CachedModule {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/** Names of the entries. */
export const clientEntries = Object.keys(ENTRIES) as (keyof typeof ENTRIES)[];

export class ClientModules {
  readonly #root: URL;
  /** Stripped modules by path. They do not change while the server runs. */
  readonly #cache = new Map<string, CachedModule>();
  readonly #copies = new CompressedCopies();

  /** @param root URL of the folder that contains the served folders, with a trailing slash. */
  constructor(root: URL = new URL("../../", import.meta.url)) {
    this.#root = root;
  }

  /** Answers `/_/<entry>.js`. */
  respondWithEntry(request: Request, entry: keyof typeof ENTRIES): Promise<Response> {
    let module = this.#cache.get(entry);
    if (module === undefined) {
      module = cached(`export * from "./modules/${ENTRIES[entry]}";\n`);
      this.#cache.set(entry, module);
    }
    return this.#answer(request, module);
  }

  /** Answers `/_/modules/<path>`. `path` has no leading slash. 404 for modules that may not be served. */
  async respond(request: Request, path: string): Promise<Response> {
    const folder = MODULE_PATH.exec(path)?.[1];
    if (folder === undefined || !SERVED_FOLDERS.includes(folder)) return notFound();
    let module = this.#cache.get(path);
    if (module === undefined) {
      const source = await this.#read(path);
      if (source === null) return notFound();
      module = cached(stripTypeScriptTypes(source));
      this.#cache.set(path, module);
    }
    return await this.#answer(request, module);
  }

  async #read(path: string): Promise<string | null> {
    try {
      return await Deno.readTextFile(new URL(path, this.#root));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
      throw error;
    }
  }

  async #answer(request: Request, { bytes, etag }: CachedModule): Promise<Response> {
    const [coding] = acceptedCodings(request.headers.get("accept-encoding"));
    const original = {
      key: etag,
      size: bytes.length,
      read: () => Promise.resolve(new Blob([bytes]).stream()),
    };
    const given = request.headers.get("if-none-match") ?? "";
    const own = (name: string) => `${etag.slice(0, -1)}-${name}"`;
    const fresh = [...coding === undefined ? [] : [own(coding)], etag].find((tag) => given.includes(tag));
    const copy = coding === undefined || fresh !== undefined
      ? null
      : await this.#copies.get(original, coding);
    const headers = new Headers({
      // Pages on other origins import the client too.
      "Access-Control-Allow-Origin": "*",
      "Cache-Control": "no-cache",
      "Content-Type": "text/javascript; charset=utf-8",
      "ETag": fresh ?? (copy === null || coding === undefined ? etag : own(coding)),
      "Vary": "Accept-Encoding",
      ...copy !== null && coding !== undefined && { "Content-Encoding": coding },
    });
    if (fresh !== undefined) return new Response(null, { status: 304, headers });
    return new Response(copy ?? bytes, { headers });
  }
}

function cached(text: string): CachedModule {
  return {
    bytes: new TextEncoder().encode(text),
    etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`,
  };
}

function notFound(): Response {
  return new Response("Not found\n", { status: 404 });
}
