/** Where a server of a cluster listens for the others, and where it tells them that it is. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { ClusterConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import type { Log } from "../../kit/log.ts";
import { asHost, guessedHost } from "./guessed_host.ts";

const LOOPBACK = /^(?:127\.|::1$)/;
const ONLY_HERE =
  "This server reaches PostgreSQL at an address of this machine, so that only servers on this machine " +
  "reach it: say with --cluster-address where others do";
const EVERYWHERE =
  "Other servers of the cluster are listened for on all interfaces: say with --cluster-listen on which one, or keep the " +
  "port to the servers in a firewall";

/** What a name stands for. */
type Resolve = (
  host: string,
  options: { readonly all: true },
) => Promise<readonly { readonly address: string }[]>;

/** An open port for the other servers, and their address for it. Throws a `StartError`. */
export async function listenForServers(
  config: Pick<ClusterConfig, "place" | "address" | "listen">,
  { log, resolve = lookup }: { readonly log: Log; readonly resolve?: Resolve },
): Promise<{ readonly listener: Deno.TcpListener; readonly address: string }> {
  const { place, address, listen } = config;
  const host = address?.host ??
    (listen !== null && isOneAddress(listen.host) ? listen.host : await guessedHost(place));
  if (address === null && LOOPBACK.test(host)) log("warn", ONLY_HERE, { address: asHost(host) });
  const port = listen?.port ?? address?.port ?? 0;
  try {
    const listener = listen === null
      ? await listenAt(host, { port, log, resolve })
      : Deno.listen({ hostname: listen.host, port });
    return { listener, address: `${asHost(host)}:${address?.port || listener.addr.port}` };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `Other servers of the cluster cannot reach this one at ${
        asHost(listen?.host ?? host)
      }:${port}: ${reason}. ` +
        "Say with --cluster-address where they do, and with --cluster-listen where this server listens",
      { code: "cluster", cause: error },
    );
  }
}

/** Whether it is an address, and not all that the machine has. */
function isOneAddress(host: string): boolean {
  return isIP(host) !== 0 && host !== "0.0.0.0" && host !== "::";
}

/** Where others find it is an address of this machine, most likely; behind a network's translation it is not. */
async function listenAt(
  host: string,
  { port, log, resolve }: { readonly port: number; readonly log: Log; readonly resolve: Resolve },
): Promise<Deno.TcpListener> {
  const { address, why } = await addressHere(host, resolve);
  if (address !== null) {
    try {
      return Deno.listen({ hostname: address, port });
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrNotAvailable)) throw error;
    }
  }
  log("warn", EVERYWHERE, { reason: why ?? `${host} is no address of this machine` });
  return Deno.listen({ hostname: host.includes(":") ? "::" : "0.0.0.0", port });
}

/** What a name stands for on this machine, which may not be what it does for others; `null`: better not to rely on it. */
async function addressHere(
  host: string,
  resolve: Resolve,
): Promise<{ readonly address: string | null; readonly why?: string }> {
  if (isIP(host) !== 0) return { address: host };
  try {
    const [first, second] = await resolve(host, { all: true });
    if (first === undefined) return { address: null, why: `${host} is no address` };
    if (host === "localhost") return { address: first.address };
    if (second !== undefined) return { address: null, why: `${host} is several addresses` };
    // Many machines know themselves by their name at such an address.
    if (LOOPBACK.test(first.address)) {
      return { address: null, why: `${host} is ${first.address} on this machine` };
    }
    return { address: first.address };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { address: null, why: `${host} is not known here: ${reason}` };
  }
}
