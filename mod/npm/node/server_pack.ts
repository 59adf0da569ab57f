/** Unpacks the server's files, which the package contains as one file. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { ensureComplete, type FileEntry } from "./whole_folder.ts";

/**
 * The JSON of the first line of the decompressed pack: paths with slashes, and sizes in bytes. The contents follow in the same
 * order.
 */
export type PackIndex = readonly (readonly [path: string, bytes: number])[];

const LF = 0x0a;
/** Length of a pack's id in characters. */
const ID_CHARS = 16;

export function packId(hash: string): string {
  return hash.slice(0, ID_CHARS);
}

/** Unpacks the pack with this id into a folder, unless it exists. Throws if the pack is incomplete. */
export function unpack(pack: string, { folder, id }: { readonly folder: string; readonly id: string }): void {
  let read: Uint8Array | null = null;
  ensureComplete(folder, () => contents(read ??= checked(pack, id)));
}

function checked(pack: string, id: string): Uint8Array {
  const read = readFileSync(pack);
  try {
    const bytes = brotliDecompressSync(read);
    if (packId(createHash("sha256").update(bytes).digest("hex")) === id) return bytes;
  } catch {
    // Not compressed data: damaged as well.
  }
  throw new Error(`${pack} is damaged: reinstall the package`);
}

function* contents(pack: Uint8Array): Generator<FileEntry, void, void> {
  let at = pack.indexOf(LF) + 1;
  const index = JSON.parse(new TextDecoder().decode(pack.subarray(0, at))) as PackIndex;
  for (const [path, size] of index) yield [path, pack.subarray(at, at += size)];
}
