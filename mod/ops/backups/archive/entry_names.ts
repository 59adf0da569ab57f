/** What may lie in an archive, by name. Names say where a file belongs in a data folder. */
import { opsLimits } from "../../limits.ts";
import type { ArchivePart } from "./manifest.ts";

/** Names of the entries of which there is at most one. */
export const archiveNames = {
  /** What the archive holds; its first entry. */
  manifest: "manifest.json",
  /** Sizes and sums of all other entries; its last. */
  checksums: "checksums.json",
  database: "data.db",
  log: "logs.db",
  secret: "auth_secret.key",
  /** Files of the storage lie below this. */
  files: "storage/",
} as const;

/** One file or folder: no dot in front, so neither `.` nor `..`, and nothing that a file system could read otherwise. */
const STORAGE_NAME = /^storage(?:\/[0-9A-Za-z_-][0-9A-Za-z_.-]*){1,4}$/;

/** The part that an entry belongs to; `null` for a name that no entry with contents has. */
export function partOf(name: string): ArchivePart | null {
  switch (name) {
    case archiveNames.database:
      return "database";
    case archiveNames.log:
      return "log";
    case archiveNames.secret:
      return "secret";
    default:
      return name.length <= opsLimits.archiveNameCharsMax && STORAGE_NAME.test(name) ? "files" : null;
  }
}
