/** Membership of this server in a cluster: the shared database and the links to the other servers. */
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import type { ServeConfig } from "../config/config.ts";
import type { Log } from "../kit/log.ts";
import type { Backend } from "./backend.ts";
import { joinCluster } from "./features/cluster.ts";
import type { Forwarding } from "./forwarding/forwarding.ts";

export interface ClusterSeatOptions {
  /** URL of this server for a browser on its machine. */
  readonly url: string;
  /** Prepares this server to lead. Rejects if it cannot lead. */
  readonly prepare: () => Promise<void>;
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

export class ClusterSeat implements AsyncDisposable {
  readonly cluster: PostgresCluster;
  readonly forwarding: Forwarding;

  private constructor(cluster: PostgresCluster, forwarding: Forwarding) {
    this.cluster = cluster;
    this.forwarding = forwarding;
  }

  /** Returns `null` if no cluster is configured. Throws a `StartError`. */
  static async join(config: ServeConfig, options: ClusterSeatOptions): Promise<ClusterSeat | null> {
    const { url, prepare, respond, log } = options;
    const cluster = await joinCluster(config, { address: url, log });
    if (cluster === null || config.cluster === null) return null;
    await using opened = new AsyncDisposableStack();
    opened.use(cluster);
    const { Forwarding } = await import("./forwarding/forwarding.ts");
    const { dataDir } = config;
    const parts = { cluster, config: config.cluster, dataDir, prepare, respond, log };
    const seat = new ClusterSeat(cluster, await Forwarding.open(parts));
    opened.move();
    return seat;
  }

  /** Hands the lease to a server that is prepared to lead. Without one, the lease is released at the end of the stop. */
  async handOver(serving: () => Backend | null): Promise<void> {
    if (!await this.forwarding.prepareNext()) return;
    const backend = serving();
    if (backend === null) return;
    // The new leader starts its background work as soon as it leads, so stop ours first.
    await backend.rest?.();
    void this.forwarding.leave();
    const retired = await backend.retire?.(this.forwarding.retire());
    if (retired === true) await this.cluster.handOver();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await this.forwarding[Symbol.asyncDispose]();
  }
}
