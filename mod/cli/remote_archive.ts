/** An archive in a bucket, as the command `restore` is given it: found there, and brought into the data folder. */
import { join } from "node:path";
import type { Bucket, BucketPlace } from "../kit/bucket.ts";
import { opsLimits } from "../ops/limits.ts";
import { parseBucket } from "../config/option_types.ts";
import { StartError } from "../config/start_error.ts";

export interface RemoteArchive {
  readonly bucket: string;
  /** Empty, or ends in a slash. */
  readonly prefix: string;
  /** `null` when a place of archives was named and none of them. */
  readonly name: string | null;
}

/** `null` for what is no place in a bucket. Throws an `OptionValueError` for what looks like one and is none. */
export function parseRemoteArchive(text: string): RemoteArchive | null {
  if (!/^s3:/i.test(text)) return null;
  const { bucket, prefix } = parseBucket(text);
  const [, folder = "", name] = prefix.match(/^((?:.*\/)?)([^/]+\.tar\.zst)\/$/) ?? [];
  if (name === undefined || text.endsWith("/")) return { bucket, prefix, name: null };
  return { bucket, prefix: folder, name };
}

/**
 * Downloads it into an empty folder and gives its path. Throws a `StartError` that names the newest archives there when it
 * is not one of them, and when the bucket cannot be read.
 */
export async function fetchArchive(
  { name }: Pick<RemoteArchive, "name">,
  { place, folder }: { readonly place: BucketPlace; readonly folder: string },
): Promise<string> {
  await requireNetwork(place);
  const { Bucket, bucketReason } = await import("../kit/bucket.ts");
  const { downloadArchive } = await import("../ops/backups/bucket_archives.ts");
  using bucket = new Bucket(place, { requestMs: opsLimits.bucketRequestMs });
  const at = `s3://${place.bucket}/${place.prefix}`;
  try {
    const path = join(folder, name ?? "");
    if (name !== null && await downloadArchive(bucket, { name, path })) return path;
    const missing = name === null ? `"${at}" is no archive` : `There is no archive "${name}" in ${at}`;
    throw new StartError(`${missing}. ${await choice(bucket, at)}`);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`Cannot get "${at}${name ?? ""}": ${bucketReason(error)}. Nothing has changed`, {
      cause: error,
    });
  }
}

async function choice(bucket: Bucket, at: string): Promise<string> {
  const { newestArchives } = await import("../ops/backups/bucket_archives.ts");
  const newest = await newestArchives(bucket);
  if (newest.length === 0) return "There are no archives there: look at the bucket and the prefix";
  const lines = newest.map(({ name, size, writtenAt }) =>
    `  ${at}${name}  ${size} bytes, written ${new Date(writtenAt).toISOString()}`
  );
  return `The newest there:\n${lines.join("\n")}`;
}

/** The task `restore` has no network: for a file it needs none. */
export async function requireNetwork({ endpoint }: BucketPlace): Promise<void> {
  const all = await Deno.permissions.query({ name: "net" });
  if (all.state === "granted") return;
  const host = endpoint === null ? null : new URL(endpoint).host;
  if (host !== null && (await Deno.permissions.query({ name: "net", host })).state === "granted") return;
  throw new StartError(
    "Archives in a bucket need the network, which this command has no permission for: use deno task restore:remote",
  );
}
