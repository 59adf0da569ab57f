/** Vector indexes: a table of float32 unit vectors, and one of numbered changes that update copies in memory. */
import { engineLimits } from "../limits.ts";
import { EngineError } from "../errors.ts";
import { valueKey } from "../indexes/keys.ts";
import { type Path, pathOf, type StoredFields, valueAt } from "../documents/system_fields.ts";
import type { KeySpace, VectorIndexDefinition } from "../types.ts";

export interface VectorIndex {
  readonly name: string;
  readonly number: number;
  readonly space: KeySpace;
  readonly dimensions: number;
  readonly vectorPath: Path;
  readonly filterFields: readonly string[];
  readonly filterPaths: readonly Path[];
  readonly sql: {
    readonly insert: string;
    readonly remove: string;
    readonly noteChange: string;
    readonly forgetChanges: string;
    readonly changeRange: string;
    readonly changedSince: string;
    readonly get: string;
    readonly page: string;
  };
}

export interface VectorEntry {
  /** A unit vector, or zeros. */
  readonly vector: Float32Array<ArrayBuffer>;
  /** JSON list of the filter values' keys. */
  readonly filters: string;
}

export function createVectorIndexSql(number: number): string {
  return `CREATE TABLE v${number} (rid INTEGER PRIMARY KEY, vector BLOB NOT NULL, filters TEXT NOT NULL);
    CREATE TABLE w${number} (seq INTEGER PRIMARY KEY, rid INTEGER NOT NULL)`;
}

export function dropVectorIndexSql(number: number): string {
  return `DROP TABLE v${number}; DROP TABLE w${number}`;
}

export function vectorIndex(number: number, definition: VectorIndexDefinition): VectorIndex {
  const { name, vectorField, dimensions, filterFields } = definition;
  const [vectors, changes] = [`v${number}`, `w${number}`];
  return {
    name,
    number,
    space: `s${number}`,
    dimensions,
    vectorPath: pathOf(vectorField),
    filterFields,
    filterPaths: filterFields.map(pathOf),
    sql: {
      insert: `INSERT OR REPLACE INTO ${vectors} (rid, vector, filters) VALUES (?, ?, ?)`,
      remove: `DELETE FROM ${vectors} WHERE rid = ?`,
      noteChange: `INSERT INTO ${changes} (rid) VALUES (?)`,
      forgetChanges: `DELETE FROM ${changes} WHERE seq <= ?`,
      changeRange: `SELECT (SELECT min(seq) FROM ${changes}), (SELECT max(seq) FROM ${changes})`,
      changedSince:
        `SELECT DISTINCT c.rid, v.vector, v.filters FROM ${changes} c LEFT JOIN ${vectors} v ON v.rid = c.rid
        WHERE c.seq > ?`,
      get: `SELECT vector FROM ${vectors} WHERE rid = ?`,
      page: `SELECT rid, vector, filters FROM ${vectors} WHERE rid > ? ORDER BY rid LIMIT ?+0`,
    },
  };
}

/** Returns a document's entry; `null` if it has no vector. Throws for an invalid vector. */
export function vectorEntry(index: VectorIndex, doc: StoredFields): VectorEntry | null {
  const value = valueAt(doc, index.vectorPath);
  if (value === undefined || value === null) return null;
  const { dimensions } = index;
  if (
    !Array.isArray(value) || value.length !== dimensions || !value.every((part) => typeof part === "number")
  ) {
    const found = Array.isArray(value) ? `a list of ${value.length}` : `a ${typeof value}`;
    throw new EngineError(
      "not_storable",
      `Cannot store field "${
        index.vectorPath.join(".")
      }": vector index "${index.name}" needs a list of ${dimensions} ` +
        `numbers and this is ${found}`,
    );
  }
  return {
    vector: new Float32Array(unitVector(value as number[])),
    filters: JSON.stringify(index.filterPaths.map((path) => valueKey(valueAt(doc, path)))),
  };
}

/** Returns the unit vector in the same direction; zeros stay zeros. */
export function unitVector(vector: readonly number[]): Float64Array<ArrayBuffer> {
  // Dividing by the largest part first keeps the squares in range.
  let largest = 0;
  for (const part of vector) largest = Math.max(largest, Math.abs(part));
  const unit = new Float64Array(vector.length);
  if (largest === 0) return unit;
  let squares = 0;
  for (let index = 0; index < unit.length; index++) {
    const part = (vector[index] ?? 0) / largest;
    unit[index] = part;
    squares += part * part;
  }
  const length = Math.sqrt(squares);
  for (let index = 0; index < unit.length; index++) unit[index] = (unit[index] ?? 0) / length;
  return unit;
}

export function sameVectorEntry(a: VectorEntry | null, b: VectorEntry | null): boolean {
  if (a === null || b === null) return a === b;
  return a.filters === b.filters && a.vector.every((part, index) => part === b.vector[index]);
}

/** Throws for an invalid definition. */
export function checkVectorDefinition(table: string, { name, dimensions }: VectorIndexDefinition): void {
  const { vectorDimensionsMax } = engineLimits;
  if (Number.isInteger(dimensions) && dimensions >= 1 && dimensions <= vectorDimensionsMax) return;
  throw new EngineError(
    "bad_schema",
    `Vector index "${name}" of table "${table}" has ${dimensions} dimensions: it needs 1 to ${vectorDimensionsMax}`,
  );
}
