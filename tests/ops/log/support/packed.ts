/** Batches of runs as sent by the main process, and their expected contents. */
import { NumberColumns } from "../../../../mod/ops/log/packs/number_columns.ts";
import {
  column,
  COLUMNS,
  nothingTold,
  recordAt,
  type RunPack,
  RunPacker,
} from "../../../../mod/ops/log/packs/run_pack.ts";
import { admitsFunction, hasText, type RunFilter } from "../../../../mod/ops/log/run_filter.ts";
import { type RunRecord, searchedText } from "../../../../mod/ops/log/run_record.ts";

export function packed(records: readonly RunRecord[]): RunPack {
  const packer = new RunPacker();
  for (const record of records) packer.add(record);
  return packer.take();
}

/** The runs of a batch, in order. */
export function unpackRuns(pack: RunPack): RunRecord[] {
  const columns = new NumberColumns(pack.columns, { columns: COLUMNS, rows: pack.count });
  const told = new Map(pack.told.map(([position, error, logLines]) => [position, { error, logLines }]));
  return Array.from({ length: pack.count }, (_, row) => {
    const [path, kind] = pack.functions[columns.at(column.fn, row)] ?? ["?", 0];
    const caller = pack.callers[columns.at(column.caller, row) - 1] ?? null;
    return recordAt(columns, row, { path, kind, caller, ...(told.get(row) ?? nothingTold) });
  });
}

/** Whether a run matches, evaluated on the whole run. */
export function admitsRun(filter: RunFilter, record: RunRecord): boolean {
  const [at, path, kind, caller, outcome, level, request] = record;
  const { from = -Infinity, to = Infinity } = filter;
  return at >= from && at < to &&
    (filter.outcomes === undefined || filter.outcomes.includes(outcome)) &&
    (filter.level === undefined || level >= filter.level) &&
    (filter.caller === undefined || filter.caller === caller) &&
    (filter.request === undefined || filter.request === request) &&
    admitsFunction(filter, { path, kind }) &&
    (filter.text === undefined || hasText(filter.text, searchedText(record[14], record[15])));
}
