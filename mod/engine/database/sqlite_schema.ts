/**
 * What stands in the schema of a SQLite file, compared with what it should be: made anew in memory by the code that makes it.
 * What is compared before anything else is read has no say: views, generated columns, expressions in indexes and virtual
 * tables run code of whoever made the file.
 */
import { DatabaseSync } from "node:sqlite";
import { prepareArrays, type Statement } from "../connection.ts";

/** Whatever prepares statements whose rows are arrays. */
export interface StatementSource {
  statement(sql: string): Statement;
}

/** A table, index, view or trigger, by type and name, with the text that makes it; spaces do not count. */
type Objects = ReadonlyMap<string, { readonly type: string; readonly name: string; readonly text: string }>;

/** Reads nothing but the schema. */
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
 * How the schema of a database differs from what `sql` makes, in words for the reason of an error; `null` when it does not.
 * With `others`, it may have other tables as well, but nothing that is no table; with `lacking`, it need not have all.
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
      if (wanted.text !== text) return `its ${type} ${name} is not as the server makes it`;
    } else if (!others || (type !== "table" && !(type === "index" && name.startsWith("sqlite_autoindex_")))) {
      return `it has the ${type} "${name}", which the server never makes`;
    }
  }
  for (const [key, { type, name }] of expected) {
    if (!lacking && !found.has(key)) return `its ${type} ${name} is missing`;
  }
  return null;
}
