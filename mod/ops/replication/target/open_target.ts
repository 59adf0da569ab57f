/** Finding and opening the place where a replica lies. */
import type { BucketLocation } from "../../../kit/locations/bucket.ts";
import type { ReplicaTarget } from "./replica_target.ts";

/** Where a target is, as processes tell one another. */
export type TargetPlace =
  | { readonly kind: "folder"; /** Absolute. */ readonly path: string }
  | { readonly kind: "bucket"; readonly place: BucketLocation };

/** Opens a target. The client of buckets is loaded only when there is one. */
export async function openTarget(
  place: TargetPlace,
  options: {
    readonly signal?: AbortSignal; /** Whether a folder is made when it is missing. */
    readonly make: boolean;
  },
): Promise<ReplicaTarget> {
  if (place.kind === "folder") {
    const { FolderTarget } = await import("./folder_target.ts");
    return await FolderTarget.open(place.path, options);
  }
  const { BucketTarget } = await import("./bucket_target.ts");
  return new BucketTarget(place.place, options);
}

/** A target for people. */
export function placeText(place: TargetPlace): string {
  return place.kind === "folder" ? place.path : `s3://${place.place.bucket}/${place.place.prefix}`;
}
