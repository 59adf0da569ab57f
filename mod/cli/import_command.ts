/** Imports the uploaded files of an exported folder into a new data folder, keeping their ids. */
import { basename, extname, join, resolve } from "node:path";
import { resolveFunctions } from "../config/functions_folder.ts";
import type { OptionValues } from "../config/options.ts";
import { fileErrorReason, StartError } from "../config/start_error.ts";
import { helpFields } from "../explained.ts";
import type { IsolateHost } from "../functions/host/mod.ts";
import { statIfThere } from "../kit/durable_files.ts";
import type { Log } from "../kit/log.ts";
import { archiveNames } from "../ops/backups/archive/entry_names.ts";
import { ConvexSnapshot } from "../ops/tables/convex/mod.ts";
import {
  ExportedFolder,
  type FileSource,
  fileSource,
  folderNames,
  Importer,
  ImportError,
  type ImportProgress,
  type ImportSource,
  type ImportSummary,
  tableNumbersOf,
} from "../ops/tables/import/mod.ts";
import { type TableFormat, tableFormats } from "../ops/tables/mod.ts";
import { claimData, DataLock } from "../server/data/data_lock.ts";
import {
  checkNoStagedRestore,
  createImportedData,
  removeUnfinishedImport,
} from "../server/data/data_restore.ts";
import { startOfflineHost } from "../server/offline_host.ts";
import { type StopSignal, StopSignals } from "../server/signals.ts";
import { ImportedFileStore, openBlobs } from "../storage/mod.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";
import { ConsoleProgress } from "./console_progress.ts";

/** Stores all files and returns a summary line. Throws an `ImportError` for damaged contents. */
async function importFiles(
  host: IsolateHost,
  { exported, dataDir, onFile }: {
    readonly exported: ExportedFolder;
    readonly dataDir: string;
    /** Called after each file. An error it throws ends the import. */
    readonly onFile: (done: number) => void;
  },
): Promise<string> {
  await using store = await openBlobs({ kind: "folder", path: join(dataDir, "storage") });
  const port = {
    mutate: host.mutate.bind(host),
    query: () => Promise.reject(new Error("Queries are not available")),
  };
  const files = new ImportedFileStore({ port, store });
  let done = 0;
  let bytes = 0;
  for await (const file of exported.files()) {
    const { readable } = await Deno.open(file.path);
    bytes += await files.store(file, readable).catch((error) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ImportError("bad_file", `Nothing was imported.\n${file.path}: ${reason}`, { cause: error });
    });
    onFile(++done);
  }
  return `_storage: ${done} file${done === 1 ? "" : "s"} imported, ${bytes} bytes`;
}

/** First table number of the app's tables, so that ids can be generated before anything is written. */
const FIRST_TABLE_NUMBER = 10_001;

interface SnapshotImport {
  readonly options: Pick<OptionValues, "data" | "functions">;
  readonly log: Log;
  readonly onProgress: (progress: Pick<ImportProgress, "step" | "rows"> & { readonly name: string }) => void;
}

/** Imports and returns the lines of the report. On a `StartError` or `ImportError` the data folder is unchanged. */
async function importSnapshot(
  path: string,
  { options: { data, functions }, log, onProgress }: SnapshotImport,
): Promise<readonly string[]> {
  const { functionsDir, empty } = await resolveFunctions(functions, { demo: false });
  if (empty) {
    throw new StartError('No folder "functions" here: pass the app\'s functions folder with --functions', {
      code: "app_not_loaded",
    });
  }
  const dataDir = resolve(data);
  const names = await ConvexSnapshot.tableNames(path);
  using _lock = await DataLock.acquire(dataDir, { by: "import" });
  await removeUnfinishedImport(dataDir);
  await checkNoStagedRestore(dataDir, "the imported data");
  if (await statIfThere(join(dataDir, archiveNames.database)) !== null) {
    throw new StartError(
      `"${dataDir}" already contains data: import a Convex export into a new folder with --data`,
      { code: "import" },
    );
  }
  return await createImportedData(dataDir, async () => {
    const tableNumbers = new Map(names.map((name, at) => [name, FIRST_TABLE_NUMBER + at]));
    await claimData(dataDir, { example: false });
    await using host = await startOfflineHost({ dataDir, functionsDir, tableNumbers, log });
    return await intoNew(host, { path, dataDir, tableNumbers, onProgress });
  });
}

async function intoNew(
  host: IsolateHost,
  { path, dataDir, tableNumbers, onProgress }: {
    readonly path: string;
    readonly dataDir: string;
    readonly tableNumbers: ReadonlyMap<string, number>;
  } & Pick<SnapshotImport, "onProgress">,
): Promise<readonly string[]> {
  await using store = await openBlobs({ kind: "folder", path: join(dataDir, "storage") });
  const port = {
    mutate: host.mutate.bind(host),
    query: () => Promise.reject(new Error("Queries are not available")),
  };
  const files = new ImportedFileStore({ port, store });
  using snapshot = await ConvexSnapshot.open(path, {
    tableNumbers,
    fileIds: (count) => files.newIds(count),
  });
  const importer = new Importer({
    port: host,
    mode: "insert",
    onProgress: ({ source, step, rows }) => onProgress({ name: source.name, step, rows }),
  });
  const sources = snapshot.tables.map(({ table }) => snapshot.source(table));
  for (const source of sources) await importer.check(source);
  const before = snapshot.references;
  const report: string[] = [];
  for (const source of sources) {
    const { table, imported } = await importer.write(source);
    report.push(`${table}: ${counted(imported, "document")} imported`);
  }
  let bytes = 0;
  for (const [at, file] of snapshot.files.entries()) {
    onProgress({ name: "_storage", step: "written", rows: at });
    bytes += await files.store(file, snapshot.contents(file)).catch((error) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ImportError("bad_file", `Nothing was imported.\n${file.entry}: ${reason}`, { cause: error });
    });
  }
  if (snapshot.files.length > 0) {
    report.push(`_storage: ${counted(snapshot.files.length, "file")} imported, ${bytes} bytes`);
  }
  report.push(`${counted(snapshot.references - before, "reference")} to documents and files mapped`);
  return [
    ...report,
    ...snapshot.skipped.map((table) => `${table}: skipped, it is an internal table of Convex`),
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** The command `import`: loads documents from files into the tables of a data folder while no server runs. */
export const importCommand: CommandSpec = {
  name: "import",
  description: "Import documents from files; all files are validated first, and the server must not run",
  argument: {
    name: "path",
    description:
      "File named after its table, such as messages.jsonl or messages.csv, a folder of such files, or a Convex export (.zip)",
  },
  run,
};

class UnclearFilesError extends Error {}

type ImportOptions = Pick<OptionValues, "data" | "functions" | "format" | "mode">;

async function run(options: ImportOptions, path: string): Promise<number> {
  const log = commandLog();
  using signals = new StopSignals();
  try {
    if (extname(path).toLowerCase() === ".zip") {
      using progress = new ConsoleProgress();
      const onProgress = ({ name, step, rows }: { name: string; step: string; rows: number }) => {
        const what = `${step === "checked" ? "Checking" : "Importing"} ${name}`;
        progress.show({ what, done: rows, of: null, unit: "documents" });
      };
      for (const line of await importSnapshot(path, { options, log, onProgress })) print(line);
      return exitCodes.ok;
    }
    const sources = await sourcesOf(path, options.format, log);
    const { isDirectory } = await Deno.stat(path);
    const exported = isDirectory ? await ExportedFolder.open(path) : null;
    for (const line of await importAll({ sources, exported }, options, { log, signals })) print(line);
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof UnclearFilesError) {
      log("error", error.message, helpFields(error));
      return exitCodes.usage;
    }
    if (!(error instanceof StartError) && !(error instanceof ImportError)) throw error;
    // One line for each invalid row.
    for (const line of error.message.split("\n")) log("error", line);
    return exitCodes.failed;
  }
}

interface Given {
  readonly sources: readonly FileSource[];
  /** The folder that contains them; `null` for a single file. */
  readonly exported: ExportedFolder | null;
}

interface CommandEnvironment {
  readonly log: Log;
  readonly signals: StopSignals;
}

/** Validates all files, then writes them. Returns the lines of the report. */
async function importAll(
  { sources, exported }: Given,
  { data, functions, mode }: ImportOptions,
  { log, signals }: CommandEnvironment,
): Promise<string[]> {
  const { functionsDir, example } = await resolveFunctions(functions, { demo: true });
  if (example) log("info", "No folder functions: using the tables of the bundled example");
  const dataDir = resolve(data);
  using _lock = await DataLock.acquire(dataDir, { by: "import" });
  await removeUnfinishedImport(dataDir);
  await checkNoStagedRestore(dataDir, "the imported data");
  await claimData(dataDir, { example });
  const isNew = await statIfThere(join(dataDir, archiveNames.database)) === null;
  const files = exported?.fileCount === null ? null : exported;
  if (files !== null && !isNew) {
    throw new StartError(
      `"${dataDir}" already contains data: import an export with files into a new folder with --data`,
      { code: "import" },
    );
  }
  const tableNumbers = isNew
    ? new Map([...await tableNumbersOf(sources), ...exported?.numbers ?? []])
    : undefined;
  const work = { dataDir, functionsDir, tableNumbers, sources, files, mode };
  const make = () => importInto(work, { log, signals });
  return await (files === null ? make() : createImportedData(dataDir, make));
}

async function importInto(
  { dataDir, functionsDir, tableNumbers, sources, files, mode }:
    & { readonly dataDir: string; readonly functionsDir: string }
    & {
      readonly tableNumbers: ReadonlyMap<string, number> | undefined;
      readonly files: ExportedFolder | null;
    }
    & Pick<Given, "sources">
    & Pick<ImportOptions, "mode">,
  { log, signals }: CommandEnvironment,
): Promise<string[]> {
  await using host = await startOfflineHost({
    dataDir,
    functionsDir,
    log,
    // Later a table keeps the number it has.
    ...(tableNumbers && { tableNumbers }),
  });
  using progress = new ConsoleProgress();
  const stopped = stopOn(signals);
  const importer = new Importer({ port: host, mode, onProgress: progressTo(progress, { sources, stopped }) });
  for (const source of sources) await importer.check(source);
  const report: string[] = [];
  for (const source of sources) {
    try {
      report.push(summaryText(await importer.write(source)));
    } catch (error) {
      if (files !== null) throw nothingImported(source, error);
      for (const line of report) log("info", line);
      throw error;
    }
  }
  if (files === null) return report;
  const onFile = (done: number) => {
    stopped();
    progress.show({ what: "Importing files", done, of: files.fileCount, unit: "files" });
  };
  return [...report, await importFiles(host, { exported: files, dataDir, onFile })];
}

/** Adds the file name to the error. Everything written is removed again. */
function nothingImported({ name }: FileSource, error: unknown): ImportError {
  const cause = error instanceof ImportError ? error.cause : error;
  return new ImportError("failed", `Nothing was imported.\n${name}: ${fileErrorReason(cause)}`, { cause });
}

/** Returns the file at a path, or the files in a folder sorted by name. */
async function sourcesOf(path: string, format: TableFormat | null, log: Log): Promise<FileSource[]> {
  let isDirectory: boolean;
  try {
    ({ isDirectory } = await Deno.stat(path));
  } catch (error) {
    throw new StartError(`Cannot import "${path}": ${fileErrorReason(error)}`, { cause: error });
  }
  if (isDirectory) return await sourcesIn(path, format, log);
  const found = format ?? formatOf(path);
  if (found === null) {
    throw new UnclearFilesError(
      `"${path}" ends neither with .jsonl nor with .csv: pass --format`,
    );
  }
  return [fileSource({ name: basename(path), path, format: found, table: tableOf(path) })];
}

async function sourcesIn(
  folder: string,
  format: TableFormat | null,
  log: Log,
): Promise<FileSource[]> {
  const sources = new Map<string, FileSource>();
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) if (!isDirectory) names.push(name);
  for (const name of names.sort()) {
    const found = formatOf(name);
    if (folderNames.includes(name)) continue;
    if (name.startsWith(".") || found === null || (format !== null && found !== format)) continue;
    const table = tableOf(name);
    if (table.startsWith("_")) {
      log("warn", `Skipped ${name}: system tables cannot be imported`);
      continue;
    }
    const other = sources.get(table);
    if (other !== undefined) {
      throw new UnclearFilesError(
        `"${folder}" has two files for table "${table}", ${other.name} and ${name}: choose one with --format`,
      );
    }
    sources.set(table, fileSource({ name, path: join(folder, name), format: found, table }));
  }
  if (sources.size === 0) {
    const wanted = (format === null ? tableFormats : [format]).map((ending) => `.${ending}`).join(" or ");
    throw new StartError(`"${folder}" contains no file to import: expected names that end with ${wanted}`);
  }
  return [...sources.values()];
}

function formatOf(path: string): TableFormat | null {
  const ending = extname(path).slice(1).toLowerCase();
  return tableFormats.find((format) => format === ending) ?? null;
}

function tableOf(path: string): string {
  return basename(path, extname(path));
}

/** Returns a function that throws once a signal has arrived. */
function stopOn({ first }: StopSignals): () => void {
  let stoppedBy: StopSignal | null = null;
  void first.then((signal) => stoppedBy = signal);
  return () => {
    if (stoppedBy !== null) throw new StartError(`The import was interrupted by ${stoppedBy}`);
  };
}

/** Shows the progress of a file. Throws after the batch during which a signal arrived. */
function progressTo(
  progress: ConsoleProgress,
  { sources, stopped }: { readonly sources: readonly FileSource[]; readonly stopped: () => void },
): (progress: ImportProgress) => void {
  const files = new Map<ImportSource, FileSource>(sources.map((source) => [source, source]));
  return ({ source, step, rows }) => {
    stopped();
    const { done = 0, of = null } = files.get(source)?.read ?? {};
    if (step === "deleted") {
      progress.show({ what: `Emptying ${source.table}`, done: rows, of: null, unit: "documents" });
    } else {
      const what = `${step === "checked" ? "Checking" : "Importing"} ${source.name}`;
      progress.show({ what, done, of, unit: "bytes" });
    }
  };
}

function summaryText({ table, imported, deleted }: ImportSummary): string {
  const before = deleted === 0 ? "" : `, ${deleted} deleted first`;
  return `${table}: ${imported} ${imported === 1 ? "document" : "documents"} imported${before}`;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
