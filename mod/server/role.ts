/**
 * The role of a server, and the port that decides it.
 *
 *     starting → following ⇄ leading → draining
 *
 * A server `leads` if it may write, and `follows` another one otherwise. When its role changes, its backend ends completely
 * before one in the other role starts; requests wait in the meantime. A server that is `draining` finishes what is in flight:
 * it stops, or hands its data folder to a new process. If that process fails, the server starts again.
 */
import { isFollower, type ServeConfig } from "../config/config.ts";
import type { Log } from "../kit/log.ts";
import { prepareFollower } from "./features/following.ts";

export type Role = "starting" | "following" | "leading" | "draining";

/** Roles in which a backend runs. */
export type ServingRole = "following" | "leading";

export interface Authority {
  /** Prepares the unused database and decides the next backend's role. Throws a `StartError` if none can start. */
  decide(): Promise<ServingRole>;
}

/** The authority of a server without a cluster: the lock of its data folder, which its caller holds. */
export function localAuthority(
  config: Pick<ServeConfig, "dataDir" | "follow">,
  options: { readonly log: Log; readonly stopping: AbortSignal },
): Authority {
  return {
    async decide() {
      await prepareFollower(config, options);
      return isFollower(config) ? "following" : "leading";
    },
  };
}

export function configForRole(config: ServeConfig, role: ServingRole): ServeConfig {
  if (config.cluster === null) return config;
  // Only the leader makes backups.
  return role === "leading"
    ? { ...config, clusterRole: "leader" }
    : { ...config, clusterRole: "follower", backups: null };
}
