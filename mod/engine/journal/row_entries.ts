/** Creates commit entries of applied rows. Index keys of most documents are unchanged, and computed on demand. */
import { EngineError } from "../errors.ts";
import { tableNumberOf } from "../documents/ids.ts";
import type { Path, StoredFields } from "../documents/system_fields.ts";
import { type FieldIndex, fieldKeys } from "../indexes/field_index.ts";
import type { CommitEntry, DocumentChange, KeyChange, KeySpace, UnchangedKeys } from "../types.ts";
import { type JournalRow, readRow, type RowChange } from "./journal_row.ts";

/** A table's key spaces, for computing keys of its documents. */
export interface AppliedTable {
  readonly name: string;
  readonly number: number;
  readonly space: KeySpace;
  readonly indexes: readonly { readonly space: KeySpace; readonly paths: readonly Path[] }[];
}

/** The effects of rows that are not in the rows themselves. */
export interface AppliedRows {
  /** Tables with changed documents. */
  readonly tables: readonly AppliedTable[];
  /** Keys around each change that may affect indexes, by document in row order: subscriptions may show any commit. */
  readonly changes: readonly DocumentChange[];
}

/** Throws an `EngineError` for rows that do not match. */
export function rowEntries(
  rows: readonly JournalRow[],
  { tables, changes }: AppliedRows,
): CommitEntry[] {
  const known = new Map(tables.map((table) => [table.number, new KeyMaker(table)]));
  const keysOf = new Map<string, Iterator<DocumentChange>>();
  for (const [id, ofOne] of Map.groupBy(changes, ({ id }) => id)) keysOf.set(id, ofOne.values());
  return rows.flatMap((row) => {
    const { commits } = readRow(row);
    const makerOf = (change: RowChange): KeyMaker => {
      const maker = known.get(tableNumberOf(change.id));
      if (maker === undefined) throw wrongRow(row, change);
      return maker;
    };
    const isUnchanged = (change: RowChange) => change.same && !makerOf(change).isRead;
    const unchangedCount = commits.reduce((sum, { changes }) => sum + changes.filter(isUnchanged).length, 0);
    // A substring keeps the whole body in memory.
    const chars = row.body.length / unchangedCount;
    return commits.map(({ ts, at, changes }): CommitEntry => ({
      ts,
      at,
      changes: changes.map((change) => {
        const maker = makerOf(change);
        if (change.same && change.text !== null) {
          return unchangedEntry(change, { maker, text: change.text, chars });
        }
        const next = keysOf.get(change.id)?.next().value as DocumentChange | undefined;
        if (next === undefined) throw wrongRow(row, change);
        return moved(change, { maker, keys: next.keys });
      }),
    }));
  });
}

/** Returns a change with unchanged index entries. Documents of the service's tables include their contents. */
function unchangedEntry(
  { id }: RowChange,
  { maker, text, chars }: { readonly maker: KeyMaker; readonly text: string; readonly chars: number },
): DocumentChange {
  const document = new UnchangedDocument(maker, { id, text, chars });
  if (!maker.isRead) return document;
  const { name: table, number: tableNumber } = maker.table;
  return { table, tableNumber, id, keys: document.keys, doc: text };
}

function moved(
  { id, text }: RowChange,
  { maker, keys }: { readonly maker: KeyMaker; readonly keys: readonly KeyChange[] },
): DocumentChange {
  const { name: table, number: tableNumber } = maker.table;
  return { table, tableNumber, id, keys, ...(maker.isRead && { doc: text }) };
}

function wrongRow({ seq }: JournalRow, { id }: RowChange): EngineError {
  return new EngineError(
    "bad_entry",
    `Row ${seq} has changed document "${id}", which is not in the reported changes`,
  );
}

/** Computes the keys of a table's documents. */
class KeyMaker {
  readonly table: AppliedTable;
  /** Whether it is a table of the service: listeners read its documents. */
  readonly isRead: boolean;
  readonly spaces: readonly KeySpace[];
  readonly #indexes: readonly Pick<FieldIndex, "name" | "paths">[];

  constructor(table: AppliedTable) {
    this.table = table;
    this.isRead = table.name.startsWith("_");
    this.spaces = [table.space, ...table.indexes.map(({ space }) => space)];
    this.#indexes = table.indexes.map(({ space, paths }) => ({ name: space, paths }));
  }

  keys(text: string): readonly string[] {
    return fieldKeys(this.#indexes, JSON.parse(text) as StoredFields);
  }
}

class UnchangedDocument implements DocumentChange, UnchangedKeys {
  readonly id: string;
  readonly chars: number;
  readonly #maker: KeyMaker;
  readonly #text: string;
  #fieldKeys: readonly string[] | null = null;

  constructor(
    maker: KeyMaker,
    { id, text, chars }: { readonly id: string; readonly text: string; readonly chars: number },
  ) {
    this.id = id;
    this.chars = chars;
    this.#maker = maker;
    this.#text = text;
  }

  get table(): string {
    return this.#maker.table.name;
  }

  get tableNumber(): number {
    return this.#maker.table.number;
  }

  get unchanged(): UnchangedKeys {
    return this;
  }

  get spaces(): readonly KeySpace[] {
    return this.#maker.spaces;
  }

  key(position: number): string {
    if (position === 0) return this.id;
    this.#fieldKeys ??= this.#maker.keys(this.#text);
    return this.#fieldKeys[position - 1] ?? "";
  }

  get keys(): readonly KeyChange[] {
    return this.spaces.map((space, place): KeyChange => [space, this.key(place), this.key(place)]);
  }
}
