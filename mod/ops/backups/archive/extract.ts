/** Unpacking an archive into a folder: all that was asked for, checked, or nothing. */
import { dirname, join } from "node:path";
import { isDiskFull, removeIfThere, syncFolder, writeAll } from "../../../kit/durable_files.ts";
import { hasRoom } from "../../disk_room.ts";
import { ArchiveError, UnpackRoomError } from "./archive_error.ts";
import { Checksums, compareSums } from "./checksums.ts";
import { archiveNames, partOf } from "./entry_names.ts";
import type { ArchiveManifest } from "./manifest.ts";
import { firstEntry } from "./read_manifest.ts";
import { type TarFile, TarReader, wholeEntry } from "./tar_reader.ts";

/**
 * Unpacks an archive into a folder that is made by this call and must not be there before. When it returns, the folder
 * holds `data.db` and what else the manifest names, everything as its checksum says and on disk (files with mode 0600,
 * folders 0700; neither manifest nor checksums). When it throws, the folder is gone: an `ArchiveError` for an archive that
 * cannot be used, an `UnpackRoomError` when it does not fit on the disk, anything else for trouble with reading or writing.
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
    if (entry === null) throw new ArchiveError("The archive is damaged: it has no checksums");
    if (entry.name === archiveNames.checksums) {
      await checkSums(entry, checksums.text());
      break;
    }
    const part = partOf(entry.name);
    if (part === null || !manifest.parts.includes(part)) {
      throw new ArchiveError(`The archive holds ${JSON.stringify(entry.name)}, which does not belong there`);
    }
    found.add(part);
    const path = join(folder, entry.name);
    await makeFolders(dirname(entry.name), { folder, folders });
    await extract(entry, { path, checksums });
  }
  if (await reader.next() !== null) {
    throw new ArchiveError("The archive is damaged: there are files behind its checksums");
  }
  for (const part of manifest.parts) {
    if (part !== "files" && !found.has(part)) {
      throw new ArchiveError(`The archive is damaged: its manifest names a part that is not there (${part})`);
    }
  }
  for (const made of [...folders].reverse()) await syncFolder(join(folder, made));
  return manifest;
}

async function checkSums(entry: TarFile, expected: string): Promise<void> {
  const bytesMax = new TextEncoder().encode(expected).length;
  if (entry.size !== bytesMax) {
    throw new ArchiveError("The archive is damaged: its list of checksums is not that of its files");
  }
  const listed = await wholeEntry(entry, { bytesMax });
  compareSums({ listed: new TextDecoder().decode(listed), found: expected });
}

/** Makes the folders above a file. Neighbours share theirs. */
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
  if (!await hasRoom(dirname(path), size)) throw noRoom(name);
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

/** Two names may be one for the file system, or one may stand where another needs a folder. */
async function creating<T>(name: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory) {
      throw new ArchiveError(`The archive holds "${name}" beside another file of that name`, {
        cause: error,
      });
    }
    if (isDiskFull(error)) throw noRoom(name, error);
    throw error;
  }
}

function noRoom(name: string, cause?: unknown): UnpackRoomError {
  return new UnpackRoomError(
    `There is no room on the disk to unpack "${name}" of the archive: free some, and try again`,
    { cause },
  );
}
