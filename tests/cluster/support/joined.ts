/** Joins a cluster without a server. */
import { type ClusterOptions, PostgresCluster } from "../../../mod/cluster/postgres/cluster.ts";
import type { ServedState } from "../../../mod/cluster/postgres/election.ts";
import { parsePostgresUrl } from "../../../mod/cluster/postgres/postgres_address.ts";
import type { TempFolder } from "../../support/temp_folder.ts";

export interface JoinOptions extends Partial<Pick<ClusterOptions, "leaseMs" | "startMs" | "log">> {
  readonly dataDir: string;
  /** Folder of the snapshots. */
  readonly folder: TempFolder;
}

export function joinCluster(
  url: string,
  { dataDir, folder, ...others }: JoinOptions,
): Promise<PostgresCluster> {
  return PostgresCluster.join({
    database: parsePostgresUrl(url),
    secret: "a secret of all servers, 2030",
    snapshots: { kind: "folder", path: folder.at("snapshots") },
    dataDir,
    address: "http://here",
    serviceKey: () => Promise.resolve("key"),
    useServiceKey: () => Promise.resolve(),
    log: () => {},
    ...others,
  });
}

/** Returns the state of an empty backend without backups. */
export function servedState(parts: Partial<ServedState> = {}): ServedState {
  return {
    position: () => ({ seq: 0, ts: 0 }),
    sockets: () => 0,
    lagMs: () => null,
    makeBackup: () => Promise.reject(new Error("nothing is backed up here")),
    lapsed: () => Promise.resolve(),
    restart: () => {},
    ...parts,
  };
}
