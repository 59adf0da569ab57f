/**
 * The commits of applied rows, for whoever is told of them: made from the rows themselves. Of most documents the indexes hold
 * what they held before; their keys are made when somebody asks for them, which few do.
 */
import { EngineError } from "../errors.ts";
import { tableNumberOf } from "../documents/ids.ts";
import type { Path, StoredFields } from "../documents/stored_fields.ts";
import { type FieldIndex, fieldKeys } from "../indexes/field_index.ts";
import type { CommitEntry, DocumentChange, KeyChange, KeySpace, UnchangedKeys } from "../types.ts";
import { type JournalRow, readRow, type RowChange } from "./journal_row.ts";

/** A table, as whoever makes keys of its documents has to know it: its key spaces are that of ids, and these. */
export interface AppliedTable {
  readonly name: string;
  readonly number: number;
  readonly space: KeySpace;
  readonly indexes: readonly { readonly space: KeySpace; readonly paths: readonly Path[] }[];
}

/** What rows did to a database, as far as the rows do not say it. */
export interface AppliedRows {
  /** The tables whose documents changed. */
  readonly tables: readonly AppliedTable[];
  /**
   * Of each change that is not known to leave the indexes as they are, the keys before and after: those of one document in
   * the order in which the rows have them. Nobody has read what was in between, but whoever has read before may be shown
   * any commit.
   */
  readonly changes: readonly DocumentChange[];
}

/** Throws an `EngineError` for rows that were not applied by this. */
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
    const isKept = (change: RowChange) => change.same && !makerOf(change).isRead;
    const keptCount = commits.reduce((sum, { changes }) => sum + changes.filter(isKept).length, 0);
    // A part of a text keeps the whole of it.
    const chars = row.body.length / keptCount;
    return commits.map(({ ts, at, changes }): CommitEntry => ({
      ts,
      at,
      changes: changes.map((change) => {
        const maker = makerOf(change);
        if (change.same && change.text !== null) return kept(change, { maker, text: change.text, chars });
        const next = keysOf.get(change.id)?.next().value as DocumentChange | undefined;
        if (next === undefined) throw wrongRow(row, change);
        return moved(change, { maker, keys: next.keys });
      }),
    }));
  });
}

/** A change that leaves the indexes as they are, with the contents of a document of the service's tables. */
function kept(
  { id }: RowChange,
  { maker, text, chars }: { readonly maker: KeyMaker; readonly text: string; readonly chars: number },
): DocumentChange {
  const document = new KeptDocument(maker, { id, text, chars });
  if (!maker.isRead) return document;
  const { name: table, number: tableNumber } = maker.table;
  return { table, tableNumber, id, keys: document.keys, doc: text };
}

/** Any other one. */
function moved(
  { id, text }: RowChange,
  { maker, keys }: { readonly maker: KeyMaker; readonly keys: readonly KeyChange[] },
): DocumentChange {
  const { name: table, number: tableNumber } = maker.table;
  return { table, tableNumber, id, keys, ...(maker.isRead && { doc: text }) };
}

function wrongRow({ seq }: JournalRow, { id }: RowChange): EngineError {
  return new EngineError("bad_entry", `Row ${seq} has changed document "${id}", of which nothing was told`);
}

/** Makes the keys of the documents of a table. */
class KeyMaker {
  readonly table: AppliedTable;
  /** Whether it is of the service, whose contents whoever is told reads. */
  readonly isRead: boolean;
  readonly spaces: readonly KeySpace[];
  readonly #indexes: readonly Pick<FieldIndex, "name" | "paths">[];

  constructor(table: AppliedTable) {
    this.table = table;
    this.isRead = table.name.startsWith("_");
    this.spaces = [table.space, ...table.indexes.map(({ space }) => space)];
    this.#indexes = table.indexes.map(({ space, paths }) => ({ name: space, paths }));
  }

  /** In the indexes on fields. */
  keys(text: string): readonly string[] {
    return fieldKeys(this.#indexes, JSON.parse(text) as StoredFields);
  }
}

/** A document of the app that the indexes hold as they did. */
class KeptDocument implements DocumentChange, UnchangedKeys {
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

  key(place: number): string {
    if (place === 0) return this.id;
    this.#fieldKeys ??= this.#maker.keys(this.#text);
    return this.#fieldKeys[place - 1] ?? "";
  }

  get keys(): readonly KeyChange[] {
    return this.spaces.map((space, place): KeyChange => [space, this.key(place), this.key(place)]);
  }
}
