/** Membership of this server in a cluster: the shared database, and the links to the other servers. */
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import type { ServeConfig } from "../config/config.ts";
import type { Log } from "../kit/log.ts";
import { clusterRole, joinCluster } from "./features/cluster.ts";
import type { ClusterLinks } from "./forwarding/cluster_links.ts";
import type { Authority, ServingRole } from "./role.ts";

export interface ClusterMembershipOptions {
  /** URL of this server for a browser on its machine. */
  readonly url: string;
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

export class ClusterMembership implements Authority, AsyncDisposable {
  readonly cluster: PostgresCluster;
  readonly forwarding: ClusterLinks;

  private constructor(cluster: PostgresCluster, forwarding: ClusterLinks) {
    this.cluster = cluster;
    this.forwarding = forwarding;
  }

  /** Returns `null` if no cluster is configured. Throws a `StartError`. */
  static async join(
    config: ServeConfig,
    { url, respond, log }: ClusterMembershipOptions,
  ): Promise<ClusterMembership | null> {
    const cluster = await joinCluster(config, { address: url, log });
    if (cluster === null || config.cluster === null) return null;
    await using opened = new AsyncDisposableStack();
    opened.use(cluster);
    const { ClusterLinks } = await import("./forwarding/cluster_links.ts");
    const { dataDir } = config;
    const links = await ClusterLinks.open({ cluster, config: config.cluster, dataDir, respond, log });
    opened.move();
    return new ClusterMembership(cluster, links);
  }

  /** See `Authority.decide`: the server that has the cluster's lease leads. */
  decide(): Promise<ServingRole> {
    return clusterRole(this.cluster);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await this.forwarding[Symbol.asyncDispose]();
  }
}
