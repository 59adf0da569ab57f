/** Finds and downloads an archive from a bucket for the command `restore`. */
import { join } from "node:path";
import type { BucketLocation, ObjectInfo } from "../kit/locations/object_store.ts";
import { openStore } from "../kit/locations/open_store.ts";
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

/** Downloads an archive and returns its path. Throws a `StartError`; a missing archive's lists the newest ones. */
export async function fetchArchive(
  { name }: Pick<RemoteArchive, "name">,
  { location, folder }: { readonly location: BucketLocation; readonly folder: string },
): Promise<string> {
  await requireNetwork(location);
  const { downloadArchive, newestArchives } = await import("../ops/backups/stored_archives.ts");
  await using store = await openStore({ kind: "bucket", bucket: location });
  const at = store.location;
  try {
    const path = join(folder, name ?? "");
    if (name !== null && await downloadArchive(store, { name, path })) return path;
    const missing = name === null ? `"${at}" is not an archive` : `Archive "${name}" does not exist in ${at}`;
    throw new StartError(`${missing}. ${choice(await newestArchives(store), at)}`);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`Cannot download "${at}${name ?? ""}": ${reason}. Nothing has changed`, {
      cause: error,
    });
  }
}

function choice(newest: readonly ObjectInfo[], at: string): string {
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
