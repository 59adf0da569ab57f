/** Runs the app's own Vite behind the server, which forwards requests that functions and routes do not handle. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PlainError } from "./plain_error.ts";

/** The part of Vite's API that is used. */
interface Vite {
  createServer(config: object): Promise<{
    readonly middlewares: (request: unknown, response: unknown) => void;
    close(): Promise<void>;
  }>;
}

export interface ViteServer extends AsyncDisposable {
  /** Origin of Vite. Requests before Vite is ready wait. */
  readonly url: string;
  /** Starts Vite; call once. Rejects with a `PlainError` on failure. */
  start(): Promise<void>;
}

/** Opens the port for an app's Vite. Throws a `PlainError` if Vite is not installed. */
export async function openViteServer(root: string): Promise<ViteServer> {
  const entry = entryOf(root);
  const http = createServer();
  const waiting: Parameters<RequestListener>[] = [];
  const wait: RequestListener = (request, response) => void waiting.push([request, response]);
  http.on("request", wait);
  const port = await listen(http);
  let starting: ReturnType<Vite["createServer"]> | null = null;
  return {
    url: `http://127.0.0.1:${port}`,
    async start() {
      try {
        starting = create(entry, { root, http, port });
        const { middlewares } = await starting;
        http.off("request", wait);
        http.on("request", (request, response) => middlewares(request, response));
        for (const [request, response] of waiting) middlewares(request, response);
      } catch (error) {
        throw new PlainError(`Vite cannot start: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        });
      }
    },
    async [Symbol.asyncDispose]() {
      await starting?.then((server) => server.close(), () => {});
      http.closeAllConnections();
      http.close();
    },
  };
}

async function create(
  entry: string,
  { root, http, port }: { readonly root: string; readonly http: Server; readonly port: number },
): ReturnType<Vite["createServer"]> {
  const vite = await import(pathToFileURL(entry).href) as Vite;
  return await vite.createServer({
    root,
    logLevel: "warn",
    clearScreen: false,
    server: {
      middlewareMode: true,
      // Pages are served from another port and receive hot updates from this one.
      hmr: { server: http, clientPort: port },
      // The database changes with each commit.
      watch: { ignored: ["**/data/**"] },
    },
  });
}

/** Loads the app's Vite module. Throws a `PlainError` if it is missing. */
function entryOf(root: string): string {
  try {
    const manifest = createRequire(join(root, "package.json")).resolve("vite/package.json");
    const { exports } = createRequire(import.meta.url)(manifest) as { exports: { "."?: unknown } };
    const entry = exports["."];
    const path = typeof entry === "string"
      ? entry
      : (entry as { default?: string; import?: string })?.default ?? "";
    return join(manifest, "..", path);
  } catch (error) {
    throw new PlainError("Vite is not installed: run `npm install` first", { cause: error });
  }
}

function listen(http: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(0, "127.0.0.1", () => resolve((http.address() as AddressInfo).port));
  });
}
