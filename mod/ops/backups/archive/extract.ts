/** Unpacks and verifies archives. */
import { dirname, join } from "node:path";
import { isDiskFull, removeIfThere, syncFolder, writeAll } from "../../../kit/durable_files.ts";
import { hasDiskSpace } from "../../new_file.ts";
import { ArchiveError, UnpackSpaceError } from "./frames.ts";
import { Checksums, compareSums } from "./checksums.ts";
import { archiveNames, partOf } from "./entry_names.ts";
import type { ArchiveManifest } from "./manifest.ts";
import { firstEntry } from "./read_manifest.ts";
import { type TarFile, TarReader, wholeEntry } from "./tar_reader.ts";

/**
 * Unpacks an archive into a new folder. On success the folder contains `data.db` and the other parts of the manifest, with
 * verified checksums and synced (files with mode 0600, folders 0700; without manifest and checksums). On failure the folder is
 * removed. Throws an `ArchiveError` for an unusable archive, an `UnpackSpaceError` if the disk lacks space, and I/O errors.
 */
export async function extractArchive(
  source: ReadableStream<Uint8Array>,
  folder: string,
): Promise<ArchiveManifest> {
  await using reader = new TarReader(source);
  await Deno.mkdir(folder, { mode: 0o700 });
  try {
    const manifest = await extractAll(reader, folder);
    await syncFolder(folder);
    await syncFolder(dirname(folder));
    return manifest;
  } catch (error) {
    await removeIfThere(folder);
    throw error;
  }
}

async function extractAll(reader: TarReader, folder: string): Promise<ArchiveManifest> {
  const checksums = new Checksums();
  const { manifest, bytes } = await firstEntry(reader);
  const sum = checksums.begin(archiveNames.manifest);
  sum.take(bytes);
  sum.end();
  const folders = new Set<string>();
  const found = new Set<string>();
  for (;;) {
    const entry = await reader.next();
    if (entry === null) throw new ArchiveError("The archive is damaged: its checksums are missing");
    if (entry.name === archiveNames.checksums) {
      await checkSums(entry, checksums.text());
      break;
    }
    const part = partOf(entry.name);
    if (part === null || !manifest.parts.includes(part)) {
      throw new ArchiveError(`The archive contains an unexpected file ${JSON.stringify(entry.name)}`);
    }
    found.add(part);
    const path = join(folder, entry.name);
    await makeFolders(dirname(entry.name), { folder, folders });
    await extract(entry, { path, checksums });
  }
  if (await reader.next() !== null) {
    throw new ArchiveError("The archive is damaged: there are files after its checksums");
  }
  for (const part of manifest.parts) {
    if (part !== "files" && !found.has(part)) {
      throw new ArchiveError(`The archive is damaged: part "${part}" of its manifest is missing`);
    }
  }
  for (const made of [...folders].reverse()) await syncFolder(join(folder, made));
  return manifest;
}

async function checkSums(entry: TarFile, expected: string): Promise<void> {
  const bytesMax = new TextEncoder().encode(expected).length;
  if (entry.size !== bytesMax) {
    throw new ArchiveError("The archive is damaged: its checksum list does not match its files");
  }
  const listed = await wholeEntry(entry, { bytesMax });
  compareSums({ listed: new TextDecoder().decode(listed), found: expected });
}

/** Creates the parent folders of a file; `folders` caches created ones. */
async function makeFolders(
  name: string,
  { folder, folders }: { readonly folder: string; readonly folders: Set<string> },
): Promise<void> {
  if (name === "." || folders.has(name)) return;
  await makeFolders(dirname(name), { folder, folders });
  await creating(name, () => Deno.mkdir(join(folder, name), { mode: 0o700 }));
  folders.add(name);
}

async function extract(
  { name, size, body }: TarFile,
  { path, checksums }: { readonly path: string; readonly checksums: Checksums },
): Promise<void> {
  const sum = checksums.begin(name);
  if (!await hasDiskSpace(dirname(path), size)) throw noRoom(name);
  using file = await creating(name, () => Deno.open(path, { write: true, createNew: true, mode: 0o600 }));
  try {
    for await (const bytes of body) {
      sum.take(bytes);
      await writeAll(file, bytes);
    }
    await file.sync();
  } catch (error) {
    if (isDiskFull(error)) throw noRoom(name, error);
    throw error;
  }
  sum.end();
}

/** Reports names that the file system treats as equal, or a file where a folder is needed. */
async function creating<T>(name: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory) {
      throw new ArchiveError(`The archive contains "${name}", which conflicts with another of its files`, {
        cause: error,
      });
    }
    if (isDiskFull(error)) throw noRoom(name, error);
    throw error;
  }
}

function noRoom(name: string, cause?: unknown): UnpackSpaceError {
  return new UnpackSpaceError(
    `Not enough disk space to unpack "${name}" of the archive. Free disk space and try again`,
    { cause },
  );
}
