/** The manifest, the first entry of an archive. */
import { z } from "zod";
import { ArchiveError } from "./frames.ts";

/** Increased for formats that older versions cannot read. */
export const ARCHIVE_FORMAT = 1;

const parts = ["database", "log", "files", "secret"] as const;

export type ArchivePart = (typeof parts)[number];

const manifestShape = z.object({
  format: z.literal(ARCHIVE_FORMAT),
  createdAt: z.iso.datetime(),
  ts: z.int().min(0),
  syncline: z.string().max(100),
  parts: z.array(z.enum(parts)).max(parts.length)
    .refine((given) => new Set(given).size === given.length && given.includes("database")),
});

export interface ArchiveManifest {
  format: typeof ARCHIVE_FORMAT;
  /** ISO 8601, in UTC. */
  createdAt: string;
  /** Timestamp of the newest commit in the database. */
  ts: number;
  /** Version of the program that created the archive. */
  syncline: string;
  parts: ArchivePart[];
}

/** Parses a manifest. Throws an `ArchiveError` if it is invalid or of a newer format. */
export function parseManifest(bytes: Uint8Array): ArchiveManifest {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new ArchiveError("The archive is damaged: its manifest is not JSON", { cause });
  }
  const { format, syncline } = (typeof value === "object" && value !== null ? value : {}) as {
    readonly format?: unknown;
    readonly syncline?: unknown;
  };
  if (typeof format === "number" && format > ARCHIVE_FORMAT) {
    const version = typeof syncline === "string" ? ` (${syncline.slice(0, 100)})` : "";
    throw new ArchiveError(
      `This archive was created by a newer version${version} in format ${format}; this version supports format ` +
        `${ARCHIVE_FORMAT}. Use the newer version`,
    );
  }
  const parsed = manifestShape.safeParse(value);
  if (!parsed.success) {
    throw new ArchiveError("The archive is damaged: its manifest is invalid", {
      cause: parsed.error,
    });
  }
  return parsed.data;
}
