/** Writing an archive. */
import { createTarPacker, type TarPackController } from "modern-tar";
import { Checksums } from "./checksums.ts";
import { archiveNames, partOf } from "./entry_names.ts";
import { packFrames } from "./frames.ts";
import type { ArchiveManifest } from "./manifest.ts";

/** A file on its way into an archive. */
export interface ArchiveEntry {
  /** Where it belongs in a data folder, as `data.db` or `storage/ab/abcd`. */
  name: string;
  /** Bytes. */
  size: number;
  /** Gives its bytes, exactly `size` of them. */
  open(): Promise<ReadableStream<Uint8Array>>;
}

/**
 * Writes an archive and closes `target`; when anything fails, `target` is aborted with the reason and the call rejects with
 * it. Entries are read one after another, each once. `bytes`: size of the archive. Throws a `TypeError` for an entry whose
 * name cannot stand in an archive or whose part the manifest does not name, an `Error` for one that is not as long as said,
 * and an `ArchiveError` for too many.
 */
export async function writeArchive(
  target: WritableStream<Uint8Array>,
  manifest: ArchiveManifest,
  entries: AsyncIterable<ArchiveEntry>,
  /** Told of the bytes of files as they go in. */
  onBytes: (count: number) => void = () => {},
): Promise<{ bytes: number }> {
  const { readable, controller } = createTarPacker();
  const packed = putAll(controller, { manifest, entries, onBytes }).catch((error: unknown) => {
    controller.error(error);
    throw error;
  });
  const written = writeFrames(readable, target);
  const [put, end] = await Promise.allSettled([packed, written]);
  if (put.status === "rejected") throw put.reason;
  if (end.status === "rejected") throw end.reason;
  return { bytes: end.value };
}

/** Gives back how many bytes were written. */
async function writeFrames(
  tar: ReadableStream<Uint8Array>,
  target: WritableStream<Uint8Array>,
): Promise<number> {
  const writer = target.getWriter();
  // The failure of a write is also that of the next, or of closing.
  writer.closed.catch(() => {});
  let bytes = 0;
  try {
    for await (const frame of packFrames(tar.values({ preventCancel: true }))) {
      await writer.write(frame);
      bytes += frame.length;
    }
    await writer.close();
    return bytes;
  } catch (error) {
    // Both ends fail with the one reason.
    await tar.cancel(error).catch(() => {});
    await writer.abort(error).catch(() => {});
    throw error;
  }
}

async function putAll(
  controller: TarPackController,
  { manifest, entries, onBytes }: {
    readonly manifest: ArchiveManifest;
    readonly entries: AsyncIterable<ArchiveEntry>;
    readonly onBytes: (count: number) => void;
  },
): Promise<void> {
  const checksums = new Checksums();
  const mtime = new Date(manifest.createdAt);
  const put = async ({ name, size, open }: ArchiveEntry) => {
    const sum = checksums.begin(name);
    const body = controller.add({ name, size, mtime, mode: 0o600 }).getWriter();
    // Not through pipes: for a small file they cost more than the rest.
    for await (const chunk of await open()) {
      sum.take(chunk);
      await body.write(chunk);
      onBytes(chunk.length);
    }
    await body.close();
    sum.end();
  };
  await put(textEntry(archiveNames.manifest, `${JSON.stringify(manifest, null, 2)}\n`));
  for await (const entry of entries) {
    const part = partOf(entry.name);
    if (part === null || !manifest.parts.includes(part)) {
      throw new TypeError(
        `Cannot put "${entry.name}" into the archive: it is none of ${manifest.parts.join(", ")}`,
      );
    }
    await put(entry);
  }
  await put(textEntry(archiveNames.checksums, checksums.text()));
  controller.finalize();
}

function textEntry(name: string, text: string): ArchiveEntry {
  const bytes = new TextEncoder().encode(text);
  return { name, size: bytes.length, open: () => Promise.resolve(new Blob([bytes]).stream()) };
}
