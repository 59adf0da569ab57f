/** Iterates over all documents of a table by row id, with a few in memory at a time. */
import { engineLimits } from "../limits.ts";
import type { Connection } from "../connection.ts";

export type DocumentRow = readonly [rid: number, id: string, text: string];

/** `documents` is the SQLite table. Other tables may be written during the iteration. */
export function* iterateDocuments(connection: Connection, documents: string): Generator<DocumentRow> {
  const select = `SELECT rid, id, doc FROM ${documents} WHERE rid > ? ORDER BY rid LIMIT ?+0`;
  let last = Number.MIN_SAFE_INTEGER;
  let wanted = 1;
  for (;;) {
    const rows = connection.statement(select).all(last, wanted) as unknown as DocumentRow[];
    let chars = 1;
    for (const row of rows) {
      const [rid, , text] = row;
      last = rid;
      chars += text.length;
      yield row;
    }
    if (rows.length < wanted) return;
    const fitting = Math.floor(engineLimits.scanCharsAimed / (chars / rows.length));
    wanted = Math.max(1, Math.min(engineLimits.migrationRows, fitting));
  }
}
