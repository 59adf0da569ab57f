/** Checks documents against indexes by checksums, and only if these differ document by document. */
import type { AggregateEntry } from "../aggregates/aggregate_index.ts";
import { nodesFault } from "../aggregates/aggregate_nodes.ts";
import type { CatalogTable } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { tableNumberOf } from "../documents/ids.ts";
import { iterateDocuments } from "../schema_change.ts";
import { isCreationTime, type StoredFields } from "../documents/system_fields.ts";
import { indexEntries, type IndexSet, indexSet } from "../indexes/index_set.ts";
import { engineLimits } from "../limits.ts";
import { documentsTable } from "../table.ts";

/** Compares unordered sets of index entries by count and a sum of randomly seeded hashes. */
const seeds = crypto.getRandomValues(new Uint32Array(2));
const [SEED_A = 0, SEED_B = 0] = seeds;

class EntryChecksum {
  count = 0;
  #a = 0;
  #b = 0;

  /** `text` is the index's data for the document with this row id. */
  add(text: string, rid: number): void {
    let a = SEED_A ^ (rid | 0);
    let b = SEED_B ^ (rid / 0x1_0000_0000 | 0);
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      a = Math.imul(a ^ code, 0x85eb_ca6b);
      b = Math.imul(b ^ code, 0xc2b2_ae35);
      a ^= b >>> 15;
      b = b + a | 0;
    }
    this.count++;
    this.#a = this.#a + mixed(a ^ b >>> 7) >>> 0;
    this.#b = this.#b + mixed(b ^ a >>> 11) >>> 0;
  }

  equals(other: EntryChecksum): boolean {
    return this.count === other.count && this.#a === other.#a && this.#b === other.#b;
  }
}

function mixed(value: number): number {
  let bits = Math.imul(value ^ value >>> 16, 0x7feb_352d);
  bits = Math.imul(bits ^ bits >>> 15, 0x846c_a68b);
  return (bits ^ bits >>> 16) >>> 0;
}

/** FTS5 has one row for each document in this table. */
export function searchEntriesTable(number: number): string {
  return `s${number}_docsize`;
}

/** Throws unless indexes match the documents. Counts them and calls `onDocument` for each. */
export function checkTable(
  connection: Connection,
  table: CatalogTable,
  onDocument: () => void = () => {},
): number {
  const indexes = indexSet(documentsTable(table.number), table.indexes);
  const { count, sums } = sumsOfDocuments(connection, { table, indexes, onDocument });
  const same = entriesOf(indexes).every((sql, at) => sums[at]?.equals(sumOfIndex(connection, sql)));
  if (!same) checkDocuments(connection, table);
  for (const index of indexes.aggregates) {
    const fault = nodesFault(connection, index);
    if (fault !== null) throw damagedError(`aggregate "${index.name}" of table "${table.name}": ${fault}`);
  }
  return count;
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
  const { fields, searches, vectors, aggregates } = indexes;
  const sums = [...fields, ...searches, ...vectors, ...aggregates].map(() => new EntryChecksum());
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
    for (const entry of entries.aggregates) sums[next++]?.add(aggregateText(entry), rid);
  }
  return { count, sums };
}

/** How to iterate over an index's entries in order and what to compare. */
interface EntryScan {
  /** `>=` for the first query, then `>`. */
  readonly sql: (than: ">" | ">=") => string;
  readonly first: string | number;
  readonly read: (row: readonly unknown[]) => readonly [text: string, rid: number, last: string | number];
}

function entriesOf({ fields, searches, vectors, aggregates }: IndexSet): readonly EntryScan[] {
  return [
    ...fields.map(({ number }): EntryScan => ({
      sql: (than) => `SELECT key, rid FROM i${number} WHERE key ${than} ? ORDER BY key LIMIT ?+0`,
      first: "",
      read: ([key, rid]) => [key as string, rid as number, key as string],
    })),
    ...searches.map(({ number }): EntryScan => ({
      sql: (than) => `SELECT id FROM ${searchEntriesTable(number)} WHERE id ${than} ? ORDER BY id LIMIT ?+0`,
      first: Number.MIN_SAFE_INTEGER,
      read: ([id]) => ["", id as number, id as number],
    })),
    ...vectors.map(({ number }): EntryScan => ({
      sql: (than) =>
        `SELECT rid, length(vector), filters FROM v${number} WHERE rid ${than} ? ORDER BY rid LIMIT ?+0`,
      first: Number.MIN_SAFE_INTEGER,
      read: ([rid, bytes, filters]) => [
        vectorText(bytes as number, filters as string),
        rid as number,
        rid as number,
      ],
    })),
    ...aggregates.map(({ sql }): EntryScan => ({
      sql: sql.page,
      first: "",
      read: ([key, rid, ...values]) => [
        aggregateText({ key: key as string, values: values as (number | null)[] }),
        rid as number,
        key as string,
      ],
    })),
  ];
}

function aggregateText({ key, values }: AggregateEntry): string {
  return `${key} ${JSON.stringify(values)}`;
}

function vectorText(bytes: number, filters: string): string {
  return `${bytes} ${filters}`;
}

function sumOfIndex(connection: Connection, { sql, first, read }: EntryScan): EntryChecksum {
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

/** Looks up each document's entries. They are distinct, so an index with the right number has no others. */
function checkDocuments(connection: Connection, { name, number, indexes: catalog }: CatalogTable): void {
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
    indexes.aggregates.forEach(({ name, sql }, position) => {
      const entry = entries.aggregates[position];
      if (entry === undefined) return;
      const [key, found, ...values] = connection.statement(sql.page(">=")).get(entry.key, 1) ?? [];
      const same = key === entry.key && found === rid &&
        entry.values.every((value, at) => value === values[at]);
      if (!same) throw missing(name);
    });
  }
  checkCounts(connection, { name, indexes, count, searchesFound, vectorsFound });
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
    ...indexes.aggregates.map(({ name, entries }) => [name, entries, count] as [string, string, number]),
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
