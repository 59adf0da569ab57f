/** Opens the store of a location. */
import type { ObjectLocation, ObjectStore, StoreOptions } from "./object_store.ts";

/** Opens a location. The S3 client is loaded on demand. */
export async function openStore(location: ObjectLocation, options: StoreOptions = {}): Promise<ObjectStore> {
  if (location.kind === "folder") {
    const { FolderStore } = await import("./folder_store.ts");
    return await FolderStore.open(location.path, options);
  }
  const { S3Store } = await import("./s3_store.ts");
  return new S3Store(location.bucket, options);
}
