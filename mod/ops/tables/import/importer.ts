/** Imports tables (IM) in two passes: checks every row, then writes batches, each a commit of its own. */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { decodeId } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import type { MutationAnswer, MutationCall } from "../../../functions/host_port.ts";
import { anonymous, type Identity } from "../../../functions/identity.ts";
import type { DeletedSome } from "../../../functions/isolate/mod.ts";
import { SystemCallError } from "../../../functions/system_calls.ts";
import { createApi } from "../../../protocol/api_reference.ts";
import { functionPath, type FunctionReference } from "../../../protocol/function_reference.ts";
import type { RowFault } from "../../isolate_functions/import.ts";
import type { importFunctions } from "../../isolate_functions/mod.ts";
import { opsLimits } from "../../limits.ts";
import type { ImportMode, TableFormat } from "../mod.ts";
import { FileFault, type FileRowFault, ImportError } from "./import_status.ts";
import { type NumberedBatch, rowBatches } from "./row_batches.ts";

const CACHE_KIB = 8 * 1024;

/** Set of IDs in a file with their lines, in bounded memory: large sets are stored on disk. */
export class SeenIds implements Disposable {
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;

  constructor() {
    this.#db = new DatabaseSync(":memory:");
    // A temporary table uses an unnamed file, which is removed with the connection or the process.
    this.#db.exec(`
      PRAGMA temp_store = FILE;
      PRAGMA temp.cache_size = -${CACHE_KIB};
      CREATE TEMP TABLE ids (id TEXT PRIMARY KEY, line INTEGER NOT NULL) WITHOUT ROWID;
      BEGIN
    `);
    this.#insert = this.#db.prepare("INSERT OR IGNORE INTO ids VALUES (?, ?)");
    this.#find = this.#db.prepare("SELECT line FROM ids WHERE id = ?");
  }

  /** Adds an ID. Returns the line of an earlier occurrence, or `null`. */
  add(id: string, line: number): number | null {
    if (Number(this.#insert.run(id, line).changes) > 0) return null;
    return Number(this.#find.get(id)?.["line"]);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

const system = createApi<{ "_system/import": typeof importFunctions }>().internal._system.import;

/** A file to import, which is read twice. */
export interface ImportSource {
  readonly name: string;
  readonly table: string;
  readonly format: TableFormat;
  /** Fields of the columns of a CSV file in place of its header; `null` skips a column. */
  readonly columns?: readonly (string | null)[];
  /** Opens the contents. The iterator is closed at the end, also if it is left early. */
  open(): AsyncIterable<Uint8Array>;
}

export interface ImportSummary {
  readonly table: string;
  /** Documents written. */
  readonly imported: number;
  /** Documents deleted before; 0 except for `replace`. */
  readonly deleted: number;
  /** Timestamp of the last commit. */
  readonly ts: number;
}

/** Progress after each batch. Exceptions of a listener stop the import. */
export interface ImportProgress {
  readonly source: ImportSource;
  readonly step: "checked" | "deleted" | "written";
  readonly rows: number;
}

export interface ImporterOptions {
  /** The writer. */
  readonly port: { mutate(call: MutationCall): Promise<MutationAnswer> };
  readonly mode: ImportMode;
  /** The caller that the execution log records. Default: none. */
  readonly identity?: Identity;
  /** ID of the document that tracks the progress, updated with each written batch. */
  readonly workId?: string;
  readonly onProgress?: (progress: ImportProgress) => void;
}

export class Importer {
  readonly #options: ImporterOptions;

  constructor(options: ImporterOptions) {
    this.#options = options;
  }

  /** Checks and counts the rows. Throws an {@linkcode ImportError} listing errors by line. */
  async check(source: ImportSource): Promise<{ readonly rows: number }> {
    const { mode } = this.#options;
    using seen = mode === "upsert" ? null : new SeenIds();
    const faults: FileRowFault[] = [];
    let rows = 0;
    try {
      for await (const { batch, lines } of rowBatches(source.open(), source)) {
        // `replace` deletes existing documents first, so they cannot conflict.
        const args = { table: source.table, mode: mode === "insert" ? mode : "upsert", batch } as const;
        const { result } = await this.#call(system.check, args);
        for (const { row, message } of result.faults) faults.push({ line: lines[row] ?? null, message });
        result.ids.forEach((id, row) => {
          const line = lines[row] ?? 0;
          const before = id === null ? null : seen?.add(id, line) ?? null;
          if (before !== null) {
            faults.push({ line, message: `Duplicate _id "${id}", first used in line ${before}` });
          }
        });
        rows += lines.length;
        if (rows > opsLimits.importRowsMax) {
          const message = `more than ${opsLimits.importRowsMax} rows. Split it into several files`;
          faults.push({ line: null, message });
        }
        if (faults.length >= opsLimits.importFaultsMax) break;
        this.#options.onProgress?.({ source, step: "checked", rows });
      }
    } catch (error) {
      if (!(error instanceof FileFault)) throw refused(source, error);
      faults.push({ line: error.line, message: error.message });
    }
    if (faults.length > 0) throw badRows(source, faults);
    return { rows };
  }

  /** Writes the checked rows. Throws an {@linkcode ImportError} with the progress if a batch or a read fails. */
  async write(source: ImportSource): Promise<ImportSummary> {
    const { mode, workId, onProgress } = this.#options;
    const work = workId === undefined ? {} : { workId: workId as never };
    const done = { deleted: 0, written: 0 };
    const { table } = source;
    let ts = 0;
    let lines: readonly number[] = [];
    try {
      if (mode === "replace") {
        let until: string | null = null;
        do {
          const { deleted, rest }: DeletedSome =
            (await this.#call(system.empty, { table, until, ...work })).result;
          done.deleted += deleted;
          until = rest;
          if (deleted > 0) onProgress?.({ source, step: "deleted", rows: done.deleted });
        } while (until !== null);
      }
      for await (const next of rowBatches(source.open(), source)) {
        lines = next.lines;
        const args = {
          table,
          mode: mode === "upsert" ? mode : "insert",
          batch: next.batch,
          ...work,
        } as const;
        ts = (await this.#call(system.write, args)).ts;
        done.written += lines.length;
        onProgress?.({ source, step: "written", rows: done.written });
      }
    } catch (error) {
      throw stopped(source, { mode, done, lines, cause: error });
    }
    return { table, imported: done.written, deleted: done.deleted, ts };
  }

  /** Calls a function of the writer. Its `UserError`s are rethrown; other failures become a `SystemCallError`. */
  async #call<Args extends Record<string, unknown>, Result>(
    reference: FunctionReference<"mutation", Args, Result>,
    args: Args,
  ): Promise<{ readonly result: Result; readonly ts: number }> {
    const udfPath = functionPath(reference);
    const { outcome, ts } = await this.#options.port.mutate({
      udfPath,
      args,
      identity: this.#options.identity ?? anonymous,
      origin: "system",
    });
    if (outcome.ok) return { result: JSON.parse(outcome.value) as Result, ts };
    const { kind, message, data, retryable } = outcome.error;
    if (kind === "user" && data !== null && retryable !== true) {
      throw new UserError(data.code, message, data.data);
    }
    throw new SystemCallError(udfPath, outcome.error);
  }
}

function at({ name }: ImportSource, line: number | undefined, message: string): string {
  return line === undefined ? `${name}: ${message}` : `${name}, line ${line}: ${message}`;
}

function badRows(source: ImportSource, all: readonly FileRowFault[]): ImportError {
  const { importFaultsMax } = opsLimits;
  const faults = all.slice(0, importFaultsMax);
  const shown = faults.map(({ line, message }) => at(source, line ?? undefined, message));
  const more = all.length >= importFaultsMax ? ["There may be more. The check stopped here."] : [];
  return new ImportError("bad_file", ["Nothing was imported.", ...shown, ...more].join("\n"), { faults });
}

/** Error of an incomplete check. */
function refused({ name }: ImportSource, error: unknown): ImportError {
  if (error instanceof UserError) {
    const kind = error.code === "unknown_table" ? "unknown_table" : "bad_file";
    return new ImportError(kind, `Nothing was imported.\n${name}: ${error.message}`, { cause: error });
  }
  return new ImportError(
    "failed",
    `Nothing was imported.\n${name}: cannot check the rows: ${reasonOf(error)}`,
    { cause: error },
  );
}

/** Error of an interrupted write: the progress, and advice. */
function stopped(
  source: ImportSource,
  { mode, done, lines, cause }: {
    readonly mode: ImportMode;
    readonly done: { readonly deleted: number; readonly written: number };
    readonly lines: readonly number[];
    readonly cause: unknown;
  },
): ImportError {
  const fault = cause instanceof UserError && cause.code === "bad_row" ? cause.data as RowFault : null;
  const line = cause instanceof FileFault ? cause.line : fault === null ? undefined : lines[fault.row];
  const emptied = mode === "replace" ? `${counted(done.deleted, "document")} deleted before, ` : "";
  const advice = mode === "replace"
    ? "Import the file again with mode replace"
    : "Rows with an _id can be imported again with mode upsert";
  return new ImportError(
    "stopped",
    `${at(source, line, reasonOf(cause))}\nThe import into table "${source.table}" stopped: ${emptied}` +
      `${counted(done.written, "row")} written and kept. ${advice}`,
    { cause },
  );
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function reasonOf(error: unknown): string {
  if (error instanceof SystemCallError) return error.reason;
  return error instanceof Error ? error.message : String(error);
}

/** Returns the table numbers in each file's first rows. The check of the rows reports unreadable files and conflicts. */
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
    for await (const batch of rowBatches(source.open(), source)) {
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

/** A file with its read progress. */
export interface FileSource extends ImportSource {
  readonly read: { readonly done: number; readonly of: number };
}

/** `name` is the display name. */
export function fileSource(
  { path, ...what }: Omit<ImportSource, "open"> & { readonly path: string },
): FileSource {
  const read = { done: 0, of: 0 };
  async function* open(): AsyncGenerator<Uint8Array, void, void> {
    const file = await Deno.open(path);
    const { size } = await file.stat();
    Object.assign(read, { done: 0, of: size });
    for await (const chunk of file.readable) {
      read.done += chunk.length;
      yield chunk;
    }
  }
  return { ...what, read, open };
}
