/** The app's own Vite, as the server behind the server: what functions and routes of the app do not answer is asked of it. */
import { createServer, type Server } from "node:http";
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
  /** Its address, without a slash at its end. */
  readonly url: string;
}

/** Starts it for an app that wants it. Throws a `PlainError` when it is not installed or cannot start. */
export async function startVite(
  root: string,
  { wanted }: { readonly wanted: boolean },
): Promise<ViteServer | null> {
  if (!wanted) return null;
  const vite = await load(root);
  const http = createServer();
  const port = await listen(http);
  try {
    const server = await vite.createServer({
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
    http.on("request", (request, response) => server.middlewares(request, response));
    return {
      url: `http://127.0.0.1:${port}`,
      async [Symbol.asyncDispose]() {
        await server.close();
        http.closeAllConnections();
        http.close();
      },
    };
  } catch (error) {
    http.close();
    throw new PlainError(`Vite cannot start: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

async function load(root: string): Promise<Vite> {
  try {
    const manifest = createRequire(join(root, "package.json")).resolve("vite/package.json");
    const { exports } = createRequire(import.meta.url)(manifest) as { exports: { "."?: unknown } };
    const entry = exports["."];
    const path = typeof entry === "string"
      ? entry
      : (entry as { default?: string; import?: string })?.default ?? "";
    return await import(pathToFileURL(join(manifest, "..", path)).href) as Vite;
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
