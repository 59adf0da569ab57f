/** Writing an archive. */
import { createTarPacker, type TarPackController } from "modern-tar";
import { Checksums } from "./checksums.ts";
import { archiveNames, partOf } from "./entry_names.ts";
import { framePacker } from "./frames.ts";
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
): Promise<{ bytes: number }> {
  const { readable, controller } = createTarPacker();
  let bytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, out) {
      bytes += chunk.length;
      out.enqueue(chunk);
    },
  });
  const packed = putAll(controller, manifest, entries).catch((error: unknown) => {
    controller.error(error);
    throw error;
  });
  const written = readable.pipeThrough(framePacker()).pipeThrough(counter).pipeTo(target);
  const ends = await Promise.allSettled([packed, written]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return { bytes };
}

async function putAll(
  controller: TarPackController,
  manifest: ArchiveManifest,
  entries: AsyncIterable<ArchiveEntry>,
): Promise<void> {
  const checksums = new Checksums();
  const mtime = new Date(manifest.createdAt);
  const put = async ({ name, size, open }: ArchiveEntry) => {
    const sum = checksums.begin(name);
    const body = controller.add({ name, size, mtime, mode: 0o600 });
    const summed = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, out) {
        sum.take(chunk);
        out.enqueue(chunk);
      },
    });
    await (await open()).pipeThrough(summed).pipeTo(body);
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
