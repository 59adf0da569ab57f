/**
 * Commit entries between writer and main, and in the kept group: the same facts in few characters. Every index key of a
 * document ends in its key by creation time, which ends in its id, so each is sent as what stands before that.
 */
import type { CommitEntry, DocumentChange, KeyChange } from "../engine/types.ts";

/** `[ts, at, changes]`. */
export type WireEntry = readonly [ts: number, at: number, changes: readonly WireChange[]];

/**
 * One document's change. `tail` is its key by creation time without the id; `doc` is there where main wants the contents.
 */
export type WireChange = readonly [
  table: string,
  tableNumber: number,
  id: string,
  tail: string,
  keys: readonly WireKey[],
  doc?: string | null,
];

/**
 * A key space with the key before and after; one key means that it has not changed, `null` that there was or is none.
 * An empty key is the id; one that begins with `-` goes on with tail and id; one that begins with `=` is whole.
 */
export type WireKey = readonly [space: string, before: string | null, after?: string | null];

/** An entry as it travels. Documents of the app's tables stay behind: nobody in main reads them. */
export function packEntry({ ts, at, changes }: CommitEntry): WireEntry {
  return [ts, at, changes.map(packChange)];
}

/** The entry that was packed. */
export function unpackEntry([ts, at, changes]: WireEntry): CommitEntry {
  return { ts, at, changes: changes.map(unpackChange) };
}

function packChange({ table, tableNumber, id, keys, doc }: DocumentChange): WireChange {
  const byCreation = keyEndingIn(id, keys);
  const tail = byCreation.slice(0, byCreation.length - id.length);
  const packed = keys.map(([space, before, after]): WireKey =>
    before === after
      ? [space, packKey(before, { id, byCreation })]
      : [space, packKey(before, { id, byCreation }), packKey(after, { id, byCreation })]
  );
  return table.startsWith("_") && doc !== undefined
    ? [table, tableNumber, id, tail, packed, doc]
    : [table, tableNumber, id, tail, packed];
}

/** The shortest key that ends in the id and is longer than it: the key by creation time. */
function keyEndingIn(id: string, keys: readonly KeyChange[]): string {
  let shortest = "";
  for (const [, before, after] of keys) {
    const key = after ?? before ?? "";
    if (key.length > id.length && key.endsWith(id) && (shortest === "" || key.length < shortest.length)) {
      shortest = key;
    }
  }
  return shortest === "" ? id : shortest;
}

interface OwnKeys {
  readonly id: string;
  readonly byCreation: string;
}

function packKey(key: string | null, { id, byCreation }: OwnKeys): string | null {
  if (key === null) return null;
  if (key === id) return "";
  return key.endsWith(byCreation) ? `-${key.slice(0, key.length - byCreation.length)}` : `=${key}`;
}

function unpackChange([table, tableNumber, id, tail, keys, doc]: WireChange): DocumentChange {
  const own: OwnKeys = { id, byCreation: tail + id };
  const unpacked = keys.map((key): KeyChange => {
    const before = unpackKey(key[1], own);
    return [key[0], before, key[2] === undefined ? before : unpackKey(key[2], own)];
  });
  return { table, tableNumber, id, keys: unpacked, ...(doc === undefined ? {} : { doc }) };
}

function unpackKey(key: string | null, { id, byCreation }: OwnKeys): string | null {
  if (key === null) return null;
  if (key === "") return id;
  return key.startsWith("-") ? key.slice(1) + byCreation : key.slice(1);
}
