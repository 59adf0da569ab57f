/** Inspects a whole database: document counts, sizes and key spaces. */
import type { TableSize } from "../types.ts";
import type { Tables } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import type { ReadSetRecorder } from "../read_set.ts";
import { type IndexPositions, positionsOf } from "./index_positions.ts";
import { BY_ID, documentsTable } from "../table.ts";
import { END_OF_KEYS, type KeySpace } from "../types.ts";

export interface KeySpaceOwner {
  readonly table: string;
  /** `by_id` for the documents themselves. */
  readonly index: string;
}

/** Inspects the open snapshot. */
export interface Inspection extends IndexPositions {
  /** Counts a table's documents up to `max`. The read set covers the table. */
  count(table: string, max: number): number;
  /** Reads every page of the file, some 120 ms for 200 MB. Not part of the read set: the result is a moment's. */
  sizes(): TableSize[];
  spaces(): ReadonlyMap<KeySpace, KeySpaceOwner>;
}

export interface InspectionSetup {
  readonly connection: Connection;
  readonly tables: Tables;
  readonly recorder: ReadSetRecorder;
}

export function inspectionOf({ connection, tables, recorder }: InspectionSetup): Inspection {
  return {
    count(name, max) {
      const { space, number } = tables.named(name);
      recorder.extendRange(recorder.beginRange(space), "", END_OF_KEYS);
      const sql = `SELECT count(*) FROM (SELECT 1 FROM ${documentsTable(number)} LIMIT ?)`;
      return connection.statement(sql).get(Math.trunc(max))?.[0] as number;
    },
    ...positionsOf({ connection, tables, recorder }),
    sizes: () => sizes(connection, tables),
    spaces() {
      const owners = new Map<KeySpace, KeySpaceOwner>();
      for (const { name: table, space, indexes } of tables.all()) {
        owners.set(space, { table, index: BY_ID });
        for (const index of [...indexes.fields, ...indexes.searches, ...indexes.vectors]) {
          owners.set(index.space, { table, index: index.name });
        }
      }
      return owners;
    },
  };
}

function sizes(connection: Connection, tables: Tables): TableSize[] {
  const pages = new Map<string, { readonly bytes: number; readonly cells: number }>();
  const rows = connection.statement("SELECT name, pgsize, ncell FROM dbstat WHERE aggregate = 1").all();
  for (const [name, bytes, cells] of rows as [string, number, number][]) pages.set(name, { bytes, cells });
  const bytesOf = (name: string) => pages.get(name)?.bytes ?? 0;
  return tables.all().map(({ name, number, indexes }) => {
    const documents = documentsTable(number);
    const ids = `sqlite_autoindex_${documents}_1`;
    const { searches, vectors, fields } = indexes;
    const indexBytes = fields.reduce((sum, { space }) => sum + bytesOf(space), bytesOf(ids)) +
      searches.reduce(
        (sum, { space }) => sum + searchTables(space).reduce((all, part) => all + bytesOf(part), 0),
        0,
      ) +
      vectors.reduce((sum, { number }) => sum + bytesOf(`v${number}`) + bytesOf(`w${number}`), 0);
    return { table: name, documents: pages.get(ids)?.cells ?? 0, bytes: bytesOf(documents), indexBytes };
  });
}

/** Returns the SQLite tables of a full-text index. */
function searchTables(search: string): string[] {
  return ["data", "idx", "docsize", "config"].map((part) => `${search}_${part}`);
}
