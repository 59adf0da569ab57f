/** The app's own Vite, as the server behind the server: what functions and routes of the app do not answer is asked of it. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PlainError } from "./plain_error.ts";

/** The part of Vite that is used. */
interface Vite {
  createServer(config: object): Promise<{
    readonly middlewares: (request: unknown, response: unknown) => void;
    close(): Promise<void>;
  }>;
}

export interface ViteServer extends AsyncDisposable {
  /** Its address, without a slash at its end. What is asked before Vite is ready waits for it. */
  readonly url: string;
  /** Starts Vite; to be called once. Rejects with a `PlainError` when it cannot start. */
  start(): Promise<void>;
}

/** Opens the port of an app's Vite. Throws a `PlainError` when it is not installed. */
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
      // Pages come from another port, and hear of edits from this one.
      hmr: { server: http, clientPort: port },
      // The database changes with each commit.
      watch: { ignored: ["**/data/**"] },
    },
  });
}

/** The module that an app has of Vite. Throws a `PlainError` when there is none. */
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
