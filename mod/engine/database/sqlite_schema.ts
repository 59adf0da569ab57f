/**
 * Compares the schema of an SQLite file with the expected one, which is created in memory. Check it before reading
 * anything else: views, generated columns, expressions in indexes and virtual tables can run code of the file's author.
 */
import { DatabaseSync } from "node:sqlite";
import { prepareArrays, type Statement } from "../connection.ts";

export interface StatementSource {
  statement(sql: string): Statement;
}

/** Tables, indexes, views and triggers by type and name, with their SQL without redundant spaces. */
type Objects = ReadonlyMap<string, { readonly type: string; readonly name: string; readonly text: string }>;

/** Reads only the schema. */
function objectsOf(database: StatementSource): Objects {
  const rows = database.statement("SELECT type, name, tbl_name, sql FROM sqlite_schema").all();
  return new Map(rows.map(([type, name, table, sql]) => [
    `${type} ${name}`,
    { type: String(type), name: String(name), text: `${table} ${plain(String(sql ?? ""))}` },
  ]));
}

function plain(sql: string): string {
  return sql.replace(/\s+/g, " ").replace(/ ?([(),;]) ?/g, "$1").trim();
}

function made(sql: string): Objects {
  using memory = new DatabaseSync(":memory:");
  memory.exec(sql);
  return objectsOf({ statement: (text) => prepareArrays(memory, text) });
}

/**
 * Describes how a database's schema differs from what `sql` creates; `null` if it does not. `others` allows further
 * tables, `lacking` allows missing ones.
 */
export function schemaFault(
  database: StatementSource,
  { sql, others = false, lacking = false }: {
    readonly sql: string;
    readonly others?: boolean;
    readonly lacking?: boolean;
  },
): string | null {
  const expected = made(sql);
  const found = objectsOf(database);
  for (const [key, { type, name, text }] of found) {
    const wanted = expected.get(key);
    if (wanted !== undefined) {
      if (wanted.text !== text) return `its ${type} ${name} differs from what the server creates`;
    } else if (!others || (type !== "table" && !(type === "index" && name.startsWith("sqlite_autoindex_")))) {
      return `it has the ${type} "${name}", which the server never creates`;
    }
  }
  for (const [key, { type, name }] of expected) {
    if (!lacking && !found.has(key)) return `its ${type} ${name} is missing`;
  }
  return null;
}
