/** The server's files, which the package carries as one file. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type FileEntry, makeWhole } from "./whole_folder.ts";

/** The first line of the file as JSON: paths with slashes, and sizes in bytes. The contents follow in this order. */
export type PackIndex = readonly (readonly [path: string, bytes: number])[];

const LF = 0x0a;
/** Characters of the hash that are a pack's id. */
const ID_CHARS = 16;

export function packId(hash: string): string {
  return hash.slice(0, ID_CHARS);
}

/** Makes a folder of the pack with this id, unless it is there. Throws for a pack that is not whole. */
export function unpack(pack: string, { folder, id }: { readonly folder: string; readonly id: string }): void {
  let read: Uint8Array | null = null;
  makeWhole(folder, () => contents(read ??= checked(pack, id)));
}

function checked(pack: string, id: string): Uint8Array {
  const bytes = readFileSync(pack);
  if (packId(createHash("sha256").update(bytes).digest("hex")) === id) return bytes;
  throw new Error(`${pack} is damaged, install the package again`);
}

function* contents(pack: Uint8Array): Generator<FileEntry, void, void> {
  let at = pack.indexOf(LF) + 1;
  const index = JSON.parse(new TextDecoder().decode(pack.subarray(0, at))) as PackIndex;
  for (const [path, size] of index) yield [path, pack.subarray(at, at += size)];
}
