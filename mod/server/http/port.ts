/** The server's port and its connections. */
import { setTimeout as delay } from "node:timers/promises";
import type { ServeConfig } from "../../config/config.ts";
import type { Log } from "../../kit/log.ts";
import { connectionLimits, takeoverLimits } from "../limits.ts";
import { Connections } from "../net/connections.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import { listen, type Listener, localUrl } from "./listen.ts";

export interface PortOptions {
  readonly config: Pick<ServeConfig, "host" | "port">;
  /** `null`: connections cannot be closed. */
  readonly native: NativeSockets | null;
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

/** Disposing of it stops the connection checks; {@linkcode finish} closes the port. */
export class Port implements Disposable {
  readonly connections: Connections;
  readonly #options: PortOptions;
  /** `null` until the port is open. */
  #http: Listener | null = null;
  #address: Pick<Deno.NetAddr, "hostname" | "port">;
  readonly #ended = Promise.withResolvers<Error>();
  /** When the log last reported that connections could not be accepted. */
  #pauseLoggedAt = -Infinity;

  constructor(options: PortOptions) {
    const { native, log, config: { host, port } } = options;
    this.#options = options;
    this.connections = new Connections({ native, log });
    this.#address = { hostname: host, port: port ?? 0 };
  }

  get isOpen(): boolean {
    return this.#http !== null;
  }

  /** Whether connections are accepted. Also `true` before the port is first opened. */
  get acceptsConnections(): boolean {
    return this.#http?.isOpen ?? true;
  }

  /** Resolves with the reason when the port is closed for good without a shutdown. */
  get ended(): Promise<Error> {
    return this.#ended.promise;
  }

  get number(): number {
    return this.#address.port;
  }

  /** URL for a browser on this machine, without a trailing slash. */
  get url(): string {
    return localUrl(this.#address);
  }

  /** Opens the port, again the same one after {@linkcode finish}. Throws a `StartError`. With `shared`, another process listens on it too. */
  listen({ shared = false }: { readonly shared?: boolean } = {}): void {
    const { config: { host, ...config }, respond } = this.#options;
    const port = this.number === 0 ? config.port : this.number;
    const onPause = (error: unknown) => this.#acceptFailed(error);
    const onEnd = (error: Error) => this.#ended.resolve(error);
    this.#http = listen({ host, port, shared, onPause, onEnd }, respond);
    this.#address = this.#http.addr;
    this.connections.watch(this.#http.addr.port);
  }

  /** Retries until the old process has closed a port that cannot be shared. Throws a `StartError` after `msMax`. */
  async listenWhenFree(isWanted: () => boolean, msMax: number = takeoverLimits.portWaitMs): Promise<void> {
    for (const until = performance.now() + msMax; isWanted();) {
      try {
        return this.listen();
      } catch (error) {
        if (performance.now() >= until) throw error;
        await delay(takeoverLimits.portPollMs);
      }
    }
  }

  /** Reports an error after which the server cannot continue: resolves {@linkcode ended}. */
  fail(error: unknown): void {
    this.#ended.resolve(error instanceof Error ? error : new Error(String(error)));
  }

  /** Stops accepting connections; waits up to `msMax` for running requests, the rest until the isolates end. */
  async finish(msMax: number): Promise<void> {
    const finished = this.#http?.shutdown();
    this.#http = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), msMax);
    });
    if (await Promise.race([finished, late]) === "late") {
      this.#options.log("warn", "Requests were still running at the end of the drain timeout");
    }
    clearTimeout(timer);
  }

  [Symbol.dispose](): void {
    this.connections[Symbol.dispose]();
  }

  /** Called when connections could not be accepted and the port is closed for a moment. */
  #acceptFailed(error: unknown): void {
    const ended = this.connections.closeIdle();
    const now = performance.now();
    if (now - this.#pauseLoggedAt < connectionLimits.acceptLogMs) return;
    this.#pauseLoggedAt = now;
    this.#options.log(
      "warn",
      "Cannot accept connections for a moment. Raise the limit of open files",
      { error, ended },
    );
  }
}
