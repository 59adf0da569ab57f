/** Archives for tests, created from bytes in memory, with one violation where needed. */
import { createHash } from "node:crypto";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { packTar, type TarHeader } from "modern-tar";
import { packFrames } from "../../../mod/ops/backups/archive/frames.ts";
import {
  type ArchiveEntry,
  type ArchiveManifest,
  writeArchive,
} from "../../../mod/ops/backups/archive/mod.ts";

export const manifest: ArchiveManifest = {
  format: 1,
  createdAt: "2026-01-02T03:04:05.000Z",
  ts: 42,
  syncline: "0.1.0",
  parts: ["database", "files"],
};

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Entries of bytes. */
export async function* entriesOf(
  files: Readonly<Record<string, Uint8Array>>,
): AsyncGenerator<ArchiveEntry> {
  for (const [name, bytes] of Object.entries(files)) {
    yield { name, size: bytes.length, open: () => Promise.resolve(streamOf(bytes, 65_536)) };
  }
}

/** An archive as the product writes it. */
export async function archiveOf(
  files: Readonly<Record<string, Uint8Array>>,
  contents: ArchiveManifest = manifest,
): Promise<Uint8Array<ArrayBuffer>> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>();
  const [bytes] = await Promise.all([
    new Response(readable).bytes(),
    writeArchive(writable, contents, entriesOf(files)),
  ]);
  return bytes;
}

/** A tar entry of another program. */
export interface ForeignEntry extends Partial<TarHeader> {
  readonly name: string;
  readonly body?: string;
}

/** A tar of any entries, with valid checksums unless included, in frames like the product's. */
export async function foreignArchive(
  entries: readonly ForeignEntry[],
  { sums = true }: { readonly sums?: boolean } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const lines = entries.map(({ name, body = "" }) =>
    JSON.stringify({ name, size: body.length, sha256: createHash("sha256").update(body).digest("hex") })
  );
  const listed = sums ? [{ name: "checksums.json", body: `{"entries":[\n${lines.join(",\n")}\n]}\n` }] : [];
  return await packed(
    await packTar([...entries, ...listed].map(({ body = "", ...header }) => ({
      header: { ...header, size: body.length, mtime: new Date(0) },
      body,
    }))),
  );
}

/** Bytes in sealed frames. */
export async function packed(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const parts = await Array.fromAsync(packFrames(streamOf(bytes, 1 << 20)));
  return await new Blob(parts as Uint8Array<ArrayBuffer>[]).bytes();
}

/** Returns the start of an archive whose tar declares a database of a petabyte. */
export async function petabyteArchive(): Promise<Uint8Array<ArrayBuffer>> {
  const tar = new Uint8Array(zstdDecompressSync(await archiveOf({ "data.db": bytesOf("small") })));
  const header = tar.subarray(new TextDecoder("latin1").decode(tar).indexOf("data.db\0"));
  // In the binary format of large sizes.
  header.set([0x80, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0], 124);
  header.fill(0x20, 148, 156);
  const sum = header.subarray(0, 512).reduce((sum, byte) => sum + byte);
  header.set(bytesOf(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  return await packed(await new Blob([tar, new Uint8Array(8 << 20)]).bytes());
}

/** One frame of any size. */
export function frame(bytes: Uint8Array): Uint8Array {
  return zstdCompressSync(bytes, {
    params: { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_windowLog]: 20 },
  });
}

/** Bytes as a stream, in pieces. */
export function streamOf(bytes: Uint8Array, pieceBytes = 1000): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + pieceBytes));
      at += pieceBytes;
    },
  });
}
