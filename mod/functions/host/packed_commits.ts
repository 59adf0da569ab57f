/** Serializes commit entries for other processes, as compactly as between writer and main. */
import type { CommitEntry } from "../../engine/types.ts";
import { EntryPacker, unpackEntries, type WireEntries } from "../wire/packed_entry.ts";

export function packedEntries(entries: readonly CommitEntry[]): string {
  const packer = new EntryPacker();
  for (const entry of entries) packer.add(entry);
  const { tables, entries: packed } = packer;
  return JSON.stringify({ tables, entries: packed });
}

/** Throws for malformed text. */
export function entriesOf(text: string): CommitEntry[] {
  return unpackEntries(JSON.parse(text) as WireEntries);
}
