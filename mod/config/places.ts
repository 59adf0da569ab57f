/** Places of files, backups and replicas, as options name them. */
import { resolve } from "node:path";
import type { BucketPlace } from "../kit/bucket.ts";
import type { PlaceConfig } from "./config.ts";
import type { OptionValues } from "./options.ts";
import { StartError } from "./start_error.ts";

/** How a service is reached that has buckets. */
export type S3Options = Pick<
  OptionValues,
  "s3Endpoint" | "s3Region" | "s3AccessKeyId" | "s3SecretAccessKey"
>;

/** A place of a replica as it is named. Throws a `StartError` for one in a bucket without its keys. */
export function placeConfig(
  options: S3Options,
  place: { readonly kind: "folder"; readonly path: string } | {
    readonly kind: "bucket";
    readonly bucket: string;
    readonly prefix: string;
  },
): PlaceConfig {
  if (place.kind === "folder") return { kind: "folder", path: resolve(place.path) };
  return { kind: "bucket", place: s3Config(options, place, "Replicas") };
}

/** What is needed to use a place in a bucket. Throws a `StartError` without its keys. */
export function s3Config(
  { s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey }: S3Options,
  { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
  what: "Files" | "Backups" | "Replicas",
): BucketPlace {
  if (s3AccessKeyId === null || s3SecretAccessKey === null) {
    throw new StartError(
      `${what} in a bucket need its keys: set SYNCLINE_S3_ACCESS_KEY_ID and SYNCLINE_S3_SECRET_ACCESS_KEY`,
    );
  }
  return {
    bucket,
    prefix,
    endpoint: s3Endpoint,
    region: s3Region,
    accessKeyId: s3AccessKeyId,
    secretAccessKey: s3SecretAccessKey,
  };
}
