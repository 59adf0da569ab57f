/** File storage as this server is configured. */
import type { Context } from "hono";
import { join } from "node:path";
import type { SecretKeys } from "../auth/mod.ts";
import type { CallPort } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import {
  createStorage,
  LocalBlobs,
  storageFeature,
  type StorageService,
  type StorageSettings,
} from "../storage/mod.ts";
import type { ServeConfig } from "./config.ts";

export interface StartStorageOptions {
  readonly config: ServeConfig;
  readonly keys: SecretKeys;
  readonly port: CallPort;
  readonly clientOf: (c: Context) => string;
  readonly log: Log;
}

/** What isolates are told of file storage, by the name of the feature. */
export function storageSettingsOf(config: ServeConfig, keys: SecretKeys): Record<string, StorageSettings> {
  const urlKey = keys.urlSignatures.toBase64({ alphabet: "base64url" });
  return { [storageFeature]: { urlKey, baseUrl: config.publicUrl ?? "" } };
}

export async function startStorage(
  { config, keys, port, clientOf, log }: StartStorageOptions,
): Promise<StorageService> {
  const { uploadBytesMax, privateReads, keepDeletedMs, thumbnailSizes } = config.storage;
  return createStorage({
    urlKey: keys.urlSignatures,
    port,
    store: await LocalBlobs.open(join(config.dataDir, "storage")),
    uploadBytesMax,
    private: privateReads,
    keepDeletedMs,
    thumbnailSizes,
    clientOf,
    log,
  });
}
