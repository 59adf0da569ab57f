/**
 * An npm registry of the test's own: it has the packages published to it, and redirects all other requests to the
 * usual one. It answers what `npm publish` and `npm install` ask.
 */
import assert from "node:assert/strict";

/** The parts of the body of `npm publish` that matter here. */
interface Published {
  readonly versions: Readonly<Record<string, { readonly dist: { tarball: string } }>>;
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

interface Kept {
  /** The metadata of the package for npm. */
  readonly about: Record<string, unknown>;
  /** Archives by the names of their files. */
  readonly archives: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

export class Registry implements AsyncDisposable {
  /** Ends in a slash. */
  readonly url: string;
  readonly #usual: string;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #packages = new Map<string, Kept>();

  private constructor(usual: string) {
    this.#usual = usual;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => this.#answer(request),
    );
    this.url = `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  static async start(): Promise<Registry> {
    const usual = await npm("config", "get", "registry");
    return new Registry(usual.replace(/\/*$/, "/"));
  }

  /** The lines of a user's `.npmrc` that select it. */
  get npmrc(): string {
    const { host } = new URL(this.url);
    return `registry=${this.url}\n//${host}/:_authToken=anybody\naudit=false\nfund=false\nupdate-notifier=false\n`;
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const [name = "", , file] = decodeURIComponent(pathname.slice(1)).split("/");
    if (request.method === "PUT") {
      this.#packages.set(name, this.#kept(name, await request.json()));
      return Response.json({ ok: true }, { status: 201 });
    }
    const kept = this.#packages.get(name);
    if (kept === undefined) return Response.redirect(this.#usual + pathname.slice(1), 302);
    if (file === undefined) return Response.json(kept.about);
    const archive = kept.archives.get(file);
    return archive === undefined ? new Response(null, { status: 404 }) : new Response(archive);
  }

  #kept(name: string, { _attachments, ...about }: Published): Kept {
    for (const [version, { dist }] of Object.entries(about.versions)) {
      dist.tarball = `${this.url}${name}/-/${name}-${version}.tgz`;
    }
    const archives = Object.entries(_attachments).map(([file, { data }]) =>
      [file, Uint8Array.fromBase64(data)] as const
    );
    return { about, archives: new Map(archives) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Runs npm. Returns its output. */
async function npm(...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("npm", { args, stdin: "null" }).output();
  const decoder = new TextDecoder();
  assert.ok(success, decoder.decode(stderr));
  return decoder.decode(stdout).trim();
}
