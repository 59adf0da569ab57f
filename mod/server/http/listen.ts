/** Listens on the configured port, or on the first free one from the default port on. */
import { DEFAULT_PORT } from "../../config/options.ts";
import { connectionLimits } from "../limits.ts";
import { StartError } from "../../config/start_error.ts";

/** Ports to try above the default one. */
const PORTS_TRIED = 100;

export interface ListenOptions {
  readonly host: string;
  /** `null`: the default port, or the next free one. 0: any free port. */
  readonly port: number | null;
  /** Whether another process already listens on the port and shares it. */
  readonly shared?: boolean;
  /** Called before each retry when connections cannot be accepted. */
  readonly onPause?: (error: unknown) => void;
  /** Called once when the port is closed for good without a shutdown. */
  readonly onEnd?: (error: Error) => void;
}

type HttpServer = Deno.HttpServer<Deno.NetAddr>;

/** Whether several processes can listen on one port. */
export const canSharePorts = Deno.build.os === "linux";

/** Starts to serve. Throws a `StartError` if it cannot listen. */
export function listen(options: ListenOptions, handler: Deno.ServeHandler<Deno.NetAddr>): Listener {
  const { host, port, shared = false, onPause = () => {}, onEnd = () => {} } = options;
  const first = port ?? DEFAULT_PORT;
  const last = port === null ? DEFAULT_PORT + PORTS_TRIED : first;
  const open = (candidate: number) =>
    Deno.serve({ hostname: host, port: candidate, onListen: () => {}, reusePort: canSharePorts }, handler);
  for (let candidate = first;; candidate++) {
    try {
      // A shared port must be free at first: another server that listens would get some of the connections. Checking and
      // opening are two steps, because Linux shares a port only if each of its sockets was opened as shared. Two servers with
      // different data folders that start in the same instant could both open it.
      if (canSharePorts && !shared) Deno.listen({ hostname: host, port: candidate }).close();
      return new Listener(open(candidate), { reopen: open, onPause, onEnd });
    } catch (error) {
      if (error instanceof Deno.errors.AddrInUse && candidate < last) continue;
      throw new StartError(listenMessage(error, { host, port: candidate }), { cause: error });
    }
  }
}

/** Keeps a port open: reopens it if the runtime closes the listener for a failed accept. Reports others to `onEnd`. */
export class Listener {
  readonly addr: Deno.NetAddr;
  readonly #reopen: (port: number) => HttpServer;
  readonly #onPause: (error: unknown) => void;
  readonly #onEnd: (error: Error) => void;
  /** Current and closed listeners that still serve connections. */
  readonly #servers = new Set<HttpServer>();
  #stopping = false;
  /** When the port was closed, by performance.now(); `null` while it is open. */
  #closedAt: number | null = null;
  #ended = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    first: HttpServer,
    { reopen, onPause, onEnd }: {
      readonly reopen: (port: number) => HttpServer;
      readonly onPause: (error: unknown) => void;
      readonly onEnd: (error: Error) => void;
    },
  ) {
    this.addr = first.addr;
    this.#reopen = reopen;
    this.#onPause = onPause;
    this.#onEnd = onEnd;
    this.#track(first);
  }

  get isOpen(): boolean {
    return !this.#stopping && this.#closedAt === null;
  }

  /** Stops accepting connections. Resolves when all requests have been answered. */
  async shutdown(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    await Promise.all([...this.#servers].map((server) => server.shutdown().catch(() => {})));
  }

  #track(server: HttpServer): void {
    this.#servers.add(server);
    while (this.#servers.size > connectionLimits.serversKept) {
      const [oldest] = this.#servers;
      if (oldest !== undefined) this.#servers.delete(oldest);
    }
    server.finished.then(
      () => {
        this.#servers.delete(server);
        if (!this.#stopping) this.#end(new Error("The runtime has closed the port"));
      },
      (error) => this.#pause(error),
    );
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#closedAt ??= performance.now();
    this.#onEnd(error);
  }

  #pause(error: unknown): void {
    if (this.#stopping || this.#ended) return;
    this.#closedAt ??= performance.now();
    if (performance.now() - this.#closedAt > connectionLimits.reopenMs) {
      return this.#end(new Error("The port could not be opened again", { cause: error }));
    }
    this.#onPause(error);
    this.#timer = setTimeout(() => {
      try {
        this.#track(this.#reopen(this.addr.port));
        this.#closedAt = null;
      } catch (again) {
        this.#pause(again);
      }
    }, connectionLimits.acceptPauseMs);
  }
}

function listenMessage(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
): string {
  if (error instanceof Deno.errors.AddrInUse) {
    return `Port ${port} of ${host} is in use. Stop the program that uses it, or choose another port with --port`;
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return `Not allowed to listen on port ${port}: ports below 1024 are privileged. Choose another port with --port`;
  }
  const reason = error instanceof Error ? error.message : String(error);
  return `Cannot listen on ${host}, port ${port}: ${reason}`;
}

/** URL for a browser on this machine, without a trailing slash. */
export function localUrl(address: Partial<Deno.NetAddr> & Pick<Deno.NetAddr, "hostname" | "port">): string {
  const everywhere = address.hostname === "0.0.0.0" || address.hostname === "::";
  const host = everywhere ? "localhost" : address.hostname;
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}
