/** A read-only connection with one snapshot at a time, in which queries run. */
import { loadTables, Tables } from "./catalog.ts";
import { Connection } from "./connection.ts";
import { QueryTransaction, type Snapshot } from "./query.ts";
import { previewSchema } from "./database/schema_preview.ts";
import type { ReaderDatabase, ReadTransaction, SchemaPreview, ViolationLimits } from "./transaction.ts";
import type { SchemaDefinition } from "./types.ts";
import { VectorSearcher } from "./vectors/vector_search.ts";

/**
 * Opens an existing database for reading with a page cache of `cacheBytes`. Throws an `EngineError` if the file is
 * damaged, foreign or newer.
 */
export function openReaderDatabase(path: string, cacheBytes?: number): ReaderDatabase {
  return new SqliteReaderDatabase(Connection.openReader(path, cacheBytes));
}

class SqliteReaderDatabase implements ReaderDatabase {
  readonly #connection: Connection;
  readonly #vectors: VectorSearcher;
  #tables = new Tables([]);
  #snapshot: Snapshot | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#vectors = new VectorSearcher(connection);
  }

  useSchema(schema: SchemaDefinition, options: { readonly missing?: "refuse" | "leave" } = {}): void {
    this.#tables = loadTables(this.#connection, schema, options);
  }

  openSnapshot(): number {
    if (this.#snapshot !== null) throw new RangeError("A snapshot is open already");
    // The snapshot starts with the first read.
    this.#connection.statement("BEGIN").run();
    try {
      const ts = this.#connection.statement("SELECT ts FROM syncline_state").get()?.[0];
      this.#snapshot = { open: true };
      return ts as number;
    } catch (error) {
      if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
      throw error;
    }
  }

  closeSnapshot(): void {
    if (this.#snapshot === null) throw new RangeError("No snapshot is open");
    this.#snapshot.open = false;
    this.#snapshot = null;
    if (this.#connection.inTransaction) this.#connection.statement("COMMIT").run();
  }

  beginQuery(): ReadTransaction {
    if (this.#snapshot === null) throw new RangeError("No snapshot is open");
    return new QueryTransaction({
      connection: this.#connection,
      tables: this.#tables,
      snapshot: this.#snapshot,
      vectors: this.#vectors,
    });
  }

  previewSchema(schema: SchemaDefinition, bounds: ViolationLimits): SchemaPreview {
    if (this.#snapshot === null) throw new RangeError("No snapshot is open");
    return previewSchema(this.#connection, schema, bounds);
  }

  [Symbol.dispose](): void {
    if (this.#snapshot !== null) this.closeSnapshot();
    this.#connection[Symbol.dispose]();
  }
}
