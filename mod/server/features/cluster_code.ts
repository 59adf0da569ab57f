/** The app's code in a cluster: the version that the database names since the first deploy, and its download. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import { ServiceError } from "../../errors.ts";
import {
  type Deployment,
  historyOf,
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
import { deployLimits } from "../../ops/limits.ts";

/** Folder below the data folder in which bundles are unpacked. */
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

  /** Removes leftovers of a killed process. No server may be using the data folder. */
  static async clear(dataDir: string): Promise<void> {
    await removeIfThere(join(dataDir, INCOMING));
  }

  /** Returns the deployed version, `null` if none. Throws a `StartError` if this server is pinned to other code. */
  async currentHash(): Promise<string | null> {
    const { dataDir, pinned } = this.#options.config;
    const path = join(dataDir, "data.db");
    if (await statIfThere(path) === null) return null;
    const { readFollowerState } = await import("../../engine/mod.ts");
    const named = readFollowerState(path).version;
    if (named !== null && pinned) throw new StartError(PINNED);
    return named;
  }

  /** Downloads a version and records it. Throws a `VersionError` if it cannot be served here, or an `AwayError`. */
  async install(hash: string | null, versions: VersionStore): Promise<Version> {
    if (this.#options.config.pinned) throw new VersionError(PINNED);
    if (hash === null) throw new VersionError("The log of the cluster names no version");
    const version = await this.fetch(hash, versions);
    // Also restores a bundle that the database has lost.
    if (this.#options.cluster.role === "leader") await this.upload(hash, versions);
    await this.#recordDeployments(hash, versions);
    return version;
  }

  /** Downloads a version if necessary. Throws like {@linkcode install}. */
  async fetch(hash: string, versions: VersionStore): Promise<Version> {
    const known = await versions.get(hash).catch((error) => {
      if (error instanceof VersionError) return null;
      throw error;
    });
    if (known !== null) return known;
    const bundle = await this.#options.cluster.versions.read(hash);
    if (bundle === null) throw new VersionError(`The database of the cluster does not have version ${hash}`);
    const folder = join(this.#options.config.dataDir, INCOMING, randomBytes(8).toString("hex"));
    const options = { folder, versions, madeAt: Date.now(), sources: true };
    const taken = await takeBundle(bundle, options).catch((error) => {
      // The database is unreachable, which says nothing about the bundle.
      if (error instanceof BundleError && isAway(error.cause)) throw error.cause;
      if (isDiskFull(error)) {
        throw new VersionError(`Not enough disk space for version ${hash} of the cluster`, {
          cause: error,
        });
      }
      if (!(error instanceof BundleError) && !(error instanceof ServiceError)) throw error;
      throw new VersionError(`Cannot unpack version ${hash} of the cluster: ${error.message}`, {
        cause: error,
      });
    });
    if (taken.hash === hash) return taken;
    await versions.remove(taken.hash);
    throw new VersionError(
      `The database of the cluster contains version ${taken.hash} under the hash ${hash}`,
    );
  }

  async upload(hash: string, versions: VersionStore): Promise<void> {
    const manifest = await versions.manifest(hash);
    const { folder } = await versions.get(hash);
    const { cluster } = this.#options;
    const now = { named: await this.currentHash(), seq: cluster.leaderPosition(0).seq };
    await cluster.versions.put(hash, () => packVersion(manifest, folder), now);
  }

  /** On a new leader: uploads the served version and adds it to the list of deployments, in case the deploy did not complete that. */
  async leadershipAcquired(
    { code: { version, versions }, ts }: Pick<IsolateHost, "code" | "ts">,
  ): Promise<void> {
    const { cluster, config: { dataDir }, log } = this.#options;
    if (version === null || !version.deployed) return;
    const { hash } = version;
    try {
      await this.upload(hash, versions);
      if ((await cluster.versions.list()).some((known) => known.hash === hash && !known.replaced)) return;
      const deployed = await readDeployed(dataDir).catch(() => null);
      const deployment = deployed?.deployments.find((known) => known.hash === hash) ??
        { hash, at: Date.now(), by: "", functions: {} };
      await cluster.versions.served(deployment, cluster.leaderPosition(ts).seq);
    } catch (error) {
      log("warn", "Cannot add the served version to the list of deployments", { error });
    }
  }

  /** The cluster's versions, for deploys. */
  shared(host: Pick<IsolateHost, "code" | "ts">) {
    const { cluster } = this.#options;
    const withServiceErrors = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      try {
        return await work();
      } catch (error) {
        if (error instanceof VersionError || error instanceof ServiceError) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        throw new ServiceError(
          "unavailable",
          `Cannot share the version with the other servers of the cluster: ${reason}`,
        );
      }
    };
    return {
      list: () => withServiceErrors(() => cluster.versions.list()),
      fetch: (hash: string) => withServiceErrors(() => this.fetch(hash, host.code.versions)),
      put: (hash: string) => withServiceErrors(() => this.upload(hash, host.code.versions)),
      served: (deployment: Deployment) =>
        cluster.versions.served(deployment, cluster.leaderPosition(host.ts).seq),
    };
  }

  /** Records the deployments in the data folder, for when this server leads. Includes earlier ones of this server that it still has. */
  async #recordDeployments(current: string, versions: VersionStore): Promise<void> {
    const { cluster, config: { dataDir }, log } = this.#options;
    try {
      const shared = await cluster.versions.list().catch(() => null);
      const deployed = await readDeployed(dataDir).catch(() => null);
      const noted = deployed?.deployments ?? [];
      const known = new Set((shared ?? noted).map(({ hash }) => hash));
      for (const { hash } of await versions.list()) known.add(hash);
      const newest = new Map<string, Deployment>();
      for (const deployment of [...noted, ...shared ?? []]) {
        const { hash, at, by, functions } = deployment;
        // The database has no messages.
        const { message } = "message" in deployment ? deployment : newest.get(hash) ?? {};
        if (known.has(hash)) {
          newest.set(hash, { hash, at, by, functions, ...message !== undefined && { message } });
        }
      }
      const deployments = [...newest.values()].sort((one, other) => other.at - one.at);
      const before = deployed === null ? [] : historyOf(deployed);
      const served = newest.get(current);
      // Another server has deployed it.
      const added = served !== undefined && before[0]?.hash !== current;
      const history = added ? [{ hash: current, at: served.at, by: served.by }, ...before] : before;
      await writeDeployed(dataDir, {
        current,
        deployments,
        history: history.slice(0, deployLimits.historyMax),
      });
    } catch (error) {
      log("warn", "Cannot record the cluster's deployments in the data folder", {
        code: "cluster",
        error,
      });
    }
  }
}

/** Whether the database of the cluster is unreachable. Checks the name, because the driver is loaded on demand. */
function isAway(error: unknown): boolean {
  return error instanceof Error && error.name === "AwayError";
}
