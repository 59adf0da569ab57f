/** Finds and downloads an archive from a bucket for the command `restore`. */
import { join } from "node:path";
import type { Bucket, BucketLocation } from "../kit/locations/bucket.ts";
import { opsLimits } from "../ops/limits.ts";
import { parseBucket } from "../config/option_types.ts";
import { StartError } from "../config/start_error.ts";

export interface RemoteArchive {
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  /** `null` if the URL names a location of archives instead of an archive. */
  readonly name: string | null;
}

/** Parses an `s3://` URL; returns `null` for other text. Throws an `OptionValueError` for an invalid URL. */
export function parseRemoteArchive(text: string): RemoteArchive | null {
  if (!/^s3:/i.test(text)) return null;
  const { bucket, prefix } = parseBucket(text);
  const [, folder = "", name] = prefix.match(/^((?:.*\/)?)([^/]+\.tar\.zst)\/$/) ?? [];
  if (name === undefined || text.endsWith("/")) return { bucket, prefix, name: null };
  return { bucket, prefix: folder, name };
}

/**
 * Downloads an archive into an empty folder and returns its path. Throws a `StartError` if the bucket cannot be read or
 * does not contain the archive; the message lists the newest archives.
 */
export async function fetchArchive(
  { name }: Pick<RemoteArchive, "name">,
  { place: location, folder }: { readonly place: BucketLocation; readonly folder: string },
): Promise<string> {
  await requireNetwork(location);
  const { Bucket, bucketReason } = await import("../kit/locations/bucket.ts");
  const { downloadArchive } = await import("../ops/backups/bucket_archives.ts");
  using bucket = new Bucket(location, { requestMs: opsLimits.bucketRequestMs });
  const at = `s3://${location.bucket}/${location.prefix}`;
  try {
    const path = join(folder, name ?? "");
    if (name !== null && await downloadArchive(bucket, { name, path })) return path;
    const missing = name === null ? `"${at}" is not an archive` : `Archive "${name}" does not exist in ${at}`;
    throw new StartError(`${missing}. ${await choice(bucket, at)}`);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `Cannot download "${at}${name ?? ""}": ${bucketReason(error)}. Nothing has changed`,
      {
        cause: error,
      },
    );
  }
}

async function choice(bucket: Bucket, at: string): Promise<string> {
  const { newestArchives } = await import("../ops/backups/bucket_archives.ts");
  const newest = await newestArchives(bucket);
  if (newest.length === 0) return "The location contains no archives: check the bucket and the prefix";
  const lines = newest.map(({ name, size, writtenAt }) =>
    `  ${at}${name}  ${size} bytes, written ${new Date(writtenAt).toISOString()}`
  );
  return `The newest archives:\n${lines.join("\n")}`;
}

/** Checks for network permission: the task `restore` has none. Throws a `StartError`. */
export async function requireNetwork({ endpoint }: BucketLocation): Promise<void> {
  const all = await Deno.permissions.query({ name: "net" });
  if (all.state === "granted") return;
  const host = endpoint === null ? null : new URL(endpoint).host;
  if (host !== null && (await Deno.permissions.query({ name: "net", host })).state === "granted") return;
  throw new StartError(
    "Restoring from a bucket needs network permission, which this task does not have: use deno task restore:remote",
    { code: "restore" },
  );
}
