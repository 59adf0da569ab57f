/**
 * Files, marker and errors of a restore. `restore-staged/` has the archive in a random folder, and the marker whose writing
 * stages it.
 */
import { join } from "node:path";
import { z } from "zod";
import { removeIfThere, syncFolder, writeDurably } from "../../../kit/durable_files.ts";
import { archiveNames } from "../archive/entry_names.ts";
import type { ArchivePart } from "../archive/mod.ts";

export const STAGED_FOLDER = "restore-staged";
/** The marker, which exists from staging until the end of the restore and has the plan of the swap. */
export const MARKER_FILE = "pending-restore.json";
/** Prefix of folders for replaced files, followed by the time of the restore. */
export const KEPT_PREFIX = "pre-restore-";

/** File or folder of each part, in the order in which they are swapped. */
export const nameOfPart: Readonly<Record<ArchivePart, string>> = {
  database: archiveNames.database,
  log: archiveNames.log,
  files: archiveNames.files.replace(/\/$/, ""),
  secret: archiveNames.secret,
};

/** The database comes first: while it has not moved, nothing has. */
export function partsInOrder(parts: readonly ArchivePart[]): readonly ArchivePart[] {
  return (Object.keys(nameOfPart) as ArchivePart[]).filter((part) => parts.includes(part));
}

/** SQLite's files beside a database. Beside another database they would corrupt it. */
export function besideDatabase(name: string): readonly string[] {
  return name.endsWith(".db") ? [`${name}-wal`, `${name}-shm`, `${name}-journal`] : [];
}

export function stagedFolder(dataDir: string): string {
  return join(dataDir, STAGED_FOLDER);
}

/** Acquires the staging lock; the kernel releases it with the process. `null` if it is held or there is no folder. */
export async function acquireStagingLock(dataDir: string): Promise<Disposable | null> {
  let folder: Deno.FsFile;
  try {
    folder = await Deno.open(stagedFolder(dataDir));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  if (await folder.tryLock(true) && await isStill(folder, stagedFolder(dataDir))) return folder;
  folder.close();
  return null;
}

/** Whether an open folder is still at its path: a previous holder may have removed it. */
async function isStill(folder: Deno.FsFile, path: string): Promise<boolean> {
  try {
    const [held, there] = await Promise.all([folder.stat(), Deno.stat(path)]);
    return held.ino === there.ino && held.dev === there.dev;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Removes leftovers of crashes: everything except the marker and its folder. Requires the staging lock. */
export async function removeLeftovers(
  dataDir: string,
  { keep }: { readonly keep: string | null },
): Promise<void> {
  const staged = stagedFolder(dataDir);
  for await (const { name } of Deno.readDir(staged)) {
    if (name !== MARKER_FILE && name !== keep) await removeIfThere(join(staged, name));
  }
}

/** Removes `restore-staged/` if it is empty. */
export async function removeStagedFolderIfEmpty(dataDir: string): Promise<void> {
  try {
    await Deno.remove(stagedFolder(dataDir));
  } catch {
    // Not empty: in use, or removed next time.
    return;
  }
  await syncFolder(dataDir);
}

/** Cause of a failed restore: the archive, lack of disk space, or the server. */
export type RestoreFailureCause = "archive" | "room" | "server";

/** Errors of restores, shown to operators and administrators. */
export class RestoreError extends Error {
  override readonly name = "RestoreError";
  readonly fault: RestoreFailureCause;

  constructor(
    message: string,
    { fault = "server", cause }: { readonly fault?: RestoreFailureCause; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.fault = fault;
  }
}

/** A staged restore, applied at the next start. */
export interface StagedRestore {
  /** Creation time of the backup, ISO 8601. */
  readonly createdAt: string;
  /** Time of staging, ISO 8601. */
  readonly stagedAt: string;
  /** Newest commit of the backup. */
  readonly ts: number;
  readonly tables: number;
  readonly documents: number;
  readonly parts: ArchivePart[];
  /** Display name of the archive. */
  readonly source: string;
}

const part = z.enum(["database", "log", "files", "secret"] satisfies ArchivePart[]);
const moveShape = z.strictObject({ from: z.string(), to: z.string() });

const FORMAT = 1;

const markerShape = z.strictObject({
  format: z.literal(FORMAT),
  createdAt: z.iso.datetime(),
  stagedAt: z.iso.datetime(),
  ts: z.int().min(0),
  tables: z.int().min(0),
  documents: z.int().min(0),
  parts: z.array(part),
  source: z.string(),
  /** Folder of the unpacked archive, beside the marker. */
  folder: z.string().regex(/^[0-9a-f]+$/),
  /** Sizes of the single-file parts, by name in that folder. */
  sizes: z.record(z.string(), z.int().min(0)),
  /** `null` until it is applied. */
  swap: z.strictObject({
    /** Folder for replaced files, in the data folder. */
    keptIn: z.string(),
    /** Renames in order, with paths relative to the data folder. */
    moves: z.array(moveShape),
    /** `back` if canceled after the swap had started. */
    direction: z.enum(["in", "back"]),
  }).nullable(),
});

export type RestoreMarker = z.infer<typeof markerShape>;
export type Swap = NonNullable<RestoreMarker["swap"]>;
export type Move = z.infer<typeof moveShape>;

/** Reads the marker of a data folder; `null` if nothing is staged. Throws a `RestoreError` if it is unreadable. */
export async function readMarker(dataDir: string): Promise<RestoreMarker | null> {
  const path = join(stagedFolder(dataDir), MARKER_FILE);
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
    return markerShape.parse(value);
  } catch (cause) {
    if ([undefined, FORMAT].includes(formatOf(value))) throw new BrokenMarkerError(path, { cause });
    throw new RestoreError(
      `Cannot read "${path}": it was written by another version of the server. Use that version`,
      { cause },
    );
  }
}

/** The marker is damaged or was edited. */
export class BrokenMarkerError extends RestoreError {
  constructor(path: string, { cause }: { readonly cause: unknown }) {
    super(`Cannot read "${path}": it was damaged or edited`, { cause });
  }
}

function formatOf(value: unknown): number | undefined {
  const format = typeof value === "object" && value !== null && "format" in value ? value.format : undefined;
  return typeof format === "number" ? format : undefined;
}

/** Replaces the marker durably. */
export async function writeMarker(dataDir: string, marker: RestoreMarker): Promise<void> {
  await writeDurably(join(stagedFolder(dataDir), MARKER_FILE), `${JSON.stringify(marker, null, 2)}\n`);
}

/** Unstages the restore. */
export async function removeMarker(dataDir: string): Promise<void> {
  await Deno.remove(join(stagedFolder(dataDir), MARKER_FILE));
  await syncFolder(stagedFolder(dataDir));
}

/** Returns the staged restore, or `null`. */
export async function stagedRestore(dataDir: string): Promise<StagedRestore | null> {
  const marker = await readMarker(dataDir);
  return marker === null ? null : restoreOf(marker);
}

/** Returns the path of the staged restore's database, or `null`. */
export async function stagedDatabase(dataDir: string): Promise<string | null> {
  const marker = await readMarker(dataDir);
  return marker === null ? null : join(stagedFolder(dataDir), marker.folder, nameOfPart.database);
}

/** Public part of a marker. */
export function restoreOf(marker: RestoreMarker): StagedRestore {
  const { createdAt, stagedAt, ts, tables, documents, parts, source } = marker;
  return { createdAt, stagedAt, ts, tables, documents, parts, source };
}
