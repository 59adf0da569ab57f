/** Opens the server's port: the one that was asked for, or the default one and the next ones above it. */
import { DEFAULT_PORT } from "../../config/options.ts";
import { StartError } from "../../config/start_error.ts";

/** Ports tried above the default one before the start fails. */
const PORTS_TRIED = 100;

export interface ListenOptions {
  readonly host: string;
  /** `null`: the default port, or the next free one. 0: any free one. */
  readonly port: number | null;
}

export type HttpServer = Deno.HttpServer<Deno.NetAddr>;

/** Starts to serve. Throws a `StartError` when the port or the address cannot be had. */
export function listen({ host, port }: ListenOptions, handler: Deno.ServeHandler<Deno.NetAddr>): HttpServer {
  const first = port ?? DEFAULT_PORT;
  const last = port === null ? DEFAULT_PORT + PORTS_TRIED : first;
  for (let candidate = first;; candidate++) {
    try {
      return Deno.serve({ hostname: host, port: candidate, onListen: () => {} }, handler);
    } catch (error) {
      if (error instanceof Deno.errors.AddrInUse && candidate < last) continue;
      throw new StartError(listenMessage(error, { host, port: candidate }), { cause: error });
    }
  }
}

function listenMessage(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
): string {
  if (error instanceof Deno.errors.AddrInUse) {
    return `Port ${port} of ${host} is in use. Stop the program that has it, or choose another with --port`;
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return `Not allowed to listen on port ${port}: ports below 1024 are kept for the system. Choose another with --port`;
  }
  const reason = error instanceof Error ? error.message : String(error);
  return `Cannot listen on ${host}, port ${port}: ${reason}`;
}

/** The address for a browser on this machine, without a slash at its end. */
export function localUrl(address: Deno.NetAddr): string {
  const everywhere = address.hostname === "0.0.0.0" || address.hostname === "::";
  const host = everywhere ? "localhost" : address.hostname;
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}
