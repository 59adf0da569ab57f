/** Membership of this server in a cluster: the shared database and the links to the other servers. */
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import type { ServeConfig } from "../config/config.ts";
import type { Log } from "../kit/log.ts";
import type { Backend } from "./backend.ts";
import { joinCluster } from "./features/cluster.ts";
import type { ClusterLinks } from "./forwarding/cluster_links.ts";

export interface ClusterMembershipOptions {
  /** URL of this server for a browser on its machine. */
  readonly url: string;
  /** Prepares this server to lead. Rejects if it cannot lead. */
  readonly prepare: () => Promise<void>;
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

export class ClusterMembership implements AsyncDisposable {
  readonly cluster: PostgresCluster;
  readonly forwarding: ClusterLinks;

  private constructor(cluster: PostgresCluster, forwarding: ClusterLinks) {
    this.cluster = cluster;
    this.forwarding = forwarding;
  }

  /** Returns `null` if no cluster is configured. Throws a `StartError`. */
  static async join(
    config: ServeConfig,
    options: ClusterMembershipOptions,
  ): Promise<ClusterMembership | null> {
    const { url, prepare, respond, log } = options;
    const cluster = await joinCluster(config, { address: url, log });
    if (cluster === null || config.cluster === null) return null;
    await using opened = new AsyncDisposableStack();
    opened.use(cluster);
    const { ClusterLinks } = await import("./forwarding/cluster_links.ts");
    const { dataDir } = config;
    const parts = { cluster, config: config.cluster, dataDir, prepare, respond, log };
    const membership = new ClusterMembership(cluster, await ClusterLinks.open(parts));
    opened.move();
    return membership;
  }

  /** Hands the lease to a server that is prepared to lead. Without one, the lease is released at the end of the stop. */
  async handOver(serving: () => Backend | null): Promise<void> {
    if (!await this.forwarding.prepareNext()) return;
    const backend = serving();
    if (backend === null) return;
    // The new leader starts its background work as soon as it leads, so stop ours first.
    await backend.stopLeaderWork?.();
    void this.forwarding.drainFollowers();
    const retired = await backend.stopCommitting?.(this.forwarding.stopCommitting());
    if (retired === true) await this.cluster.handOver();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await this.forwarding[Symbol.asyncDispose]();
  }
}
