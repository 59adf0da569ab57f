/** Writes archives. */
import { createTarPacker, type TarPackController } from "modern-tar";
import { Checksums } from "./checksums.ts";
import { archiveNames, partOf } from "./entry_names.ts";
import { packFrames } from "./frames.ts";
import type { ArchiveManifest } from "./manifest.ts";

export interface ArchiveEntry {
  /** Path in a data folder, such as `data.db` or `storage/ab/abcd`. */
  name: string;
  /** Bytes. */
  size: number;
  /** Opens the contents, exactly `size` bytes. */
  open(): Promise<ReadableStream<Uint8Array>>;
}

/**
 * Writes an archive and closes `target`. On failure `target` is aborted and the call rejects with the same error. Entries are
 * read one after another, each once. Returns the archive's size. Throws a `TypeError` for an invalid entry name or a part
 * missing in the manifest, an `Error` for an entry of the wrong length, and an `ArchiveError` for too many entries.
 */
export async function writeArchive(
  target: WritableStream<Uint8Array>,
  manifest: ArchiveManifest,
  entries: AsyncIterable<ArchiveEntry>,
  /** Called with the bytes of files as they are added. */
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

/** Returns the number of bytes written. */
async function writeFrames(
  tar: ReadableStream<Uint8Array>,
  target: WritableStream<Uint8Array>,
): Promise<number> {
  const writer = target.getWriter();
  // A failed write also fails the next one, or the close.
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
    // Both ends fail with the same error.
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
    // Without pipes, which cost more than the rest for small files.
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
        `Cannot archive "${entry.name}": it belongs to none of ${manifest.parts.join(", ")}`,
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
