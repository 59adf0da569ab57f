/** Guesses the address at which other servers of a cluster reach this one. */
import { setTimeout as wait } from "node:timers/promises";
import { clusterLimits } from "../../cluster/postgres/limits.ts";
import type { PostgresPlace } from "../../cluster/postgres/place.ts";

/** Returns the local address of a connection to the cluster's database: other servers most likely reach it too. */
export async function guessHost({ host, port }: Pick<PostgresPlace, "host" | "port">): Promise<string> {
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
export const asHost = (hostname: string) => hostname.includes(":") ? `[${hostname}]` : hostname;
