/** Archives with dummy contents. */
import { type ArchiveManifest, writeArchive } from "../../../mod/ops/backups/archive/mod.ts";

export interface TestArchive extends Partial<Pick<ArchiveManifest, "createdAt" | "ts">> {
  readonly bytes?: number;
}

/** Writes an archive to a file and returns its manifest. */
export async function writeTestArchive(
  path: string,
  { createdAt = "2030-01-01T00:00:00.000Z", ts = 7, bytes = 10_000 }: TestArchive = {},
): Promise<ArchiveManifest> {
  const manifest: ArchiveManifest = { format: 1, createdAt, ts, syncline: "0.1.0", parts: ["database"] };
  const contents = new Uint8Array(bytes).map((_, at) => at % 251);
  await using file = await Deno.open(path, { write: true, createNew: true });
  async function* entries() {
    yield { name: "data.db", size: bytes, open: () => Promise.resolve(new Blob([contents]).stream()) };
  }
  await writeArchive(file.writable, manifest, entries());
  return manifest;
}
