/** Numbers of tables at the source. IDs contain them, so a new database must use the same ones. */
import { decodeId } from "../../../engine/mod.ts";
import { FileFault } from "./file_fault.ts";
import type { ImportSource } from "./importer.ts";
import { type NumberedBatch, rowBatches } from "./row_batches.ts";

/**
 * Returns the table numbers found in the first rows of each file, for a database without tables. Unreadable files and conflicting
 * numbers are left to the check of the rows.
 */
export async function tableNumbersOf(sources: readonly ImportSource[]): Promise<Map<string, number>> {
  const numbers = new Map<string, number>();
  for (const source of sources) {
    const number = await firstNumber(source);
    if (number !== null && ![...numbers.values()].includes(number)) numbers.set(source.table, number);
  }
  return numbers;
}

async function firstNumber(source: ImportSource): Promise<number | null> {
  try {
    for await (const batch of rowBatches(source.open(), source.format)) {
      for (const id of idsOf(batch)) {
        const decoded = typeof id === "string" ? decodeId(id) : null;
        if (decoded !== null) return decoded.tableNumber;
      }
      return null;
    }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
  }
  return null;
}

function* idsOf({ batch }: NumberedBatch): Generator<unknown, void, void> {
  if (batch.format === "csv") {
    const column = batch.columns.indexOf("_id");
    for (const cells of batch.rows) yield cells[column];
    return;
  }
  for (const line of batch.lines) {
    let row: unknown;
    try {
      row = JSON.parse(line);
    } catch {
      return;
    }
    if (typeof row === "object" && row !== null && "_id" in row) yield row._id;
  }
}
