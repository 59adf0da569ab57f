/**
 * Compact encoding of commit entries between writer and main, and in the stored group. Data shared by the changes of a table is
 * sent once per group. Every index key of a document ends with its creation-time key, which ends with its id, so only the
 * prefix of each key is sent.
 */
import type { CommitEntry, DocumentChange, KeyChange, KeySpace } from "../../engine/types.ts";

/** A table with changed documents, and its key spaces whose keys end in the id: ids first, then field indexes. */
export type WireTable = readonly [name: string, number: number, spaces: readonly KeySpace[]];

/** `[ts, at, changes]`. */
export type WireEntry = readonly [ts: number, at: number, changes: readonly WireChange[]];

/** A changed document: `table` is its position in the group, `tail` its new time key. Omitted keys are unchanged. */
export type WireChange = readonly [
  table: number,
  id: string,
  tail: string,
  before: WireKeys | null,
  after?: WireKeys | null,
  more?: WireChangeMore,
];

/** Key prefixes before the creation-time key, per key space except ids. `null` without a document. */
export type WireKeys = readonly string[];

/** Rarely used fields. */
export interface WireChangeMore {
  /** Document contents, if main needs them. `null` for a deleted document. */
  readonly doc?: string | null;
  /** The previous `tail`, if it changed: an import may change a creation time. */
  readonly oldTail?: string;
  /** Changes in key spaces of other index types. */
  readonly others?: readonly KeyChange[];
}

export interface WireEntries {
  readonly tables: readonly WireTable[];
  readonly entries: readonly WireEntry[];
}

/** Packs the entries of a group, without documents of app tables, which main does not read. */
export class EntryPacker implements WireEntries {
  readonly tables: WireTable[] = [];
  readonly entries: WireEntry[] = [];
  readonly #positions = new Map<number, number>();

  add({ ts, at, changes }: CommitEntry): void {
    this.entries.push([ts, at, changes.map((change) => this.#pack(change))]);
  }

  #pack({ table, tableNumber, id, keys, doc }: DocumentChange): WireChange {
    let position = this.#positions.get(tableNumber);
    if (position === undefined) {
      const spaces = keys.map(([space]) => space).filter(endsInId);
      position = this.tables.push([table, tableNumber, spaces]) - 1;
      this.#positions.set(tableNumber, position);
    }
    // The first field index of every table is the one by creation time.
    const [, byCreation] = keys;
    const createdAfter = byCreation?.[2] ?? byCreation?.[1] ?? id;
    const createdBefore = byCreation?.[1] ?? createdAfter;
    const before = packKeys(keys, { side: 1, created: createdBefore });
    const after = packKeys(keys, { side: 2, created: createdAfter });
    const tail = createdAfter.slice(0, createdAfter.length - id.length);
    const others = keys.filter(([space]) => !endsInId(space));
    const wantsDoc = table.startsWith("_") && doc !== undefined;
    const recreated = createdBefore !== createdAfter;
    if (wantsDoc || recreated || others.length > 0) {
      const more: WireChangeMore = {
        ...(wantsDoc ? { doc } : {}),
        ...(recreated ? { oldTail: createdBefore.slice(0, createdBefore.length - id.length) } : {}),
        ...(others.length > 0 ? { others } : {}),
      };
      return [position, id, tail, before, after, more];
    }
    return sameKeys(before, after) ? [position, id, tail, before] : [position, id, tail, before, after];
  }
}

/** Unpacks entries. @throws RangeError for a change of an unknown table. */
export function unpackEntries({ tables, entries }: WireEntries): CommitEntry[] {
  return entries.map(([ts, at, changes]) => ({
    ts,
    at,
    changes: changes.map((change) => unpackChange(tables, change)),
  }));
}

function unpackChange(
  tables: readonly WireTable[],
  [position, id, tail, before, after, more]: WireChange,
): DocumentChange {
  const table = tables[position];
  if (table === undefined) throw new RangeError(`A change names table ${position} of ${tables.length}`);
  const [name, tableNumber, spaces] = table;
  const created = tail + id;
  const createdBefore = (more?.oldTail ?? tail) + id;
  const now = after === undefined ? before : after;
  const keys = spaces.map((space, index): KeyChange =>
    index === 0
      ? [space, before === null ? null : id, now === null ? null : id]
      : [space, unpackKey(before, { index, created: createdBefore }), unpackKey(now, { index, created })]
  );
  if (more?.others !== undefined) keys.push(...more.others);
  return { table: name, tableNumber, id, keys, ...(more?.doc === undefined ? {} : { doc: more.doc }) };
}

function unpackKey(
  keys: WireKeys | null,
  { index, created }: { readonly index: number; readonly created: string },
): string | null {
  return keys === null ? null : (keys[index - 1] ?? "") + created;
}

/**
 * Keys of search and vector indexes do not end in the id: such an index has one key for all documents. Aggregates report the
 * keys of changed entries only.
 */
function endsInId(space: KeySpace): boolean {
  return !space.startsWith("s");
}

function packKeys(
  keys: readonly KeyChange[],
  { side, created }: { readonly side: 1 | 2; readonly created: string },
): WireKeys | null {
  const packed: string[] = [];
  for (let index = 1; index < keys.length; index++) {
    const change = keys[index];
    if (change === undefined || !endsInId(change[0])) break;
    const key = change[side];
    if (key === null) return null;
    packed.push(key.slice(0, key.length - created.length));
  }
  // Without field indexes, only the id space shows whether the document exists.
  return keys[0]?.[side] === null ? null : packed;
}

function sameKeys(a: WireKeys | null, b: WireKeys | null): boolean {
  if (a === null || b === null) return a === b;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}
