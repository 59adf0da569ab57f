/**
 * The app's code in a cluster: which version the commits in this server's database are made with, and how this server gets it.
 * A deploy names it in the log; until then each server serves what it was started with.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import { ServiceError } from "../../errors.ts";
import {
  type Deployment,
  readDeployed,
  type Version,
  VersionError,
  type VersionStore,
  writeDeployed,
} from "../../functions/versions/mod.ts";
import type { IsolateHost } from "../../functions/host/mod.ts";
import { isDiskFull, removeIfThere, statIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { BundleError, packVersion, takeBundle } from "../../ops/deploy/mod.ts";

/** Where bundles are unpacked, below the data folder. */
const INCOMING = "incoming-versions";

const PINNED = "Functions were deployed to this cluster: start the server without --functions and --dev";

export interface ClusterCodeOptions {
  readonly cluster: PostgresCluster;
  readonly config: Pick<ServeConfig, "dataDir" | "pinned">;
  readonly log: Log;
}

export class ClusterCode {
  readonly #options: ClusterCodeOptions;

  constructor(options: ClusterCodeOptions) {
    this.#options = options;
  }

  /** What a process that was killed has left; no server may be at work with the data folder. */
  static async clear(dataDir: string): Promise<void> {
    await removeIfThere(join(dataDir, INCOMING));
  }

  /**
   * The version that the database names; `null`: none was deployed. Throws a `StartError` on a server that was told to serve
   * another.
   */
  async named(): Promise<string | null> {
    const { dataDir, pinned } = this.#options.config;
    const path = join(dataDir, "data.db");
    if (await statIfThere(path) === null) return null;
    const { readFollowerState } = await import("../../engine/mod.ts");
    const named = readFollowerState(path).version;
    if (named !== null && pinned) throw new StartError(PINNED);
    return named;
  }

  /** Has it here, and notes it. Throws a `VersionError` when this server cannot serve it, an `AwayError` when it cannot be had now. */
  async bring(hash: string | null, versions: VersionStore): Promise<Version> {
    if (this.#options.config.pinned) throw new VersionError(PINNED);
    if (hash === null) throw new VersionError("No version is named any more by the log of the cluster");
    const version = await this.get(hash, versions);
    // Before it is named, and where the database of the cluster has lost it.
    if (this.#options.cluster.role === "leader") await this.put(hash, versions);
    await this.#note(hash, versions);
    return version;
  }

  /** Has a version here. Throws like {@linkcode bring}. */
  async get(hash: string, versions: VersionStore): Promise<Version> {
    const known = await versions.get(hash).catch((error) => {
      if (error instanceof VersionError) return null;
      throw error;
    });
    if (known !== null) return known;
    const bundle = await this.#options.cluster.versions.read(hash);
    if (bundle === null) throw new VersionError(`The database of the cluster does not have version ${hash}`);
    const folder = join(this.#options.config.dataDir, INCOMING, randomBytes(8).toString("hex"));
    const taken = await takeBundle(bundle, { folder, versions, madeAt: Date.now() }).catch((error) => {
      // It cannot be read now, which says nothing of what is in it.
      if (error instanceof BundleError && isAway(error.cause)) throw error.cause;
      if (isDiskFull(error)) {
        throw new VersionError(`There is no room on the disk for version ${hash} of the cluster`, {
          cause: error,
        });
      }
      if (!(error instanceof BundleError) && !(error instanceof ServiceError)) throw error;
      throw new VersionError(`Version ${hash} of the cluster cannot be taken: ${error.message}`, {
        cause: error,
      });
    });
    if (taken.hash === hash) return taken;
    await versions.remove(taken.hash);
    throw new VersionError(`The database of the cluster has version ${taken.hash} under the name ${hash}`);
  }

  /** Puts a version of this server where the others find it. */
  async put(hash: string, versions: VersionStore): Promise<void> {
    const manifest = await versions.manifest(hash);
    const { folder } = await versions.get(hash);
    const { cluster } = this.#options;
    const now = { named: await this.named(), seq: cluster.leaderPosition(0).seq };
    await cluster.versions.put(hash, () => packVersion(manifest, folder), now);
  }

  /**
   * On a server that leads by now: what it serves is there for the others, and in the list of what one may go back to, also
   * where whoever deployed it could not see to that.
   */
  async lead({ version, versions, ts }: Pick<IsolateHost, "version" | "versions" | "ts">): Promise<void> {
    const { cluster, config: { dataDir }, log } = this.#options;
    if (version === null || !version.deployed) return;
    const { hash } = version;
    try {
      await this.put(hash, versions);
      if ((await cluster.versions.list()).some((known) => known.hash === hash && !known.replaced)) return;
      const deployed = await readDeployed(dataDir).catch(() => null);
      const deployment = deployed?.deployments.find((known) => known.hash === hash) ??
        { hash, at: Date.now(), by: "", functions: {} };
      await cluster.versions.served(deployment, cluster.leaderPosition(ts).seq);
    } catch (error) {
      log("warn", "What is served is not in the list of versions to go back to", { error });
    }
  }

  /** For who deploys. */
  shared(host: { readonly ts: number; readonly versions: VersionStore }) {
    const { cluster } = this.#options;
    const told = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      try {
        return await work();
      } catch (error) {
        if (error instanceof VersionError || error instanceof ServiceError) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        throw new ServiceError("unavailable", `The other servers of the cluster cannot have it: ${reason}`);
      }
    };
    return {
      list: () => told(() => cluster.versions.list()),
      bring: (hash: string) => told(() => this.get(hash, host.versions)),
      put: (hash: string) => told(() => this.put(hash, host.versions)),
      served: (deployment: Deployment) =>
        cluster.versions.served(deployment, cluster.leaderPosition(host.ts).seq),
    };
  }

  /**
   * What was deployed is known to each server, for the day on which it leads; with what this one was deployed before it was of
   * a cluster, as long as it has that.
   */
  async #note(current: string, versions: VersionStore): Promise<void> {
    const { cluster, config: { dataDir }, log } = this.#options;
    try {
      const shared = await cluster.versions.list().catch(() => null);
      const noted = (await readDeployed(dataDir).catch(() => null))?.deployments ?? [];
      const known = new Set((shared ?? noted).map(({ hash }) => hash));
      for (const { hash } of await versions.list()) known.add(hash);
      const newest = new Map<string, Deployment>();
      for (const { hash, at, by, functions } of [...noted, ...shared ?? []]) {
        if (known.has(hash)) newest.set(hash, { hash, at, by, functions });
      }
      const deployments = [...newest.values()].sort((one, other) => other.at - one.at);
      await writeDeployed(dataDir, { current, deployments });
    } catch (error) {
      log("warn", "What was deployed to the cluster could not be noted in the data folder", {
        code: "cluster",
        error,
      });
    }
  }
}

/** Whether an error says that the database of the cluster is away; by name, for the driver is loaded late. */
function isAway(error: unknown): boolean {
  return error instanceof Error && error.name === "AwayError";
}
