/** Turns the locations named by options into configuration. */
import { resolve } from "node:path";
import type { BucketLocation, ObjectLocation } from "../kit/locations/object_store.ts";
import type { OptionValues } from "./options.ts";
import { StartError } from "./start_error.ts";

/** The options that configure an S3 service. */
export type S3Options = Pick<
  OptionValues,
  "s3Endpoint" | "s3Region" | "s3AccessKeyId" | "s3SecretAccessKey"
>;

/** Returns the location of a replica. Throws a `StartError` for a bucket without access keys. */
export function locationConfig(
  options: S3Options,
  location: { readonly kind: "folder"; readonly path: string } | {
    readonly kind: "bucket";
    readonly bucket: string;
    readonly prefix: string;
  },
): ObjectLocation {
  if (location.kind === "folder") return { kind: "folder", path: resolve(location.path) };
  return { kind: "bucket", bucket: bucketLocation(options, location, "Replicas") };
}

/** Returns the configuration of a bucket location. Throws a `StartError` without access keys. */
export function bucketLocation(
  { s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey }: S3Options,
  { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
  what: "Files" | "Backups" | "Replicas" | "Objects",
): BucketLocation {
  if (s3AccessKeyId === null || s3SecretAccessKey === null) {
    throw new StartError(
      `${what} in a bucket need access keys: set SYNCLINE_S3_ACCESS_KEY_ID and SYNCLINE_S3_SECRET_ACCESS_KEY`,
      { code: "bucket" },
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
