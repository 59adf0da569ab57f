/** The server's port, and the connections that come to it. */
import { setTimeout as delay } from "node:timers/promises";
import type { ServeConfig } from "../../config/config.ts";
import type { Log } from "../../kit/log.ts";
import { connectionLimits, takeoverLimits } from "../limits.ts";
import { Connections } from "../net/connections.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import { listen, type Listener, localUrl } from "./listen.ts";

export interface PortOptions {
  readonly config: Pick<ServeConfig, "host" | "port" | "workers">;
  /** `null`: the system has no way to end connections or to share a port. */
  readonly native: NativeSockets | null;
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

/** Disposing of it ends its care for connections; {@linkcode finish} closes it. */
export class Port implements Disposable {
  readonly connections: Connections;
  readonly #options: PortOptions;
  /** `null` until it is open. */
  #http: Listener | null = null;
  #address: Pick<Deno.NetAddr, "hostname" | "port">;
  readonly #ended = Promise.withResolvers<Error>();
  /** When the log last said that no connection could be taken. */
  #pauseToldAt = -Infinity;

  constructor(options: PortOptions) {
    const { native, log, config: { host, port } } = options;
    this.#options = options;
    this.connections = new Connections({ native, log });
    this.#address = { hostname: host, port: port ?? 0 };
  }

  get isOpen(): boolean {
    return this.#http !== null;
  }

  /** Whether connections are taken now; so it is before the port is to be open. */
  get takesConnections(): boolean {
    return this.#http?.isOpen ?? true;
  }

  /** Resolves when the port is closed and stays so, though nothing has closed it here: why. */
  get ended(): Promise<Error> {
    return this.#ended.promise;
  }

  /** The one that is open, or about to be. */
  get number(): number {
    return this.#address.port;
  }

  /** Address for a browser on this machine, without a slash at its end. */
  get url(): string {
    return localUrl(this.#address);
  }

  /** Throws a `StartError`. `shared`: beside another process that allows it. */
  listen({ shared = false }: { readonly shared?: boolean } = {}): void {
    const { config: { host, port, workers }, respond } = this.#options;
    const onPause = (error: unknown) => this.#relieve(error);
    const onEnd = (error: Error) => this.#ended.resolve(error);
    this.#http = listen({ host, port, shared, sharedLater: shared || workers > 1, onPause, onEnd }, respond);
    this.#address = this.#http.addr;
    this.connections.watch(this.#http.addr.port);
  }

  /** For one that cannot be shared: it is free when the server that gave way has closed it, or is dead. */
  async listenSoon(isWanted: () => boolean): Promise<void> {
    for (let toldAt = performance.now(); isWanted();) {
      try {
        return this.listen();
      } catch (error) {
        if (performance.now() - toldAt >= takeoverLimits.portWaitMs) {
          toldAt = performance.now();
          this.#options.log(
            "error",
            "The port of the server that gave way is not free yet: it is tried again",
            { error },
          );
        }
        await delay(takeoverLimits.quietPollMs);
      }
    }
  }

  /** Lets other processes listen on it from now on. `false`: the system does not. */
  share(): boolean {
    const { native } = this.#options;
    const fd = native?.listening(this.number) ?? null;
    return fd !== null && native !== null && native.share(fd);
  }

  /** The process that listened before this one takes all new connections, until it has given way. */
  leaveToFirst(): void {
    const { native } = this.#options;
    const fd = native?.listening(this.number) ?? null;
    if (fd !== null) native?.steer(fd, "first");
  }

  /**
   * Takes no more connections, and waits for requests that run. One that is late is not cut off here: ending the isolates
   * answers it, and the process ends anyway.
   */
  async finish(msMax: number): Promise<void> {
    const finished = this.#http?.shutdown();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), msMax);
    });
    if (await Promise.race([finished, late]) === "late") {
      this.#options.log("warn", "Requests were still running when the time to finish them was over");
    }
    clearTimeout(timer);
  }

  [Symbol.dispose](): void {
    this.connections[Symbol.dispose]();
  }

  /** The port is closed for a moment, because no connection could be taken. */
  #relieve(error: unknown): void {
    const ended = this.connections.relieve();
    const now = performance.now();
    if (now - this.#pauseToldAt < connectionLimits.acceptToldMs) return;
    this.#pauseToldAt = now;
    this.#options.log(
      "warn",
      "No connection could be taken for a moment: raise the limit of open files",
      { error, ended },
    );
  }
}
