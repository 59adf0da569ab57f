/** File storage as this server is configured. */
import { join } from "node:path";
import type { SecretKeys } from "../../auth/mod.ts";
import {
  type BlobStore,
  createStorage,
  LocalBlobs,
  storageFeature,
  type StorageService,
  type StorageSettings,
  testBlobStore,
} from "../../storage/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import { isFollower, type ServeConfig } from "../../config/config.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { asideSince } from "../data/aside.ts";
import { apiHeaders } from "../http/api_headers.ts";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import { StartError } from "../../config/start_error.ts";

export interface StorageFeature extends Feature, Pick<StorageService, "traffic"> {
  /** To be tried out; `null` where files are another server's. */
  readonly place: () => LocationProbe | null;
}

/** What isolates are told of file storage, by the name of the feature. */
export function storageSettingsOf(config: ServeConfig, keys: SecretKeys): Record<string, StorageSettings> {
  const urlKey = keys.urlSignatures.toBase64({ alphabet: "base64url" });
  return { [storageFeature]: { urlKey, baseUrl: config.publicUrl ?? "" } };
}

/** Throws a `StartError` when the bucket cannot be used. */
export async function startStorage(
  context: FeatureContext,
  { cluster }: {
    /** The cluster that this server is one of; `null`: it is alone. */
    readonly cluster: Pick<PostgresCluster, "leadsSurely"> | null;
  },
): Promise<StorageFeature> {
  const store = await openStore(context);
  const storage = await openStorage(context, { store, knowsAll: () => cluster?.leadsSurely ?? true });
  const { config } = context;
  const bucketReason = config.storage.s3 === null
    ? undefined
    : (await import("../../kit/locations/bucket.ts")).bucketReason;
  return {
    place: () =>
      isFollower(config) ? null : testBlobStore(store, {
        place: placeOfFiles(config),
        ...(bucketReason !== undefined && { explained: (error) => new Error(bucketReason(error)) }),
      }),
    traffic: storage.traffic,
    routes: [
      { at: "/api/storage", app: storage.routes },
      { at: "/api/storage", app: storage.completeRoutes, complete: true },
    ],
    actions: storage.adminActions,
    ctxActions: storage.actions,
    respondAtOnce: (request) => storage.readAtOnce(request),
    applyCommits: (entries) => storage.applyCommits(entries),
    reload: () => storage.recheck(),
    async start() {
      if (context.takesOver) await storage.recover();
      // Beside everything else: what a crash left behind is in nobody's way.
      if (!isFollower(context.config)) void storage.sweep();
    },
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}

/** For people. */
function placeOfFiles({ dataDir, storage: { s3 } }: ServeConfig): string {
  return s3 === null ? join(dataDir, "storage") : `s3://${s3.bucket}/${s3.prefix}`;
}

async function openStorage(
  context: FeatureContext,
  { store, knowsAll }: { readonly store: BlobStore; readonly knowsAll: () => boolean },
): Promise<StorageService> {
  const { config, keys, port, clientOf, takesOver, caughtUp, log } = context;
  const { uploadBytesMax, privateReads, keepDeletedMs, thumbnailSizes } = config.storage;
  return await createStorage({
    urlKey: keys.urlSignatures,
    port,
    store,
    shared: takesOver,
    // On the disk of the blobs, so that what is whole is only renamed.
    spoolDir: join(config.dataDir, config.storage.s3 === null ? "storage/resumable" : "resumable"),
    baseUrl: config.publicUrl ?? "",
    uploadBytesMax,
    private: privateReads,
    keepDeletedMs,
    readOnly: isFollower(config),
    caughtUp,
    asideSince: () => asideSince(config.dataDir),
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

/** The S3 client takes memory and time to load, which servers with a folder do without. */
async function openStore({ config, takesOver, again, log }: FeatureContext): Promise<BlobStore> {
  const { dataDir, storage: { s3 } } = config;
  if (s3 === null) return await LocalBlobs.open(join(dataDir, "storage"), { shared: takesOver });
  const { S3Blobs } = await import("../../storage/blobs/s3_blobs.ts");
  try {
    const shared = config.cluster !== null;
    // While the bucket is away a change of leaders goes on: it has been used already.
    const later = shared && again === true
      ? (error: unknown) => log("warn", "Uploads that have not ended could not be looked for", { error })
      : undefined;
    return await S3Blobs.open(s3, { readOnly: isFollower(config), shared: shared || takesOver, later });
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    throw new StartError(`The bucket "${s3.bucket}" cannot be used for files: ${reason}`, {
      code: "bucket",
      cause: error,
    });
  }
}
