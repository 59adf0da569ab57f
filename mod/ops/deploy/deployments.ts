/** Deploys and rollbacks: one at a time, validated beside the running code and swapped between two commits. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { type AppCheck, BrokenVersionError, type IsolateHost } from "../../functions/host/mod.ts";
import {
  BUNDLE_NAME,
  type Deployed,
  type Deployment,
  historyOf,
  readDeployed,
  stageDeployed,
  type Version,
  VersionError,
  writeDeployed,
} from "../../functions/versions/mod.ts";
import { isDiskFull, type StagedFile } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { deployLimits } from "../limits.ts";
import { spoolBody, type SpooledBody } from "../spooled_body.ts";
import { BundleError } from "./bundle/bundle_manifest.ts";
import { takeBundle } from "./bundle/take.ts";
import { type DeployChanges, deployChanges, mismatchText, type WaitingJobs } from "./changes.ts";

export interface DeploymentsOptions {
  readonly dataDir: string;
  /** Folder of uploads in progress. */
  readonly incomingDir: string;
  readonly host: {
    readonly code: Pick<IsolateHost["code"], "crons" | "version" | "versions">;
    readonly swaps: Pick<IsolateHost["swaps"], "check" | "load">;
  };
  /** Whether the server serves the functions folder it was started with. */
  readonly pinned: boolean;
  /** Version store shared by the servers of a cluster; absent on a single server. */
  readonly shared?: SharedVersions;
  /** Counts the pending jobs of each of the app's functions. */
  readonly waitingJobs: () => Promise<WaitingJobs>;
  /** Called when another version is served. */
  readonly onServed: (version: Version) => Promise<void>;
  readonly now: () => number;
  readonly log: Log;
}

/** Versions stored for all servers of a cluster. The commit log determines which one is served. */
export interface SharedVersions {
  /** Versions available for a rollback. */
  readonly list: () => Promise<readonly { readonly hash: string; readonly bytes: number }[]>;
  /** Fetches a version. Throws a `VersionError`. */
  readonly fetch: (hash: string) => Promise<Version>;
  /** Stores a version before it is served. */
  readonly put: (hash: string) => Promise<void>;
  /** Records that the version is served from now on. */
  readonly served: (deployment: Deployment) => Promise<void>;
}

/** A deployed version as listed. */
export interface DeployedVersion {
  readonly hash: string;
  readonly deployedAt: number;
  readonly by: string;
  /** Total size of its files. */
  readonly bytes: number;
  readonly functions: number;
  readonly current: boolean;
  readonly message: string | null;
}

/** A time in which a version was served. */
export interface ServedTime {
  readonly hash: string;
  readonly from: number;
  /** `null` for the served version. */
  readonly to: number | null;
  readonly by: string;
  readonly message: string | null;
}

export interface DeployResult {
  readonly hash: string;
  /** The previously served version. */
  readonly previous: string | null;
  /** Whether it was loaded; `false` for a dry run or if it was served already. */
  readonly swapped: boolean;
  readonly changes: DeployChanges;
}

export interface DeployOptions {
  /** Display name of the caller. */
  readonly by: string;
  /** ID of the administrator or deploy key. */
  readonly callerId: string;
  /** Throws if the caller may no longer deploy; see `AdminEnv`. */
  readonly confirmAccess: () => Promise<void>;
  readonly dryRun: boolean;
  /** A line about it, for the history. */
  readonly message?: string;
  /** Whether a bundle without a frontend gets that of the served version. */
  readonly keepFrontend?: boolean;
}

export interface OpenBundle {
  readonly file: Deno.FsFile;
  /** The functions folder in the names of its sources. */
  readonly functions: string;
}

/** Deployed versions of a server. */
export interface DeployedVersions {
  /** Whether the server serves the functions folder it was started with. */
  readonly pinned: boolean;
  /** Newest first. */
  readonly versions: readonly DeployedVersion[];
  /** Newest first. Also of versions that are no longer available. */
  readonly history: readonly ServedTime[];
  /** Whether the served version has a frontend. */
  readonly hasFrontend: boolean;
}

const PINNED =
  "The server serves the folder it was started with (--functions or --dev): start it without them to deploy to it";

export class Deployments {
  readonly #options: DeploymentsOptions;
  #busy = false;
  /** Callers whose bundle is being received. */
  readonly #uploading = new Set<string>();

  constructor(options: DeploymentsOptions) {
    this.#options = options;
  }

  /** Lists deployed versions. */
  async list(): Promise<DeployedVersions> {
    const { dataDir, host, pinned } = this.#options;
    const [deployed, kept] = [await readDeployed(dataDir), await this.#kept()];
    const serves = host.code.version?.hash;
    const versions = (deployed?.deployments ?? []).flatMap(({ hash, at, by, functions, message = null }) => {
      const bytes = kept.get(hash);
      if (bytes === undefined) return [];
      const count = Object.keys(functions).length;
      const current = hash === serves;
      return [{ hash, deployedAt: at, by, bytes, functions: count, current, message }];
    });
    const served = deployed === null ? [] : historyOf(deployed);
    const history = served.map(({ hash, at, by, message = null }, index) => ({
      ...{ hash, from: at, to: served[index - 1]?.at ?? null, by, message },
    }));
    return { pinned, versions, history, hasFrontend: typeof host.code.version?.staticDir === "string" };
  }

  /** Opens the bundle of a version, which contains the sources of the app. Throws `unknown_version`. */
  async openBundle(hash: string): Promise<OpenBundle> {
    const { host, shared } = this.#options;
    try {
      const kept = (await host.code.versions.list()).some((version) => version.hash === hash);
      const { folder, functions } =
        await (kept || shared === undefined ? host.code.versions.get(hash) : shared.fetch(hash));
      return { file: await Deno.open(join(folder, BUNDLE_NAME)), functions };
    } catch (error) {
      if (!(error instanceof VersionError || error instanceof Deno.errors.NotFound)) throw error;
      throw new ServiceError("unknown_version", "The server does not have this version any more");
    }
  }

  /** Sizes of available versions by hash: of the files, or of the bundle if the version is not stored locally. */
  async #kept(): Promise<ReadonlyMap<string, number>> {
    const { host, shared } = this.#options;
    const versions = [...await shared?.list() ?? [], ...await host.code.versions.list()];
    return new Map(versions.map(({ hash, bytes }) => [hash, bytes]));
  }

  /** Receives a bundle and serves it, unless it is a dry run. A failure leaves nothing behind. */
  async deploy(request: Request, options: DeployOptions): Promise<DeployResult> {
    const refusal = this.#refusedNow() ?? this.#uploadRefused(options.callerId);
    if (refusal !== null) {
      // A client that is still sending would see a closed connection instead of the response.
      await drainBody(request.body, { bytesMax: deployLimits.drainBytesMax, ms: deployLimits.drainMs });
      throw refusal;
    }
    await using bundle = await this.#received(request, options);
    await options.confirmAccess();
    return await this.#alone(async () => {
      const { host } = this.#options;
      const known = new Set((await host.code.versions.list()).map(({ hash }) => hash));
      const version = await this.#unpacked(bundle, options);
      let served = false;
      try {
        const result = await this.#serve(version, options);
        served = result.swapped;
        return result;
      } finally {
        if (!served && !known.has(version.hash)) await host.code.versions.remove(version.hash);
      }
    });
  }

  /** Serves a version deployed before, named by its hash or the start of it; without one, the previous version. */
  rollBack(hash: string | null, options: DeployOptions): Promise<DeployResult> {
    return this.#alone(async () => {
      const { dataDir, host, shared } = this.#options;
      const { versions } = await this.list();
      const deployed = await readDeployed(dataDir);
      // In a cluster the log determines the served version, which may not be recorded in the data folder yet.
      const current = shared === undefined ? deployed?.current : host.code.version?.hash;
      const hashes = versions.map((version) => version.hash);
      const [wanted, other] = hash === null
        ? [hashes.find((each) => each !== current)]
        : hashes.filter((each) => each.startsWith(hash));
      if (hash === null && wanted === undefined) {
        throw new ServiceError("unknown_version", "There is no other version to roll back to");
      }
      if (wanted === undefined || other !== undefined) {
        throw new ServiceError(
          "unknown_version",
          `${other === undefined ? "There is no such version" : `Several versions begin with "${hash}"`}. ` +
            `The server has ${hashes.join(", ") || "none"}`,
        );
      }
      const version = await (shared === undefined ? host.code.versions.get(wanted) : shared.fetch(wanted));
      return await this.#serve(version, options);
    });
  }

  #refusedNow(): ServiceError | null {
    if (this.#options.pinned) return new ServiceError("functions_pinned", PINNED);
    return this.#busy ? new ServiceError("deploy_in_progress") : null;
  }

  #uploadRefused(callerId: string): ServiceError | null {
    if (this.#uploading.has(callerId)) {
      return new ServiceError(
        "deploy_in_progress",
        "Another deploy is in progress: a bundle of this key or administrator is being uploaded",
      );
    }
    return this.#uploading.size < deployLimits.uploadsMax
      ? null
      : new ServiceError("overloaded", "Too many bundles are uploading, try again later");
  }

  async #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const refusal = this.#refusedNow();
    if (refusal !== null) throw refusal;
    this.#busy = true;
    try {
      return await work();
    } catch (error) {
      throw asServiceError(error);
    } finally {
      this.#busy = false;
    }
  }

  /** Receives a bundle into a temporary file. Does not hold the lock, because uploads may be slow. */
  async #received(request: Request, { callerId }: DeployOptions): Promise<SpooledBody> {
    this.#uploading.add(callerId);
    try {
      return await spoolBody(request, {
        path: join(this.#options.incomingDir, `deploy-${randomBytes(8).toString("hex")}.tar.gz`),
        bytesMax: deployLimits.bundleBytesMax,
        stallMs: deployLimits.stallMs,
      });
    } finally {
      this.#uploading.delete(callerId);
    }
  }

  /** Creates a version from a bundle through temporary files. */
  async #unpacked({ path }: SpooledBody, { keepFrontend = false }: DeployOptions): Promise<Version> {
    const { host, now } = this.#options;
    const served = keepFrontend && host.code.version !== null ? host.code.version : null;
    const frontend = served === null
      ? null
      : { manifest: await host.code.versions.manifest(served.hash), folder: served.folder };
    const file = await Deno.open(path);
    const folder = path.replace(/\.tar\.gz$/, "");
    return await takeBundle(file.readable, { folder, versions: host.code.versions, madeAt: now(), frontend });
  }

  async #serve(
    version: Version,
    { by, dryRun, message, confirmAccess }: DeployOptions,
  ): Promise<DeployResult> {
    const { dataDir, host, shared, log } = this.#options;
    const before = host.code.version;
    const deployed = await readDeployed(dataDir);
    const check = await this.#check(version);
    const manifest = await host.code.versions.manifest(version.hash);
    const changes = deployChanges(await this.#facts(before, deployed), {
      ...{ check, manifest },
      waiting: await this.#waiting(),
    });
    if (!changes.fits) throw new ServiceError("schema_mismatch", mismatchText(changes), { data: changes });
    const result = { hash: version.hash, previous: before?.hash ?? null, changes };
    const isNoted = shared === undefined ? deployed?.current === version.hash : before?.deployed === true;
    const isServed = before?.hash === version.hash && isNoted;
    if (dryRun || isServed) return { ...result, swapped: false };
    const deployment = {
      ...{ hash: version.hash, at: this.#options.now(), by, functions: check.functions },
      ...message !== undefined && { message },
    };
    await this.#load(version, { before, deployed, deployment, confirmAccess });
    log("info", "Functions were deployed", { hash: version.hash, by });
    return { ...result, swapped: true };
  }

  async #load(
    version: Version,
    { before, deployed, deployment, confirmAccess }: {
      readonly before: Version | null;
      readonly deployed: Deployed | null;
      readonly deployment: Deployment;
      readonly confirmAccess: () => Promise<void>;
    },
  ): Promise<void> {
    const { host, onServed, shared, log } = this.#options;
    // Checked here too, so that a caller without access usually starts no isolates and leaves no version behind.
    await confirmAccess();
    await shared?.put(version.hash);
    // Steps that need disk space come before any change.
    await using staged = await this.#staged({ deployed, deployment });
    let failure: { readonly error: unknown } | null = null;
    const loaded = await host.swaps.load(version, {
      confirm: confirmAccess,
      // From the first commit of the new code on, a start serves it too.
      swapped: () =>
        staged.commit().catch((error) => {
          failure = { error };
        }),
    });
    if (!loaded.ok) throw await this.#refusal(version, loaded);
    // In a cluster the log has recorded it already.
    await shared?.served(deployment).catch((error) =>
      log("warn", "Cannot add a deploy to the list of versions", { code: "deploy", error })
    );
    if (failure !== null) {
      const { error } = failure as { readonly error: unknown };
      if (shared === undefined) throw await this.#wayBack({ before, deployed, error });
      log("warn", "Cannot record a deploy to the cluster in the data folder", {
        code: "cluster",
        error,
      });
    }
    await onServed(version);
  }

  /** Why a version was not loaded: invalid documents may have been written since its validation. */
  async #refusal(
    version: Version,
    { busy = false, message }: { readonly busy?: boolean; readonly message: string },
  ): Promise<ServiceError> {
    if (busy) return new ServiceError("unavailable", `${message}: nothing has changed, deploy again`);
    const { schema } = await this.#check(version);
    return new ServiceError(schema.misfits.length > 0 ? "schema_mismatch" : "broken_functions", message);
  }

  /** Serves the previous version again, because the deploy could not be recorded. Returns the error to report. */
  async #wayBack(
    { before, deployed, error }: {
      readonly before: Version | null;
      readonly deployed: Deployed | null;
      readonly error: unknown;
    },
  ): Promise<unknown> {
    const { dataDir, host, log } = this.#options;
    log("error", "Cannot record a deploy in the data folder", { code: "deploy", error });
    const noted = await writeDeployed(dataDir, deployed).then(() => true, (error) => {
      log("error", "Cannot record the previous deploy again", { code: "deploy", error });
      return false;
    });
    const back = before === null
      ? { ok: false, message: "nothing was served before" }
      : await host.swaps.load(before);
    if (back.ok && noted) return error;
    if (!back.ok) log("error", "Cannot load the previous version again", { message: back.message });
    return new ServiceError(
      "internal",
      `The deploy could not be noted in the data folder. ${
        back.ok ? "The previous functions are served again" : "The new functions are served"
      } until the server starts again, which may serve ${
        noted ? "what was deployed before" : "either"
      }: look at the disk and deploy again`,
      { cause: error },
    );
  }

  async #staged(
    { deployed, deployment }: { readonly deployed: Deployed | null; readonly deployment: Deployment },
  ): Promise<StagedFile> {
    const { dataDir } = this.#options;
    const kept = await this.#kept();
    const { functions, message, ...facts } = deployment;
    const served = { ...facts, ...message !== undefined && { message } };
    const before = deployed?.deployments.find(({ hash }) => hash === deployment.hash);
    const others = (deployed?.deployments ?? []).filter(({ hash }) =>
      hash !== deployment.hash && kept.has(hash)
    );
    return await stageDeployed(dataDir, {
      current: deployment.hash,
      // The message of a version is that of its first deploy, not that of a rollback to it.
      deployments: [
        before === undefined ? deployment : { ...before, ...facts, functions },
        ...others,
      ],
      history: [served, ...deployed === null ? [] : historyOf(deployed)].slice(0, deployLimits.historyMax),
    });
  }

  /** A failure to count them does not fail the deploy. */
  async #waiting(): Promise<WaitingJobs> {
    const { waitingJobs, log } = this.#options;
    return await waitingJobs().catch((error) => {
      log("warn", "Cannot count pending jobs for a deploy", { code: "deploy", error });
      return { functions: [], complete: false };
    });
  }

  #check(version: Version): Promise<AppCheck> {
    const { misfitsMax: documentsMax, misfitCharsMax: charsMax, checkMs: msMax } = deployLimits;
    return this.#options.host.swaps.check(version, { documentsMax, charsMax, msMax });
  }

  /** Functions and files of the served version; for code that was not deployed, as an isolate reports them. */
  async #facts(version: Version | null, deployed: Deployed | null) {
    const { crons } = this.#options.host.code;
    if (version === null) return { functions: {}, manifest: null, crons };
    const known = deployed?.deployments.find(({ hash }) => hash === version.hash);
    const functions = known?.functions ?? (await this.#check(version)).functions;
    return { functions, crons, manifest: await this.#options.host.code.versions.manifest(version.hash) };
  }
}

/** Converts an error for the client. */
function asServiceError(error: unknown): unknown {
  if (error instanceof BundleError) {
    return new ServiceError("invalid_bundle", error.message, { cause: error });
  }
  if (isDiskFull(error)) return new ServiceError("disk_full", undefined, { cause: error });
  if (error instanceof BrokenVersionError) {
    return new ServiceError("broken_functions", error.message, { cause: error });
  }
  if (error instanceof VersionError) {
    return new ServiceError("invalid_bundle", error.message, { cause: error });
  }
  return error;
}

/** Discards a request body within limits, so that the client reads the response. Never rejects. */
async function drainBody(
  body: ReadableStream<Uint8Array> | null,
  { bytesMax, ms }: { readonly bytesMax: number; readonly ms: number },
): Promise<void> {
  if (body === null || body.locked) return;
  const reader = body.getReader();
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), ms);
  try {
    for (let bytes = 0; bytes <= bytesMax;) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.length;
    }
  } catch {
    // The client has disconnected.
  } finally {
    clearTimeout(timer);
    await reader.cancel().catch(() => {});
  }
}
