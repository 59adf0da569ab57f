/** Where the other servers of a cluster reach this one, when nobody says it. */
import { setTimeout as wait } from "node:timers/promises";
import { clusterLimits } from "../../cluster/postgres/limits.ts";
import type { PostgresPlace } from "../../cluster/postgres/place.ts";

/** The address with which this machine reaches the cluster's database: by it others who reach that find this one, most likely. */
export async function guessedHost({ host, port }: Pick<PostgresPlace, "host" | "port">): Promise<string> {
  if (host.startsWith("/")) return "127.0.0.1";
  for (const until = performance.now() + clusterLimits.startMs;;) {
    try {
      // Nothing is said on it.
      using conn = await Deno.connect({ hostname: host, port });
      return conn.localAddr.hostname;
    } catch (error) {
      if (performance.now() > until) throw error;
      await wait(clusterLimits.reconnectMs);
    }
  }
}

/** As a part of an address with a port. */
export const asHost = (hostname: string) => hostname.includes(":") ? `[${hostname}]` : hostname;
