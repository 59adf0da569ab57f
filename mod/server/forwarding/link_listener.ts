/** Listens for the other servers of a cluster and determines the address to publish. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { createCertificate, type LinkCertificate, TlsListener } from "../../cluster/mod.ts";
import { clusterLimits } from "../../cluster/postgres/limits.ts";
import type { ClusterConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import type { Log } from "../../kit/log.ts";

const LOOPBACK = /^(?:127\.|::1$)/;
const ONLY_HERE =
  "This server reaches PostgreSQL through a loopback address, so only servers on this machine can reach it. " +
  "Pass the address for other machines with --cluster-address";
const EVERYWHERE =
  "Listening for other servers of the cluster on all interfaces. Select one with --cluster-listen, or restrict " +
  "the port to the servers with a firewall";

/** Resolves a host name. */
type Resolve = (
  host: string,
  options: { readonly all: true },
) => Promise<readonly { readonly address: string }[]>;

/** The listener with the address and the certificate that the cluster publishes. */
export interface LinkListener {
  readonly listener: TlsListener;
  readonly address: string;
  readonly certificate: string;
}

/** Opens a port for the other servers. Throws a `StartError`. */
export async function listenForServers(
  config: Pick<ClusterConfig, "database" | "address" | "listen">,
  { log, resolve = lookup }: { readonly log: Log; readonly resolve?: Resolve },
): Promise<LinkListener> {
  const { database, address, listen } = config;
  const host = address?.host ??
    (listen !== null && isOneAddress(listen.host) ? listen.host : await guessHost(database));
  if (address === null && LOOPBACK.test(host)) log("warn", ONLY_HERE, { address: asHost(host) });
  const port = listen?.port ?? address?.port ?? 0;
  const pair = await createCertificate();
  try {
    const listener = listen === null
      ? await listenAt(host, { port, pair, log, resolve })
      : TlsListener.listen({ ...pair, hostname: listen.host, port });
    return {
      listener,
      address: `${asHost(host)}:${address?.port || listener.port}`,
      certificate: pair.certificate,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `Other servers of the cluster cannot reach this one at ${
        asHost(listen?.host ?? host)
      }:${port}: ${reason}. ` +
        "Set the public address with --cluster-address and the local one with --cluster-listen",
      { code: "cluster", cause: error },
    );
  }
}

/** Whether it is a single address, not a wildcard. */
function isOneAddress(host: string): boolean {
  return isIP(host) !== 0 && host !== "0.0.0.0" && host !== "::";
}

/** Listens on `host` if it is an address of this machine. Behind NAT it is not; then on all interfaces. */
async function listenAt(
  host: string,
  { port, pair, log, resolve }: {
    readonly port: number;
    readonly pair: LinkCertificate;
    readonly log: Log;
    readonly resolve: Resolve;
  },
): Promise<TlsListener> {
  const { address, why } = await addressHere(host, resolve);
  if (address !== null) {
    try {
      return TlsListener.listen({ ...pair, hostname: address, port });
    } catch (error) {
      // The runtime also reports EINVAL for an address of another machine.
      const code = error instanceof Error && "code" in error ? error.code : null;
      if (code !== "EADDRNOTAVAIL" && code !== "EINVAL") throw error;
    }
  }
  log("warn", EVERYWHERE, { reason: why ?? `${host} is not an address of this machine` });
  return TlsListener.listen({ ...pair, hostname: host.includes(":") ? "::" : "0.0.0.0", port });
}

/** Resolves a name to an address of this machine; `null` with a reason if the result may differ for other machines. */
async function addressHere(
  host: string,
  resolve: Resolve,
): Promise<{ readonly address: string | null; readonly why?: string }> {
  if (isIP(host) !== 0) return { address: host };
  try {
    const [first, second] = await resolve(host, { all: true });
    if (first === undefined) return { address: null, why: `${host} does not resolve` };
    if (host === "localhost") return { address: first.address };
    if (second !== undefined) return { address: null, why: `${host} resolves to several addresses` };
    // Many machines resolve their own name to a loopback address.
    if (LOOPBACK.test(first.address)) {
      return { address: null, why: `${host} resolves to ${first.address} on this machine` };
    }
    return { address: first.address };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { address: null, why: `${host} cannot be resolved: ${reason}` };
  }
}

/** Returns the local address of a connection to the cluster's database: other servers most likely reach it too. */
async function guessHost({ host, port }: Pick<ClusterConfig["database"], "host" | "port">): Promise<string> {
  if (host.startsWith("/")) return "127.0.0.1";
  for (const until = performance.now() + clusterLimits.startMs;;) {
    try {
      // Nothing is sent.
      using conn = await Deno.connect({ hostname: host, port });
      return conn.localAddr.hostname;
    } catch (error) {
      if (performance.now() > until) throw error;
      await wait(clusterLimits.reconnectMs);
    }
  }
}

/** Formats an address for use with a port. */
const asHost = (hostname: string) => hostname.includes(":") ? `[${hostname}]` : hostname;
