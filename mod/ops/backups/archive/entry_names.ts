/** Names of archive entries, which correspond to paths in a data folder. */
import { opsLimits } from "../../limits.ts";
import type { ArchivePart } from "./manifest.ts";

export const archiveNames = {
  manifest: "manifest.json",
  checksums: "checksums.json",
  database: "data.db",
  log: "logs.db",
  secret: "auth_secret.key",
  /** Prefix of stored files. */
  files: "storage/",
} as const;

/** A path without leading dots, so neither `.` nor `..`, and without characters that file systems interpret. */
const STORAGE_NAME = /^storage(?:\/[0-9A-Za-z_-][0-9A-Za-z_.-]*){1,4}$/;

/** Returns the part an entry belongs to; `null` for invalid names. */
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
