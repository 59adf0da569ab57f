/**
 * Checks a table's documents against its indexes. It compares checksums of both (entry_checksum.ts), each in its own
 * order. Only if they differ does it look up each document in each index to find the error.
 */
import type { CatalogTable } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { iterateDocuments } from "../documents/iterate_documents.ts";
import { tableNumberOf } from "../documents/ids.ts";
import type { StoredFields } from "../documents/stored_fields.ts";
import { isCreationTime } from "../documents/system_fields.ts";
import { indexEntries, type IndexSet, indexSet } from "../indexes/index_set.ts";
import { engineLimits } from "../limits.ts";
import { documentsTable } from "../table.ts";
import { EntryChecksum } from "./entry_checksum.ts";

/** FTS5 has one row for each document in this table. */
export function searchEntriesTable(number: number): string {
  return `s${number}_docsize`;
}

/**
 * Throws unless every index has exactly the entries of the documents. Returns the number of documents and calls
 * `onDocument` for each.
 */
export function checkTable(
  connection: Connection,
  table: CatalogTable,
  onDocument: () => void = () => {},
): number {
  const indexes = indexSet(documentsTable(table.number), table.indexes);
  const { count, sums } = sumsOfDocuments(connection, { table, indexes, onDocument });
  const same = entriesOf(indexes).every((sql, at) => sums[at]?.equals(sumOfIndex(connection, sql)));
  return same ? count : checkDocuments(connection, table);
}

/** Returns the expected checksums: field indexes, then search indexes, then vector indexes. */
function sumsOfDocuments(
  connection: Connection,
  { table: { name, number }, indexes, onDocument }: {
    readonly table: CatalogTable;
    readonly indexes: IndexSet;
    readonly onDocument: () => void;
  },
): { readonly count: number; readonly sums: readonly EntryChecksum[] } {
  const { fields, searches, vectors } = indexes;
  const sums = [...fields, ...searches, ...vectors].map(() => new EntryChecksum());
  let count = 0;
  for (const [rid, id, text] of iterateDocuments(connection, documentsTable(number))) {
    count++;
    onDocument();
    const entries = indexEntries(indexes, parsed(text, { table: name, number, id }));
    let next = 0;
    for (const key of entries.keys) sums[next++]?.add(key, rid);
    for (const entry of entries.searches) {
      if (entry !== null) sums[next]?.add("", rid);
      next++;
    }
    for (const entry of entries.vectors) {
      if (entry !== null) sums[next]?.add(vectorText(entry.vector.byteLength, entry.filters), rid);
      next++;
    }
  }
  return { count, sums };
}

/** How to iterate over an index's entries in order and what to compare. */
interface Walk {
  /** `>=` for the first query, then `>`. */
  readonly sql: (than: ">" | ">=") => string;
  readonly first: string | number;
  readonly read: (row: readonly unknown[]) => readonly [text: string, rid: number, last: string | number];
}

function entriesOf({ fields, searches, vectors }: IndexSet): readonly Walk[] {
  return [
    ...fields.map(({ number }): Walk => ({
      sql: (than) => `SELECT key, rid FROM i${number} WHERE key ${than} ? ORDER BY key LIMIT ?+0`,
      first: "",
      read: ([key, rid]) => [key as string, rid as number, key as string],
    })),
    ...searches.map(({ number }): Walk => ({
      sql: (than) => `SELECT id FROM ${searchEntriesTable(number)} WHERE id ${than} ? ORDER BY id LIMIT ?+0`,
      first: Number.MIN_SAFE_INTEGER,
      read: ([id]) => ["", id as number, id as number],
    })),
    ...vectors.map(({ number }): Walk => ({
      sql: (than) =>
        `SELECT rid, length(vector), filters FROM v${number} WHERE rid ${than} ? ORDER BY rid LIMIT ?+0`,
      first: Number.MIN_SAFE_INTEGER,
      read: ([rid, bytes, filters]) => [
        vectorText(bytes as number, filters as string),
        rid as number,
        rid as number,
      ],
    })),
  ];
}

function vectorText(bytes: number, filters: string): string {
  return `${bytes} ${filters}`;
}

function sumOfIndex(connection: Connection, { sql, first, read }: Walk): EntryChecksum {
  const sum = new EntryChecksum();
  let than: ">" | ">=" = ">=";
  for (let last = first;; than = ">") {
    const rows = connection.statement(sql(than)).all(last, engineLimits.indexEntriesRead);
    for (const row of rows) {
      const [text, rid, next] = read(row);
      sum.add(text, rid);
      last = next;
    }
    if (rows.length < engineLimits.indexEntriesRead) return sum;
  }
}

/**
 * Looks up each document's entries. Entries of different documents differ, so an index with the right number of entries
 * has no others. Returns the number of documents.
 */
function checkDocuments(connection: Connection, { name, number, indexes: catalog }: CatalogTable): number {
  const documents = documentsTable(number);
  const indexes = indexSet(documents, catalog);
  const searchesFound = indexes.searches.map(() => 0);
  const vectorsFound = indexes.vectors.map(() => 0);
  let count = 0;
  for (const [rid, id, text] of iterateDocuments(connection, documents)) {
    count++;
    const doc = parsed(text, { table: name, number, id });
    const missing = (index: string) =>
      damagedError(`index "${index}" of table "${name}" does not hold document "${id}" as it is`);
    const entries = indexEntries(indexes, doc);
    indexes.fields.forEach((index, position) => {
      const row = connection.statement(`SELECT rid FROM i${index.number} WHERE key = ?`)
        .get(entries.keys[position] ?? "");
      if (row?.[0] !== rid) throw missing(index.name);
    });
    indexes.searches.forEach((index, position) => {
      if ((entries.searches[position] ?? null) === null) return;
      searchesFound[position] = (searchesFound[position] ?? 0) + 1;
      const row = connection.statement(`SELECT 1 FROM ${searchEntriesTable(index.number)} WHERE id = ?`)
        .get(rid);
      if (row === undefined) throw missing(index.name);
    });
    indexes.vectors.forEach((index, position) => {
      const entry = entries.vectors[position] ?? null;
      if (entry === null) return;
      vectorsFound[position] = (vectorsFound[position] ?? 0) + 1;
      const row = connection.statement(`SELECT length(vector), filters FROM v${index.number} WHERE rid = ?`)
        .get(rid);
      if (row?.[0] !== entry.vector.byteLength || row[1] !== entry.filters) throw missing(index.name);
    });
  }
  checkCounts(connection, { name, indexes, count, searchesFound, vectorsFound });
  return count;
}

interface FoundEntries {
  readonly name: string;
  readonly indexes: IndexSet;
  readonly count: number;
  readonly searchesFound: readonly number[];
  readonly vectorsFound: readonly number[];
}

function checkCounts(connection: Connection, found: FoundEntries): void {
  const { name, indexes, count, searchesFound, vectorsFound } = found;
  const expected: [index: string, sqlite: string, entries: number][] = [
    ...indexes.fields.map((index) => [index.name, `i${index.number}`, count] as [string, string, number]),
    ...indexes.searches.map((index, position) =>
      [index.name, searchEntriesTable(index.number), searchesFound[position] ?? 0] as [
        string,
        string,
        number,
      ]
    ),
    ...indexes.vectors.map((index, position) =>
      [index.name, `v${index.number}`, vectorsFound[position] ?? 0] as [string, string, number]
    ),
  ];
  for (const [index, sqlite, entries] of expected) {
    const there = Number(connection.statement(`SELECT count(*) FROM ${sqlite}`).get()?.[0]);
    if (there !== entries) {
      throw damagedError(
        `index "${index}" of table "${name}" has ${there} entries and the documents require ${entries}`,
      );
    }
  }
}

/** Parses a stored document. Throws unless it belongs to the table and has its own id. */
function parsed(
  text: string,
  { table, number, id }: { readonly table: string; readonly number: number; readonly id: string },
): StoredFields {
  let doc: unknown;
  try {
    doc = JSON.parse(text);
  } catch {
    throw damagedError(`document "${id}" of table "${table}" is not JSON`);
  }
  const { _id, _creationTime } = (doc ?? {}) as Partial<StoredFields>;
  if (_id !== id || typeof _creationTime !== "number" || tableNumberOf(id) !== number) {
    throw damagedError(`document "${id}" of table "${table}" has another id or no creation time`);
  }
  if (!isCreationTime(_creationTime)) {
    throw damagedError(`document "${id}" of table "${table}" has ${_creationTime} for its creation time`);
  }
  return doc as StoredFields;
}

export function damagedError(what: string): Error {
  return new Error(`the database is damaged: ${what}`);
}
