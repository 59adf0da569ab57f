/** File storage of this server. */
import { join } from "node:path";
import type { SecretKeys } from "../../auth/mod.ts";
import {
  blobsProbe,
  type BlobStore,
  createStorage,
  openBlobs,
  storageFeature,
  type StorageService,
  type StorageSettings,
} from "../../storage/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import { isFollower, type ServeConfig } from "../../config/config.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { newestReplacedDatabase } from "../data/data_restore.ts";
import { apiHeaders } from "../http/app_routes.ts";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import { LocationError, type ObjectLocation } from "../../kit/locations/object_store.ts";
import { StartError } from "../../config/start_error.ts";

export interface StorageFeature extends Feature, Pick<StorageService, "traffic" | "store"> {
  /** Probes the file storage; `null` on a follower. */
  readonly probe: () => LocationProbe | null;
}

export function storageSettingsOf(config: ServeConfig, keys: SecretKeys): Record<string, StorageSettings> {
  const urlKey = keys.urlSignatures.toBase64({ alphabet: "base64url" });
  return { [storageFeature]: { urlKey, baseUrl: config.publicUrl ?? "" } };
}

/** Throws a `StartError` if the bucket cannot be used. */
export async function startStorage(
  context: FeatureContext,
  { cluster }: {
    /** `null` outside a cluster. */
    readonly cluster: Pick<PostgresCluster, "leadsSurely"> | null;
  },
): Promise<StorageFeature> {
  const store = await openStore(context);
  const storage = await openStorage(context, { store, knowsAll: () => cluster?.leadsSurely ?? true });
  const { config } = context;
  return {
    probe: () => isFollower(config) ? null : blobsProbe(locationOf(config)),
    traffic: storage.traffic,
    store: storage.store,
    routes: [
      { at: "/api/storage", app: storage.routes },
      { at: "/api/storage", app: storage.completeRoutes, complete: true },
    ],
    actions: storage.adminActions,
    ctxActions: storage.actions,
    respondAtOnce: (request) => storage.readAtOnce(request),
    applyCommits: (entries) => storage.applyCommits(entries),
    reload: () => storage.recheck(),
    start() {
      // In the background: leftovers of a crash do no harm.
      if (!isFollower(context.config)) void storage.sweep();
    },
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}

function locationOf({ dataDir, storage: { s3 } }: ServeConfig): ObjectLocation {
  return s3 === null ? { kind: "folder", path: join(dataDir, "storage") } : { kind: "bucket", bucket: s3 };
}

async function openStorage(
  context: FeatureContext,
  { store, knowsAll }: { readonly store: BlobStore; readonly knowsAll: () => boolean },
): Promise<StorageService> {
  const { config, keys, port, clientOf, caughtUp, log } = context;
  const { uploadBytesMax, privateReads, keepDeletedMs, thumbnailSizes } = config.storage;
  return await createStorage({
    urlKey: keys.urlSignatures,
    port,
    store,
    // On the disk of the files, so that a finished upload only needs a rename.
    spoolDir: join(config.dataDir, config.storage.s3 === null ? "storage/resumable" : "resumable"),
    baseUrl: config.publicUrl ?? "",
    uploadBytesMax,
    private: privateReads,
    keepDeletedMs,
    readOnly: isFollower(config),
    caughtUp,
    databaseReplacedAt: () => newestReplacedDatabase(config.dataDir),
    knowsAll,
    thumbnailSizes,
    clientOf,
    extraHeaders: {
      "Access-Control-Allow-Origin": apiHeaders["Access-Control-Allow-Origin"],
      "Access-Control-Expose-Headers": apiHeaders["Access-Control-Expose-Headers"],
    },
    log,
  });
}

async function openStore({ config, isRestart, log }: FeatureContext): Promise<BlobStore> {
  const isShared = config.cluster !== null;
  try {
    return await openBlobs(locationOf(config), {
      readOnly: isFollower(config),
      shared: isShared && config.storage.s3 !== null,
      // A change of leader continues while the bucket is unreachable: it has been used before.
      later: isShared && isRestart === true
        ? (error: unknown) => log("warn", "Cannot list unfinished uploads", { error })
        : undefined,
    });
  } catch (error) {
    if (!(error instanceof LocationError) || config.storage.s3 === null) throw error;
    throw new StartError(`Cannot store files in a bucket: ${error.message}`, {
      code: "bucket",
      cause: error,
    });
  }
}
