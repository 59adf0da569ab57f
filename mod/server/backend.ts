/** The part of a server behind its HTTP face: the isolates and the sockets' hub, wired together. */
import type { Hono } from "hono";
import { ServiceError } from "../errors.ts";
import { IsolateHost } from "../functions/host/host.ts";
import type { Log } from "../kit/log.ts";
import { httpCalls, Hub, noAccounts } from "../sync/mod.ts";
import type { ServeConfig } from "./config.ts";
import { AppError } from "./start_error.ts";

/** What the HTTP server needs of what is behind it. Disposing of it ends the isolates. */
export interface Backend extends AsyncDisposable {
  /** ts of the newest commit. */
  readonly ts: number;
  /** The routes of the one-shot function calls. */
  readonly functionCalls: Hono;
  /** Answers a WebSocket handshake. Throws `ServiceError` when it is not a valid one. */
  acceptSocket(request: Request): Response;
  /** Closes every socket with 1012; resolves when the close frames have left, or after a bounded time. */
  closeSockets(): Promise<void>;
  /** Loads the app's code anew; the old code goes on serving when the new one is broken. */
  reload(): Promise<ReloadResult>;
}

export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

/** Starts the isolates and the hub. Rejects with an `AppError` when the app cannot be loaded. */
export async function startBackend(config: ServeConfig, log: Log): Promise<Backend> {
  const host = await IsolateHost.start({
    dataDir: config.dataDir,
    functionsDir: config.functionsDir,
    env: config.env,
    actionNet: config.actionNet,
    log,
  }).catch((error) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new AppError(`The app in "${config.functionsDir}" cannot be served: ${reason}`, { cause: error });
  });
  const authenticator = noAccounts;
  const hub = new Hub({ host, authenticator, dev: config.dev });
  host.serveQueries((call) => hub.query(call));
  return {
    get ts() {
      return host.ts;
    },
    functionCalls: httpCalls({ hub, host, authenticator, dev: config.dev }),
    acceptSocket(request) {
      const { socket, response } = upgrade(request);
      hub.accept(socket);
      return response;
    },
    closeSockets: () => hub.shutdown(),
    reload: () => host.reload(),
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]();
    },
  };
}

/** The platform's own idle timeout is off: the protocol has pings of its own. */
function upgrade(request: Request): Deno.WebSocketUpgrade {
  try {
    return Deno.upgradeWebSocket(request, { idleTimeout: 0 });
  } catch (error) {
    throw new ServiceError("bad_request", "The WebSocket handshake is not valid", { cause: error });
  }
}
